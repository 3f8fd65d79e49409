// SPDX-License-Identifier: Apache-2.0
//
// AutoBackendId: the device that stands for all others and chooses among them for each graph.

#ifndef ONNXIFI_ONNXIFI_DISPATCH_AUTO_BACKEND_ID_H_
#define ONNXIFI_ONNXIFI_DISPATCH_AUTO_BACKEND_ID_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/abi/provider.h"
#include "onnxifi/planner/auto_costs.h"
#include "onnxifi/plugins/forwarded_backend_id.h"

namespace onnxifi::dispatch {

class AutoBackendId final : public abi::BackendId {
 public:
  // `devices`: at least one, in the order in which they are asked; they must outlive this.
  explicit AutoBackendId(std::vector<const plugins::ForwardedBackendId*> devices)
      : devices_(std::move(devices)), costs_(devices_) {}

  std::string key() const override { return "auto"; }
  // Numbers that cover all devices: the least of what each can, the most of what one has.
  base::Result<abi::InfoValue> Info(onnxBackendInfo query) const override;
  base::Status CheckCompatibility(std::span<const std::byte> model) const override;
  base::Status CheckValueCompatibility(std::span<const std::byte> model) const override;
  base::Result<abi::Explanation> Explain(std::span<const std::byte> model) const override;
  base::Result<std::unique_ptr<abi::Backend>> InitBackend(
      const abi::BackendProperties& properties) const override;

  // Beside the kit's those of onnxifi/auto_device.h.
  bool TakesGraphProperty(uint64_t key) const override;

 private:
  const std::vector<const plugins::ForwardedBackendId*> devices_;
  mutable planner::AutoCosts costs_;
};

}  // namespace onnxifi::dispatch

#endif  // ONNXIFI_ONNXIFI_DISPATCH_AUTO_BACKEND_ID_H_
