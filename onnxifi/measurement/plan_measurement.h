// SPDX-License-Identifier: Apache-2.0
//
// PlanMeasurement: finds out what is not known yet of how long a model takes on the devices at
// hand.

#ifndef ONNXIFI_ONNXIFI_MEASUREMENT_PLAN_MEASUREMENT_H_
#define ONNXIFI_ONNXIFI_MEASUREMENT_PLAN_MEASUREMENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "backends/core/abi/provider.h"
#include "backends/core/base/result.h"
#include "onnxifi/measurement/run_trial.h"
#include "onnxifi/planner/auto_costs.h"
#include "onnxifi/planner/auto_planner.h"
#include "onnxifi/plugins/plugin_backend.h"

namespace onnxifi::measurement {

class PlanMeasurement {
 public:
  using BackendSource = std::function<base::Result<std::shared_ptr<const plugins::PluginBackend>>(
      const plugins::ForwardedBackendId& device)>;
  // The graph for the planner's plan.
  using GraphSource = std::function<base::Result<std::unique_ptr<abi::Graph>>()>;

  // All references outlive it. `clock`: by which runs are timed.
  PlanMeasurement(planner::AutoPlanner& planner, planner::AutoCosts& costs,
                  const abi::GraphRequest& request, Clock clock = SteadyTime)
      : planner_(planner), costs_(costs), request_(request), clock_(std::move(clock)) {}

  // Each device's edges, and each kind of node by itself where a device claims it. Stops after a
  // time that people wait for once; what it did not come to is estimated by its like. A device that
  // fails is left as unknown.
  void MeasureNodes(const BackendSource& backend_of);

  // Whole runs of all candidates, where one of them was never run. The planner knows the costs
  // afterwards.
  void MeasureCandidates(const GraphSource& build);

 private:
  // A candidate's graph, and what a run of it takes.
  struct Contender {
    std::unique_ptr<abi::Graph> graph;
    RunTrial trial;
    int64_t run_ns = 0;
  };

  void MeasureDevice(size_t device, const BackendSource& backend_of);
  bool IsMeasured(const partition::Plan& plan) const;
  void Learn(const partition::Plan& plan, int64_t run_ns);
  void Compare(std::span<const partition::Plan> candidates, const GraphSource& build);
  // Nothing where the graph cannot be built or run that way.
  std::optional<Contender> Prepare(const partition::Plan& plan, const GraphSource& build);

  planner::AutoPlanner& planner_;
  planner::AutoCosts& costs_;
  const abi::GraphRequest& request_;
  const Clock clock_;
};

}  // namespace onnxifi::measurement

#endif  // ONNXIFI_ONNXIFI_MEASUREMENT_PLAN_MEASUREMENT_H_
