// SPDX-License-Identifier: Apache-2.0
//
// Meter: times what a device does by itself.

#ifndef ONNXIFI_ONNXIFI_MEASUREMENT_METER_H_
#define ONNXIFI_ONNXIFI_MEASUREMENT_METER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "backends/core/abi/provider.h"
#include "onnxifi/measurement/run_trial.h"
#include "onnxifi/partition/problem.h"
#include "onnxifi/plugins/forwarded_backend_id.h"
#include "onnxifi/plugins/plugin_backend.h"
#include "onnxifi/split/whole_model.h"

namespace onnxifi::measurement {

// One device, opened. `backend` outlives it.
class Meter {
 public:
  // `request`: of the model at hand, whose properties and weights it gives to every graph; outlives
  // it, as `clock` does.
  Meter(std::shared_ptr<const plugins::PluginBackend> backend,
        const plugins::ForwardedBackendId& device, const abi::GraphRequest& request,
        const Clock& clock)
      : backend_(std::move(backend)), device_(device), request_(request), clock_(clock) {}

  // What a run takes beside its nodes, from chains of a simple operator that the device claims: a
  // chain three times as long tells the launch from the work, and a long tensor the copies, which
  // only a device with memory of its own makes. Nothing where it claims none of those tried.
  std::optional<partition::DeviceCost> TimeEdges() const;

  // What this node alone takes beyond `edges`.
  std::optional<int64_t> TimeNode(const split::WholeModel& whole, int32_t node,
                                  const partition::DeviceCost& edges) const;

 private:
  struct ChainTime {
    int64_t run_ns = 0;
    // Whether the runs copied their tensors, as far as the device tells.
    bool copies = true;
  };
  std::optional<ChainTime> TimeChain(std::string_view operator_type, int length,
                                     int64_t element_count) const;

  const std::shared_ptr<const plugins::PluginBackend> backend_;
  const plugins::ForwardedBackendId& device_;
  const abi::GraphRequest& request_;
  const Clock& clock_;
};

}  // namespace onnxifi::measurement

#endif  // ONNXIFI_ONNXIFI_MEASUREMENT_METER_H_
