// SPDX-License-Identifier: Apache-2.0
//
// ConvolutionPlan: one of the library's engines, with its settings, for a convolution.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_CONVOLUTION_ENGINE_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_CONVOLUTION_ENGINE_H_

#include <cstdint>

#include "backends/core/base/result.h"
#include "backends/cuda/libraries/contract_form.h"
#include "backends/cuda/libraries/cudnn.h"

namespace onnxifi::cuda {

struct ConvolutionPlan {
  CudnnDescriptor descriptor;
  int64_t workspace_bytes = 0;
};

// The first engine in the library's order that rounds nothing but what the form permits, is the
// same each time and needs at most kMaxWorkspaceBytes, for a graph of operands of this form. While
// the library's lock is held. UNSUPPORTED_OPERATOR: there is none; resource codes.
base::Result<ConvolutionPlan> ChooseEngine(const Cudnn& library, const ContractForm& form,
                                           const CudnnDescriptor& graph);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_CONVOLUTION_ENGINE_H_
