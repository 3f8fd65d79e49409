// SPDX-License-Identifier: Apache-2.0
//
// The kernel sources of kernels/ and the table tuning.csv, embedded at build (kernels.cc.in).

#ifndef ONNXIFI_BACKENDS_OPENCL_KERNELS_H_
#define ONNXIFI_BACKENDS_OPENCL_KERNELS_H_

#include <string_view>

namespace onnxifi::opencl {

extern const std::string_view kProductSource;  // product.cl
extern const std::string_view kTuningTable;    // tuning.csv

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_KERNELS_H_
