// SPDX-License-Identifier: Apache-2.0
//
// AutoBackend: a backend of the auto device. Where it is known how long devices take, each graph
// goes by the plan that is expected to be fastest; else as a whole to the first device that claims
// all of it, or in islands to several where none does. A plugin's backend is initialised when the
// first graph goes there. A caller may want it otherwise: see auto_options.h.

#ifndef ONNXIFI_ONNXIFI_DISPATCH_AUTO_BACKEND_H_
#define ONNXIFI_ONNXIFI_DISPATCH_AUTO_BACKEND_H_

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "backends/core/abi/provider.h"
#include "onnxifi/dispatch/auto_backend_id.h"
#include "onnxifi/dispatch/auto_options.h"
#include "onnxifi/dispatch/auto_planner.h"
#include "onnxifi/dispatch/plugin_backend.h"
#include "onnxifi/dispatch/task_pool.h"

namespace onnxifi::dispatch {

class AutoBackend final : public abi::Backend {
 public:
  // `id` must outlive this.
  AutoBackend(const AutoBackendId& id, abi::BackendProperties properties)
      : id_(id), properties_(std::move(properties)) {}

  base::Result<std::unique_ptr<abi::Graph>> InitGraph(const abi::GraphRequest& request) override;
  // Starts runs on any plugin, so it is an event of ours.
  base::Result<std::shared_ptr<abi::Event>> NewEvent() override;
  // The plugin that gets the graph judges.
  bool TakesDataType(onnxEnum /*data_type*/) const override { return true; }
  bool TakesMemoryType(onnxEnum /*memory_type*/) const override { return true; }

 private:
  // What is asked for: what devices get to see, and what is meant for this one.
  struct Request {
    abi::GraphRequest graph;
    AutoOptions options;

    bool measures() const { return options.measures.value_or(AutoCosts::MeasuresByDefault()); }
  };

  // As a whole to the first that claims it, else in islands.
  base::Result<std::unique_ptr<abi::Graph>> InitByOrder(const Request& request);
  // By what is known of the devices, after measuring what is not if that is wanted; nothing where
  // the model cannot be cut or has nodes that no device claims.
  base::Result<std::unique_ptr<abi::Graph>> InitByCosts(const Request& request);
  // What is known from now on, after measuring what is not if that is wanted.
  void UseCosts(AutoPlanner& planner, const Request& request);
  // As the caller wants it.
  base::Result<std::unique_ptr<abi::Graph>> InitPlaced(const Request& request);
  // The devices that may have the whole graph, first those that are wanted. INVALID_PROPERTY.
  base::Result<std::vector<const ForwardedBackendId*>> OrderOf(
      const PlacementRequest& placement) const;
  // On the first of the devices that takes it whole; else the status of the first with the reasons
  // of all.
  base::Result<std::unique_ptr<abi::Graph>> InitWhole(
      const Request& request, std::span<const ForwardedBackendId* const> order);
  // Where it cannot be cut, for the reason `refusal`.
  base::Result<std::unique_ptr<abi::Graph>> InitWholeOr(const Request& request,
                                                        base::Status refusal);
  // The graph for the planner's plan. A device that refuses all of it loses its claims.
  base::Result<std::unique_ptr<abi::Graph>> Build(AutoPlanner& planner, const Request& request);
  base::Result<std::unique_ptr<abi::Graph>> InitTogether(const Request& request,
                                                         base::Status refusal);
  // On this device alone; with others behind it where that is wanted and possible.
  base::Result<std::unique_ptr<abi::Graph>> InitOn(const ForwardedBackendId& device,
                                                   const Request& request);
  base::Result<std::unique_ptr<abi::Graph>> InitWithFallback(const ForwardedBackendId& device,
                                                             const Request& request);
  base::Result<std::unique_ptr<abi::Graph>> InitPlanned(AutoPlanner& planner,
                                                        const Request& request);
  base::Result<std::shared_ptr<const PluginBackend>> BackendOf(const ForwardedBackendId& device);

  const AutoBackendId& id_;
  const abi::BackendProperties properties_;
  TaskPool pool_;
  std::mutex mutex_;
  // Guarded by `mutex_`.
  std::map<const ForwardedBackendId*, std::shared_ptr<const PluginBackend>> backends_;
};

}  // namespace onnxifi::dispatch

#endif  // ONNXIFI_ONNXIFI_DISPATCH_AUTO_BACKEND_H_
