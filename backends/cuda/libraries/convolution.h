// SPDX-License-Identifier: Apache-2.0
//
// Convolution: a Contract that is a convolution of cuDNN's. A bias and Relu are the library's; what
// else a step makes of its sums, or where the library has no engine with these, a kernel of ours
// does behind it.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_CONVOLUTION_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_CONVOLUTION_H_

#include <memory>

#include "backends/core/base/result.h"
#include "backends/core/program/step.h"
#include "backends/cuda/libraries/candidate.h"
#include "backends/cuda/libraries/contract_form.h"
#include "backends/cuda/libraries/cudnn.h"

namespace onnxifi::cuda {

// UNSUPPORTED_OPERATOR with what keeps it from being one.
base::Status CheckConvolution(const program::Contract& contract, const ContractForm& form);
// `library` outlives it.
std::unique_ptr<const Candidate> MakeConvolution(const Cudnn& library, const ContractForm& form);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_CONVOLUTION_H_
