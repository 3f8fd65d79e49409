// SPDX-License-Identifier: Apache-2.0
//
// PlanMeasurement: one device after the other, so that none disturbs another.

#include "onnxifi/dispatch/plan_measurement.h"

#include <chrono>
#include <utility>

namespace onnxifi::dispatch {
namespace {

constexpr std::chrono::seconds kMostTimeOfADevice(20);

}  // namespace

void PlanMeasurement::MeasureNodes(const BackendSource& backend_of) {
  for (size_t device = 0; device < costs_.Known().size(); ++device) {
    MeasureDevice(device, backend_of);
  }
  planner_.UseCosts(costs_.Known());
}

void PlanMeasurement::MeasureDevice(size_t device, const BackendSource& backend_of) {
  const auto deadline = clock_() + kMostTimeOfADevice;
  const std::shared_ptr<const cost::DeviceTable> known = costs_.Known()[device].table;
  const auto position = static_cast<partition::DeviceIndex>(device);
  std::map<split::Digest, partition::NodeIndex> unknown;
  for (size_t node = 0; node < planner_.signatures().size(); ++node) {
    const split::Digest& signature = planner_.signatures()[node];
    const auto index = static_cast<partition::NodeIndex>(node);
    if (planner_.Claims(position, index) && !known->node_ns.contains(signature)) {
      unknown.emplace(signature, index);
    }
  }
  if (unknown.empty()) return;
  auto backend = backend_of(planner_.device(position));
  if (!backend.ok()) return;
  const Meter meter(*std::move(backend), planner_.device(position), request_, clock_);
  cost::DeviceTable found;
  if (!known->edges) found.edges = meter.TimeEdges();
  const partition::DeviceCost edges =
      found.edges ? *found.edges : known->edges.value_or(partition::DeviceCost());
  for (const auto& [signature, node] : unknown) {
    if (clock_() >= deadline) break;
    if (const auto time = meter.TimeNode(planner_.whole(), node, edges)) {
      found.node_ns.emplace(signature, *time);
    }
  }
  costs_.Learn(device, found);
}

void PlanMeasurement::MeasureCandidates(const GraphSource& build) {
  const auto candidates = planner_.Candidates();
  if (!candidates.ok() || candidates->size() < 2) return;
  for (const partition::Plan& plan : *candidates) {
    const auto first = static_cast<size_t>(plan.islands.front().device);
    const split::Digest digest = planner_.DigestOf(plan);
    if (costs_.Known()[first].table->run_ns.contains(digest)) continue;
    planner_.Pin(plan);
    const auto graph = build();
    // Another plan where a device does not keep its claim.
    const bool is_kept = graph.ok() && planner_.IsPinned();
    planner_.Unpin();
    if (!is_kept) continue;
    const auto time = TimeRuns(**graph, planner_.whole(), planner_.whole().inputs(),
                               planner_.whole().outputs(), clock_);
    (*graph)->Close();
    if (!time) continue;
    cost::DeviceTable found;
    found.run_ns.emplace(digest, *time);
    costs_.Learn(first, found);
  }
  planner_.UseCosts(costs_.Known());
}

}  // namespace onnxifi::dispatch
