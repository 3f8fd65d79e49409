// SPDX-License-Identifier: Apache-2.0
//
// ProductForm: what of a step cuBLASLt has to know before its extents are: what is multiplied, in
// which arithmetic, and what is made of the sums.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_PRODUCT_FORM_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_PRODUCT_FORM_H_

#include <optional>
#include <string_view>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cuda/libraries/cublaslt_functions.h"

namespace onnxifi::cuda {

// What the library makes of a sum: `scale * sum + addend + bias`, at least 0 if
// `is_rectified`. Its Gelu is the one by tanh, which is only near to ONNX's own.
struct ProductEpilogue {
  float scale = 1;
  int bias = -1;    // read of the step; -1: none
  int addend = -1;  // the same
  bool is_rectified = false;
};

struct ProductForm {
  tensor::ElementType operand = tensor::ElementType::kFloat32;
  std::string_view type;  // as rules name it
  lt::Compute compute = lt::kInFloat32;
  tensor::Precision precision = tensor::Precision::kFloat32;
  // None: a kernel of ours makes the step's results of the sums.
  std::optional<ProductEpilogue> epilogue;
};

// `facts` are of a Contract. UNSUPPORTED_OPERATOR with the reason why it is none of the library's.
base::Result<ProductForm> FindProductForm(const device::Facts& facts);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_PRODUCT_FORM_H_
