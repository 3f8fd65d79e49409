// SPDX-License-Identifier: Apache-2.0
//
// Product: a Contract that is a matrix product of cuBLASLt's. What the library cannot make of its
// sums a kernel of ours does behind it: they are then in working memory.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_PRODUCT_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_PRODUCT_H_

#include <memory>

#include "backends/core/base/result.h"
#include "backends/core/program/step.h"
#include "backends/cuda/libraries/candidate.h"
#include "backends/cuda/libraries/contract_form.h"
#include "backends/cuda/libraries/cublaslt.h"

namespace onnxifi::cuda {

// UNSUPPORTED_OPERATOR with what keeps it from being one.
base::Status CheckProduct(const program::Contract& contract);
// `library` outlives it.
std::unique_ptr<const Candidate> MakeProduct(const CublasLt& library, const ContractForm& form);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_PRODUCT_H_
