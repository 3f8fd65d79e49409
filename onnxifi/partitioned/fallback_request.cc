// SPDX-License-Identifier: Apache-2.0
//
// FallbackRequest: copies what the request borrows, and points the copy at it.

#include "onnxifi/partitioned/fallback_request.h"

#include <onnxifi/sdk.h>

#include <algorithm>
#include <utility>

#include "backends/core/tensor/element_type.h"

namespace onnxifi::partitioned {

FallbackRequest::FallbackRequest(const abi::GraphRequest& request, std::string model,
                                 std::span<const int32_t> weights)
    : model_(std::move(model)), request_(request) {
  for (const int32_t position : weights) {
    const abi::TensorDescriptor& weight = request.weights[static_cast<size_t>(position)];
    const tensor::ElementType type =
        tensor::ElementTypeFromOnnx(static_cast<int64_t>(weight.data_type))
            .value_or(tensor::ElementType::kUndefined);
    int64_t count = 1;
    for (const uint64_t extent : weight.shape) count *= static_cast<int64_t>(extent);
    const auto* bytes = static_cast<const std::byte*>(weight.cpu_data());
    std::vector<std::byte>& data = data_.emplace_back();
    if (bytes != nullptr) data.assign(bytes, bytes + tensor::SizeBytes(type, count));
    abi::TensorDescriptor& kept = weights_.emplace_back(weight);
    kept.buffer = reinterpret_cast<onnxPointer>(data.data());
    given_weights_.push_back(
        {weight.name, type, {weight.shape.begin(), weight.shape.end()}, data.data()});
  }
  request_.model = {reinterpret_cast<const std::byte*>(model_.data()), model_.size()};
  request_.weights = weights_;
  // The only property whose value is an address.
  for (abi::Property& property : request_.properties.given) {
    if (property.key != ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER) continue;
    property.value = reinterpret_cast<uintptr_t>(request_.properties.base_folder->c_str());
  }
}

}  // namespace onnxifi::partitioned
