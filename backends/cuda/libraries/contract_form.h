// SPDX-License-Identifier: Apache-2.0
//
// ContractForm: what of a Contract a library has to know before its extents are: what is
// multiplied, in which arithmetic, and what is made of the sums.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_CONTRACT_FORM_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_CONTRACT_FORM_H_

#include <optional>
#include <string_view>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"

namespace onnxifi::cuda {

// `scale * sum + addend + bias`, at least 0 if `is_rectified`.
struct ContractEpilogue {
  float scale = 1;
  int bias = -1;    // read of the step; -1: none
  int addend = -1;  // the same
  bool is_rectified = false;
};

// What a library is to write, by views of the step.
struct LibraryResults {
  const device::BoundView* out = nullptr;  // null: sums
  const device::BoundView* bias = nullptr;
  const device::BoundView* addend = nullptr;
  float scale = 1;
  bool is_rectified = false;
};

struct ContractForm {
  tensor::ElementType operand = tensor::ElementType::kFloat32;
  std::string_view type;  // as rules name it
  // What float32 may be rounded to.
  tensor::Precision precision = tensor::Precision::kFloat32;
  // None: a kernel of ours makes the step's results of the sums.
  std::optional<ContractEpilogue> epilogue;
  bool is_narrowed = false;  // the results have a narrower type than the sums
};

// `facts` are of a Contract. UNSUPPORTED_OPERATOR with the reason why it is no library's.
base::Result<ContractForm> FindContractForm(const device::Facts& facts);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_CONTRACT_FORM_H_
