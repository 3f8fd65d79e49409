// SPDX-License-Identifier: Apache-2.0
//
// ChainModel: the smallest model with which a device can be timed: one operator several times over.

#ifndef ONNXIFI_ONNXIFI_SPLIT_CHAIN_MODEL_H_
#define ONNXIFI_ONNXIFI_SPLIT_CHAIN_MODEL_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace onnxifi::split {

// From x to y, both float32 of `element_count` elements; `operator_type` takes one input and gives
// one of the same kind. `length` is at least 1.
std::string MakeChainModel(std::string_view operator_type, int length, int64_t element_count);

}  // namespace onnxifi::split

#endif  // ONNXIFI_ONNXIFI_SPLIT_CHAIN_MODEL_H_
