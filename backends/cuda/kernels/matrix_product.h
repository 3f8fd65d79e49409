// SPDX-License-Identifier: Apache-2.0
//
// MatrixProduct: the product library of CUDA (codegen/kernel_driver.h).

#ifndef ONNXIFI_BACKENDS_CUDA_KERNELS_MATRIX_PRODUCT_H_
#define ONNXIFI_BACKENDS_CUDA_KERNELS_MATRIX_PRODUCT_H_

#include <string_view>

namespace onnxifi::cuda {

// CUDA C++; lasts as long as the process.
std::string_view MatrixProduct();

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_KERNELS_MATRIX_PRODUCT_H_
