// SPDX-License-Identifier: Apache-2.0
//
// AutoBackend: a backend of the auto device. It carries out what graph_decision.h decides for each
// graph. A plugin's backend is initialised when the first graph goes there.

#ifndef ONNXIFI_ONNXIFI_DISPATCH_AUTO_BACKEND_H_
#define ONNXIFI_ONNXIFI_DISPATCH_AUTO_BACKEND_H_

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "backends/core/abi/provider.h"
#include "onnxifi/partitioned/task_pool.h"
#include "onnxifi/planner/auto_costs.h"
#include "onnxifi/planner/auto_options.h"
#include "onnxifi/planner/auto_planner.h"
#include "onnxifi/planner/device_choice.h"
#include "onnxifi/planner/graph_decision.h"
#include "onnxifi/plugins/forwarded_backend_id.h"
#include "onnxifi/plugins/plugin_backend.h"

namespace onnxifi::dispatch {

class AutoBackend final : public abi::Backend {
 public:
  // `devices`, at least one, and `costs`, which are theirs, outlive this.
  AutoBackend(planner::DeviceList devices, planner::AutoCosts& costs,
              abi::BackendProperties properties)
      : devices_(devices), costs_(costs), properties_(std::move(properties)) {}

  base::Result<std::unique_ptr<abi::Graph>> InitGraph(const abi::GraphRequest& request) override;
  // Starts runs on any plugin, so it is an event of ours.
  base::Result<std::shared_ptr<abi::Event>> NewEvent() override;
  // The plugin that gets the graph checks.
  bool TakesDataType(onnxEnum /*data_type*/) const override { return true; }
  bool TakesMemoryType(onnxEnum /*memory_type*/) const override { return true; }

 private:
  // What is asked for: what devices get to see, and what is meant for this one.
  struct Request {
    abi::GraphRequest graph;
    planner::AutoOptions options;

    bool measures() const {
      return options.measures.value_or(planner::AutoCosts::MeasuresByDefault());
    }
  };

  // The one place where a decision is carried out; `asked` are the devices that it is about.
  base::Result<std::unique_ptr<abi::Graph>> Init(planner::GraphDecision decision,
                                                 const Request& request,
                                                 const planner::GraphQuestion& question,
                                                 planner::DeviceList asked);
  // On the device that claims every node. Where that is full or broken, on the others of `asked`;
  // in islands where it does not keep its claim.
  base::Result<std::unique_ptr<abi::Graph>> InitOnClaimant(
      const plugins::ForwardedBackendId& device, const Request& request,
      const planner::GraphQuestion& question, planner::DeviceList asked);
  // On devices that are not full or broken as the claimant is, for the reason `refusal`; else in
  // islands, of which some may be the claimant's.
  base::Result<std::unique_ptr<abi::Graph>> InitOnOthers(
      const plugins::ForwardedBackendId& claimant, base::Status refusal, const Request& request,
      const planner::GraphQuestion& question, planner::DeviceList asked);
  // On the first of the devices that takes the graph whole. Else the status of the first with the
  // reasons of all, and `refusal`, why it is not cut.
  base::Result<std::unique_ptr<abi::Graph>> InitWhole(
      std::span<const plugins::ForwardedBackendId* const> order, const base::Status& refusal,
      const Request& request);
  // By the planner's plan; whole where that has one island. A device that refuses the whole loses
  // its claims.
  base::Result<std::unique_ptr<abi::Graph>> InitByPlan(planner::AutoPlanner& planner,
                                                       const Request& request);
  base::Result<std::unique_ptr<abi::Graph>> InitIslands(planner::AutoPlanner& planner,
                                                        const Request& request);
  // On this device alone; with others behind it where that is wanted and possible.
  base::Result<std::unique_ptr<abi::Graph>> InitOn(const plugins::ForwardedBackendId& device,
                                                   const Request& request);
  base::Result<std::unique_ptr<abi::Graph>> InitWithFallback(
      const plugins::ForwardedBackendId& device, const Request& request);
  // Gives the planner what is known of times, after measuring what is not if that is wanted.
  void UseCosts(planner::AutoPlanner& planner, const Request& request);
  base::Result<std::shared_ptr<const plugins::PluginBackend>> BackendOf(
      const plugins::ForwardedBackendId& device);

  const planner::DeviceList devices_;
  planner::AutoCosts& costs_;
  const abi::BackendProperties properties_;
  partitioned::TaskPool pool_;
  std::mutex mutex_;
  // Guarded by `mutex_`.
  std::map<const plugins::ForwardedBackendId*, std::shared_ptr<const plugins::PluginBackend>>
      backends_;
};

}  // namespace onnxifi::dispatch

#endif  // ONNXIFI_ONNXIFI_DISPATCH_AUTO_BACKEND_H_
