// SPDX-License-Identifier: Apache-2.0
//
// PlanMeasurement: finds out what is not known yet of how long a model takes on the devices at
// hand.

#ifndef ONNXIFI_ONNXIFI_DISPATCH_PLAN_MEASUREMENT_H_
#define ONNXIFI_ONNXIFI_DISPATCH_PLAN_MEASUREMENT_H_

#include <functional>
#include <memory>
#include <utility>

#include "backends/core/abi/provider.h"
#include "backends/core/base/result.h"
#include "onnxifi/dispatch/auto_costs.h"
#include "onnxifi/dispatch/auto_planner.h"
#include "onnxifi/dispatch/meter.h"
#include "onnxifi/dispatch/plugin_backend.h"

namespace onnxifi::dispatch {

class PlanMeasurement {
 public:
  using BackendSource = std::function<base::Result<std::shared_ptr<const PluginBackend>>(
      const ForwardedBackendId& device)>;
  // The graph for the planner's plan.
  using GraphSource = std::function<base::Result<std::unique_ptr<abi::Graph>>()>;

  // All references outlive it. `clock`: by which runs are timed.
  PlanMeasurement(AutoPlanner& planner, AutoCosts& costs, const abi::GraphRequest& request,
                  Clock clock = SteadyTime)
      : planner_(planner), costs_(costs), request_(request), clock_(std::move(clock)) {}

  // Each device's edges, and each kind of node by itself where a device claims it. Stops after a
  // time that people wait for once; what it did not come to is estimated by its like. A device that
  // fails is left as unknown.
  void MeasureNodes(const BackendSource& backend_of);

  // Whole runs of all candidates that were never run. The planner knows the costs afterwards.
  void MeasureCandidates(const GraphSource& build);

 private:
  void MeasureDevice(size_t device, const BackendSource& backend_of);

  AutoPlanner& planner_;
  AutoCosts& costs_;
  const abi::GraphRequest& request_;
  const Clock clock_;
};

}  // namespace onnxifi::dispatch

#endif  // ONNXIFI_ONNXIFI_DISPATCH_PLAN_MEASUREMENT_H_
