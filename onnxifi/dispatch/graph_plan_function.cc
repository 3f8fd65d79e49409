// SPDX-License-Identifier: Apache-2.0
//
// GraphPlanFunction: a planned graph knows its plan; any other graph of libonnxifi lies whole on
// one device.

#include "onnxifi/dispatch/graph_plan_function.h"

#include "backends/core/abi/guard.h"
#include "backends/core/abi/library.h"
#include "onnxifi/partitioned/graph_plan.h"
#include "onnxifi/partitioned/planned_graph.h"
#include "onnxifi/plugins/forwarded_graph.h"

namespace onnxifi::dispatch {

using base::Code;
using base::Status;
using partitioned::GraphPlan;
using partitioned::PlannedGraph;
using plugins::ForwardedGraph;

namespace {

GraphPlan PlanOf(abi::Graph& graph) {
  if (auto* planned = dynamic_cast<PlannedGraph*>(&graph)) return planned->Plan();
  GraphPlan plan;
  if (auto* forwarded = dynamic_cast<ForwardedGraph*>(&graph)) {
    GraphPlan::Island& whole = plan.islands.emplace_back();
    whole.device_key = forwarded->device_key();
    const auto counters = forwarded->Counters();
    whole.copies = counters.ok() ? counters->copies : abi::GraphCounters::kUnknown;
  }
  return plan;
}

}  // namespace

onnxStatus ONNXIFI_ABI GetGraphPlan(onnxGraph handle, onnxPlanIslandCallback island_callback,
                                    onnxPlanCutCallback cut_callback, void* context) {
  return abi::Guard(abi::Function::kGetGraphPlan, [&]() -> Status {
    const auto graph = abi::Library::Get().graphs().Find(handle);
    if (graph == nullptr) return Status(Code::kInvalidGraph, "The handle is no live graph.");
    if (island_callback == nullptr || cut_callback == nullptr) {
      return Status(Code::kInvalidPointer, "A callback is NULL.");
    }
    const GraphPlan plan = PlanOf(*graph->graph);
    uint32_t index = 0;
    for (const GraphPlan::Island& island : plan.islands) {
      onnxPlanIsland record = {};
      record.struct_size = sizeof(record);
      record.island_index = index++;
      record.device_key = island.device_key.c_str();
      record.node_count = static_cast<uint32_t>(island.nodes.size());
      record.nodes = island.nodes.data();
      record.after_count = static_cast<uint32_t>(island.after.size());
      record.after = island.after.data();
      record.estimated_start_ns = island.estimated_start_ns;
      record.estimated_duration_ns = island.estimated_duration_ns;
      record.measured_start_ns = island.measured_start_ns;
      record.measured_duration_ns = island.measured_duration_ns;
      record.copies = island.copies;
      island_callback(context, &record);
    }
    for (const GraphPlan::Cut& cut : plan.cuts) {
      onnxPlanCut record = {};
      record.struct_size = sizeof(record);
      record.value_name = cut.value_name.c_str();
      record.from_island = cut.from_island;
      record.to_island = cut.to_island;
      record.size_bytes = cut.size_bytes;
      record.copies = cut.copies;
      cut_callback(context, &record);
    }
    return base::Ok();
  });
}

}  // namespace onnxifi::dispatch
