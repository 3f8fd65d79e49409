// SPDX-License-Identifier: Apache-2.0
//
// PlainProduct: a product library in neutral text, for devices whose items are the lanes: each sum
// of a block is a scalar variable.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_PLAIN_PRODUCT_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_PLAIN_PRODUCT_H_

#include <string_view>

namespace onnxifi::codegen {

// The functions that TiledProduct::Generate wants.
std::string_view PlainProduct();

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_PLAIN_PRODUCT_H_
