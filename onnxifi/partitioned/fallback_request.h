// SPDX-License-Identifier: Apache-2.0
//
// FallbackRequest: what onnxInitGraph was asked for, of one island, kept beyond the call: the
// island's fallback graph is made from it in the middle of a run.

#ifndef ONNXIFI_ONNXIFI_PARTITIONED_FALLBACK_REQUEST_H_
#define ONNXIFI_ONNXIFI_PARTITIONED_FALLBACK_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/core/abi/provider.h"
#include "onnxifi/split/whole_model.h"

namespace onnxifi::partitioned {

// Threads: constant after construction.
class FallbackRequest {
 public:
  // The request with `model` in place of its own, and of its weights those at `weights`, whose data
  // are copied and whose element types ONNX knows.
  FallbackRequest(const abi::GraphRequest& request, std::string model,
                  std::span<const int32_t> weights);
  FallbackRequest(const FallbackRequest&) = delete;
  FallbackRequest& operator=(const FallbackRequest&) = delete;

  // Points into this.
  const abi::GraphRequest& request() const { return request_; }
  // The weights as the splitter takes them; their data lie in this.
  const std::vector<split::GivenWeight>& given_weights() const { return given_weights_; }

 private:
  const std::string model_;
  std::vector<std::vector<std::byte>> data_;
  std::vector<abi::TensorDescriptor> weights_;
  std::vector<split::GivenWeight> given_weights_;
  abi::GraphRequest request_;
};

}  // namespace onnxifi::partitioned

#endif  // ONNXIFI_ONNXIFI_PARTITIONED_FALLBACK_REQUEST_H_
