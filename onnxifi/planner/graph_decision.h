// SPDX-License-Identifier: Apache-2.0
//
// GraphDecision: on which devices a graph of the auto device runs. Decided by what the devices
// claim, what the caller wants and what is known of times; a caller of Decide carries it out.

#ifndef ONNXIFI_ONNXIFI_PLANNER_GRAPH_DECISION_H_
#define ONNXIFI_ONNXIFI_PLANNER_GRAPH_DECISION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backends/core/base/status.h"
#include "onnxifi/planner/auto_options.h"
#include "onnxifi/planner/auto_planner.h"
#include "onnxifi/planner/device_choice.h"
#include "onnxifi/plugins/forwarded_backend_id.h"

namespace onnxifi::planner {

// What is to be decided. The model and the data of the weights outlive the decision.
struct GraphQuestion {
  std::span<const std::byte> model;
  // The caller's weights; nothing where no plan can carry one of them.
  std::optional<std::vector<split::GivenWeight>> weights = std::vector<split::GivenWeight>();
  // Whether inputs and outputs are values, so that the graph stays whole.
  bool takes_values = false;
  PlacementRequest placement = {};
};

struct GraphDecision {
  enum class Outcome : uint8_t {
    // Nobody runs it, for the reason `refusal`.
    kRefused,
    // The whole model goes to the first of `devices`, the first that claims every node. If it does
    // not keep its claim, DecideTogether says what is left.
    kClaimant,
    // The whole model goes to the first of `devices` that takes it. `refusal` says why it is not
    // cut, if it might have been.
    kWhole,
    // The whole model goes to the only one of `devices`, which emulates some of it: no device, and
    // no plan, has kernels for all nodes.
    kEmulated,
    // `planner` has a plan. A plan of one island gives its device the model as it is.
    kPlan,
    // `planner` has a plan, each island of which becomes a model of its own, because no device
    // keeps a claim of the whole.
    kIslands,
  };

  Outcome outcome = Outcome::kRefused;
  base::Status refusal;
  std::vector<const plugins::ForwardedBackendId*> devices;
  std::unique_ptr<AutoPlanner> planner;

  // What a support query answers: FALLBACK where some of the nodes are emulated, else ok or
  // `refusal`.
  base::Status Verdict() const;
};

// What is known of how long devices take.
struct CostSource {
  // Whether there is anything, or shall be.
  std::function<bool()> is_used;
  // Gives it to the planner, after measuring what is not known if that is wanted. The planner may
  // lose claims.
  std::function<void(AutoPlanner& planner)> teach;
};

// `devices`: at least one; they outlive the decision.
GraphDecision Decide(DeviceList devices, const GraphQuestion& question, const CostSource& costs);

// The same without costs for a caller who wants no placement: any outcome but kWhole.
GraphDecision DecideByOrder(DeviceList devices, const GraphQuestion& question);

// For a model that no device runs whole, for the reason `refusal`: kPlan, kIslands, kEmulated or
// kRefused. After an attempt with the caller's weights no device is asked for the whole again.
GraphDecision DecideTogether(DeviceList devices, const GraphQuestion& question,
                             base::Status refusal, RefusalOf refused);

}  // namespace onnxifi::planner

#endif  // ONNXIFI_ONNXIFI_PLANNER_GRAPH_DECISION_H_
