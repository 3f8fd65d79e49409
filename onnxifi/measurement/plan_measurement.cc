// SPDX-License-Identifier: Apache-2.0
//
// PlanMeasurement: one device after the other, so that none disturbs another.

#include "onnxifi/measurement/plan_measurement.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "onnxifi/measurement/meter.h"

namespace onnxifi::measurement {
namespace {

constexpr std::chrono::seconds kMaxTimeOfADevice(20);

}  // namespace

void PlanMeasurement::MeasureNodes(const BackendSource& backend_of) {
  for (size_t device = 0; device < costs_.Known().size(); ++device) {
    MeasureDevice(device, backend_of);
  }
  planner_.UseCosts(costs_.Known());
}

void PlanMeasurement::MeasureDevice(size_t device, const BackendSource& backend_of) {
  const auto deadline = clock_() + kMaxTimeOfADevice;
  const std::shared_ptr<const cost::DeviceTable> known = costs_.Known()[device].table;
  const auto position = static_cast<partition::DeviceIndex>(device);
  std::map<split::Digest, partition::NodeIndex> unknown;
  for (size_t node = 0; node < planner_.signatures().size(); ++node) {
    const split::Digest& signature = planner_.signatures()[node];
    const auto index = static_cast<partition::NodeIndex>(node);
    // What is emulated goes there only where nobody else takes it.
    const bool is_weighed = planner_.Claims(position, index) && !planner_.Emulates(position, index);
    if (is_weighed && !known->node_ns.contains(signature)) {
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

bool PlanMeasurement::IsMeasured(const partition::Plan& plan) const {
  const auto first = static_cast<size_t>(plan.islands.front().device);
  return costs_.Known()[first].table->run_ns.contains(planner_.DigestOf(plan));
}

void PlanMeasurement::Learn(const partition::Plan& plan, int64_t run_ns) {
  cost::DeviceTable found;
  found.run_ns.emplace(planner_.DigestOf(plan), run_ns);
  costs_.Learn(static_cast<size_t>(plan.islands.front().device), found);
}

std::optional<PlanMeasurement::Contender> PlanMeasurement::Prepare(const partition::Plan& plan,
                                                                   const GraphSource& build) {
  planner_.Pin(plan);
  auto graph = build();
  // Another plan where a device does not keep its claim.
  const bool is_kept = graph.ok() && planner_.IsPinned();
  planner_.Unpin();
  if (!is_kept) return std::nullopt;
  const split::WholeModel& whole = planner_.whole();
  auto trial = RunTrial::Prepare(**graph, whole, whole.inputs(), whole.outputs(), clock_);
  if (!trial) {
    (*graph)->Close();
    return std::nullopt;
  }
  return Contender{*std::move(graph), *std::move(trial)};
}

void PlanMeasurement::MeasureCandidates(const GraphSource& build) {
  const auto candidates = planner_.Candidates();
  const bool is_choice = candidates.ok() && candidates->size() > 1;
  if (is_choice && !std::ranges::all_of(*candidates, [&](const partition::Plan& plan) {
        return IsMeasured(plan);
      })) {
    Compare(*candidates, build);
  }
  planner_.UseCosts(costs_.Known());
}

void PlanMeasurement::Compare(std::span<const partition::Plan> candidates,
                              const GraphSource& build) {
  // What was known of some is not compared with what others take now: each runs in turns with the
  // best before it, and never are more than two graphs there.
  std::optional<Contender> best;
  for (const partition::Plan& plan : candidates) {
    std::optional<Contender> next = Prepare(plan, build);
    if (!next) continue;
    const std::optional<double> ratio = best ? next->trial.RatioTo(best->trial) : std::nullopt;
    const std::optional<int64_t> run_ns =
        ratio ? static_cast<int64_t>(*ratio * static_cast<double>(best->run_ns))
              // The first, or one of both has failed.
              : next->trial.LeastTime();
    if (run_ns) {
      next->run_ns = *run_ns;
      Learn(plan, *run_ns);
    }
    if (run_ns && (!ratio || *ratio < 1)) std::swap(best, next);
    if (next) next->graph->Close();
  }
  if (best) best->graph->Close();
}

}  // namespace onnxifi::measurement
