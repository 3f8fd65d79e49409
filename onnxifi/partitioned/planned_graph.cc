// SPDX-License-Identifier: Apache-2.0
//
// PlannedGraph: compiles island by island; what its islands tell of themselves is put together
// here.

#include "onnxifi/partitioned/planned_graph.h"

#include <onnxifi/sdk.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_set>

#include "backends/core/base/log.h"
#include "onnxifi/partitioned/fallback_graph.h"
#include "onnxifi/partitioned/fallback_request.h"
#include "onnxifi/plugins/device_request.h"
#include "onnxifi/plugins/forwarded_graph.h"

namespace onnxifi::partitioned {

using base::Code;
using base::Status;
using planner::AutoPlanner;
using plugins::ForwardedBackendId;
using plugins::ForwardedGraph;
using plugins::PluginBackend;
using plugins::RequestFor;
using plugins::Without;

namespace {

abi::DeclaredTensor Declare(const split::FlowingValue& value) {
  abi::DeclaredTensor declared;
  declared.name = value.name;
  declared.data_type = static_cast<onnxEnum>(value.type);
  declared.has_shape = value.dimensions.has_value();
  if (!value.dimensions) return declared;
  for (const split::Dimension& dimension : *value.dimensions) {
    abi::DeclaredDimension& told = declared.dimensions.emplace_back();
    if (dimension.number >= 0) told.extent = dimension.number;
    told.symbol = dimension.symbol;
  }
  return declared;
}

abi::Signature SignatureOf(const split::WholeModel& whole) {
  abi::Signature signature;
  std::unordered_set<std::string> symbols;
  for (const int32_t input : whole.inputs()) {
    signature.inputs.push_back(Declare(whole.values()[input]));
    for (const abi::DeclaredDimension& dimension : signature.inputs.back().dimensions) {
      symbols.insert(dimension.symbol);
    }
  }
  for (const int32_t output : whole.outputs()) {
    signature.outputs.push_back(Declare(whole.values()[output]));
    // Exporters write symbols of outputs that stand for several numbers.
    for (abi::DeclaredDimension& dimension : signature.outputs.back().dimensions) {
      if (!symbols.contains(dimension.symbol)) dimension.symbol.clear();
    }
  }
  return signature;
}

// What the model says of its values, and which of them go from one step to another.
std::vector<CrossingValue> ValuesOf(const split::WholeModel& whole,
                                    const std::vector<PlannedStep>& steps) {
  std::vector<CrossingValue> values;
  for (const split::FlowingValue& value : whole.values()) {
    CrossingValue& planned = values.emplace_back();
    planned.name = value.name;
    planned.data_type = static_cast<onnxEnum>(value.type);
    planned.has_rank = value.dimensions.has_value();
    planned.has_extents = value.has_fixed_shape();
    if (!planned.has_rank) continue;
    for (const split::Dimension& dimension : *value.dimensions) {
      planned.extents.push_back(dimension.number);
    }
  }
  std::set<int32_t> made;
  for (const PlannedStep& step : steps) made.insert(step.outputs.begin(), step.outputs.end());
  for (const PlannedStep& step : steps) {
    for (const int32_t input : step.inputs) values[input].is_handed_on = made.contains(input);
  }
  return values;
}

std::string DescribeIsland(const AutoPlanner& planner, const partition::Plan& plan, size_t index) {
  const partition::Island& island = plan.islands[index];
  const split::ModelNode& first = planner.whole().nodes()[island.nodes.front()];
  std::string text = "island " + std::to_string(index + 1) + " of " +
                     std::to_string(plan.islands.size()) + " on device '" +
                     planner.device(island.device).key() + "' (";
  if (island.nodes.size() > 1) text += std::to_string(island.nodes.size()) + " nodes from ";
  text += "node " + std::to_string(first.model_index);
  if (!first.name.empty()) text += " '" + first.name + "'";
  return text + ", " + first.operator_type + ")";
}

GraphPlan Describe(const AutoPlanner& planner, const partition::Plan& plan) {
  GraphPlan told;
  const split::WholeModel& whole = planner.whole();
  for (const partition::Island& island : plan.islands) {
    GraphPlan::Island& record = told.islands.emplace_back();
    record.device_key = planner.device(island.device).key();
    for (const partition::NodeIndex node : island.nodes) {
      record.nodes.push_back(static_cast<uint32_t>(whole.nodes()[node].model_index));
    }
    record.after.assign(island.after.begin(), island.after.end());
    record.estimated_start_ns = static_cast<uint64_t>(island.start_ns);
    record.estimated_duration_ns = static_cast<uint64_t>(island.duration_ns);
  }
  for (const partition::Cut& cut : plan.cuts) {
    GraphPlan::Cut& record = told.cuts.emplace_back();
    record.value_name = whole.values()[cut.value].name;
    if (cut.from != partition::kCaller) record.from_island = cut.from;
    if (cut.to != partition::kCaller) record.to_island = cut.to;
    record.size_bytes = static_cast<uint64_t>(cut.size_bytes);
  }
  return told;
}

// The step's graph, and its fallback graph where there is one.
std::vector<abi::Graph*> GraphsOf(const PlannedStep& step) {
  std::vector<abi::Graph*> graphs = {step.graph.get()};
  if (step.fallback != nullptr && step.fallback->graph() != nullptr) {
    graphs.push_back(step.fallback->graph());
  }
  return graphs;
}

// The devices of a fallback graph, e.g. "cpu:0" or "cpu:0 npu:0".
std::string KeysOf(abi::Graph& graph) {
  std::string keys;
  // PlannedGraph::Create makes every fallback graph.
  std::set<std::string> seen;
  for (const GraphPlan::Island& island : static_cast<PlannedGraph&>(graph).Plan().islands) {
    if (!seen.insert(island.device_key).second) continue;
    keys += (keys.empty() ? "" : " ") + island.device_key;
  }
  return keys;
}

// A sum of what is not known is not known.
void AddCounter(uint64_t count, uint64_t& sum) {
  const bool is_known =
      count != abi::GraphCounters::kUnknown && sum != abi::GraphCounters::kUnknown;
  sum = is_known ? sum + count : abi::GraphCounters::kUnknown;
}

// Compiles the islands of a plan, and finds out who is to blame where a device refuses one.
class Compiler {
 public:
  Compiler(AutoPlanner& planner, const PlannedGraph::BackendSource& backend_of,
           const abi::GraphRequest& request, TaskPool& pool, PlannedGraph::OnFailure on_failure)
      : planner_(planner),
        backend_of_(backend_of),
        request_(request),
        pool_(pool),
        on_failure_(on_failure),
        log_(request.log_level) {}

  // The steps of the plan; nothing where a claim had to be taken back, so that there is a new plan
  // to make.
  base::Result<std::optional<std::vector<PlannedStep>>> Compile(const partition::Plan& plan) {
    std::vector<PlannedStep> steps;
    for (size_t index = 0; index < plan.islands.size(); ++index) {
      const partition::Island& island = plan.islands[index];
      split::IslandModel model = planner_.whole().Extract(island.nodes);
      std::shared_ptr<const PluginBackend> backend;
      auto graph = Init(island.device, model, &backend);
      if (!graph.ok()) {
        Status reason = graph.status();
        reason.Context("in " + DescribeIsland(planner_, plan, index));
        if (!MayGoElsewhere(reason)) return reason;
        const std::vector<partition::NodeIndex> guilty = FindGuilty(island, reason);
        if (planner_.has_given_plan()) {
          for (const partition::NodeIndex node : guilty) {
            reason.Context("which refuses " + planner_.DescribeNode(node));
          }
          return reason;
        }
        TakeBack(island, guilty, reason);
        return std::optional<std::vector<PlannedStep>>();
      }
      PlannedStep& step = steps.emplace_back();
      step.graph = *std::move(graph);
      step.shared_source = std::move(backend);
      step.description = DescribeIsland(planner_, plan, index);
      // Inferring for a plugin that does not takes longer than to look at what the model fixes.
      step.tells_shapes =
          planner_.device(island.device).calls().infer_output_shapes != nullptr ||
          !std::ranges::all_of(model.outputs, [&](int32_t output) {
            return planner_.whole().values()[static_cast<size_t>(output)].has_fixed_shape();
          });
      step.inputs = std::move(model.inputs);
      step.outputs = std::move(model.outputs);
      step.model_nodes = std::move(model.model_nodes);
      step.needs = static_cast<int32_t>(island.after.size());
      if (on_failure_ == PlannedGraph::OnFailure::kTakeOver &&
          planner_.IsClaimedElsewhere(island.device, island.nodes)) {
        step.fallback = MakeFallbackGraph(island.device, step.description, std::move(model.bytes),
                                          model.weights);
      }
      for (const int32_t before : island.after) {
        steps[before].before.push_back(static_cast<int32_t>(index));
      }
    }
    return std::optional(std::move(steps));
  }

 private:
  base::Result<std::unique_ptr<abi::Graph>> Init(
      partition::DeviceIndex device, const split::IslandModel& model,
      std::shared_ptr<const PluginBackend>* of = nullptr) const {
    ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const PluginBackend> backend,
                             backend_of_(planner_.device(device)));
    if (of != nullptr) *of = backend;
    abi::GraphRequest request = request_;
    request.model = {reinterpret_cast<const std::byte*>(model.bytes.data()), model.bytes.size()};
    std::vector<abi::TensorDescriptor> weights;
    for (const int32_t weight : model.weights) weights.push_back(request_.weights[weight]);
    request.weights = weights;
    // The thread that starts an island waits for it.
    constexpr uint64_t kCallerRuns = ONNXIFI_SDK_GRAPH_PROPERTY_CALLER_RUNS;
    request = Without(std::move(request), kCallerRuns);
    request.properties.given.push_back({kCallerRuns, 1});
    return ForwardedGraph::Init(std::move(backend),
                                RequestFor(planner_.device(device), std::move(request)));
  }

  std::unique_ptr<FallbackGraph> MakeFallbackGraph(partition::DeviceIndex device,
                                                   std::string description, std::string model,
                                                   std::span<const int32_t> weights) const {
    std::vector<const ForwardedBackendId*> others(planner_.devices().begin(),
                                                  planner_.devices().end());
    others.erase(others.begin() + device);
    return std::make_unique<FallbackGraph>(
        [kept = std::make_shared<const FallbackRequest>(request_, std::move(model), weights),
         others = std::move(others), description = std::move(description), backend_of = backend_of_,
         &pool = pool_,
         log = log_](const Status& reason) -> base::Result<std::unique_ptr<abi::Graph>> {
          log.Write(base::LogLevel::kWarning, "partition",
                    "A device fails; others take over " + description + ". " + reason.Text());
          ONNXIFI_ASSIGN_OR_RETURN(
              const std::unique_ptr<AutoPlanner> planner,
              AutoPlanner::Ask(others, kept->request().model, kept->given_weights()));
          return PlannedGraph::Create(*planner, backend_of, kept->request(), pool,
                                      PlannedGraph::OnFailure::kGiveUp);
        });
  }

  // A refusal that says something of the device, not of the call.
  static bool MayGoElsewhere(const Status& reason) {
    switch (reason.code()) {
      case Code::kUnsupportedVersion:
      case Code::kUnsupportedProperty:
      case Code::kUnsupportedOperator:
      case Code::kUnsupportedAttribute:
      case Code::kUnsupportedShape:
      case Code::kUnsupportedDatatype:
      case Code::kNoDeviceMemory:
      case Code::kNoDeviceResources:
      case Code::kBackendUnavailable:
      case Code::kInternalError:
        return true;
      default:
        return false;
    }
  }

  // The nodes that are refused alone, or all where none is, or where asking one by one took too
  // long before.
  std::vector<partition::NodeIndex> FindGuilty(const partition::Island& island,
                                               const Status& reason) {
    constexpr size_t kMaxQuestions = 256;
    std::vector<partition::NodeIndex> guilty;
    const bool asks = island.nodes.size() > 1 && reason.code() != Code::kBackendUnavailable &&
                      questions_ + island.nodes.size() <= kMaxQuestions;
    if (asks) {
      questions_ += island.nodes.size();
      for (const partition::NodeIndex node : island.nodes) {
        const split::IslandModel model = planner_.whole().Extract({&node, 1});
        // Without outputs it does nothing that could be refused.
        if (!model.outputs.empty() && !Init(island.device, model).ok()) guilty.push_back(node);
      }
    }
    return guilty.empty() ? island.nodes : guilty;
  }

  void TakeBack(const partition::Island& island, std::span<const partition::NodeIndex> guilty,
                const Status& reason) {
    planner_.Withdraw(island.device, guilty, reason);
    log_.Write(base::LogLevel::kWarning, "partition",
               "Device '" + planner_.device(island.device).key() + "' refuses what it claimed; " +
                   std::to_string(guilty.size()) +
                   (guilty.size() == 1 ? " node goes" : " nodes go") + " elsewhere. " +
                   reason.Text());
  }

  AutoPlanner& planner_;
  const PlannedGraph::BackendSource& backend_of_;
  const abi::GraphRequest& request_;
  TaskPool& pool_;
  const PlannedGraph::OnFailure on_failure_;
  const base::Log log_;
  size_t questions_ = 0;
};

}  // namespace

base::Result<std::unique_ptr<abi::Graph>> PlannedGraph::Create(AutoPlanner& planner,
                                                               const BackendSource& backend_of,
                                                               const abi::GraphRequest& request,
                                                               TaskPool& pool,
                                                               OnFailure on_failure) {
  Compiler compiler(planner, backend_of, request, pool, on_failure);
  std::optional<std::vector<PlannedStep>> steps;
  GraphPlan told;
  size_t device_count = 0;
  // Ends: each round but the last takes back a claim.
  while (!steps) {
    ONNXIFI_ASSIGN_OR_RETURN(const partition::Plan plan, planner.Plan());
    ONNXIFI_ASSIGN_OR_RETURN(steps, compiler.Compile(plan));
    std::set<partition::DeviceIndex> devices;
    for (const partition::Island& island : plan.islands) devices.insert(island.device);
    device_count = devices.size();
    told = Describe(planner, plan);
  }
  const bool is_emulated = std::ranges::any_of(
      *steps, [](const PlannedStep& step) { return step.graph->is_emulated(); });
  const split::WholeModel& whole = planner.whole();
  // A fallback graph is run by the thread that has its island.
  const PlannedSteps::Runner runner =
      request.properties.caller_runs || on_failure == OnFailure::kGiveUp
          ? PlannedSteps::Runner::kCaller
          : PlannedSteps::Runner::kPool;
  // More have no device to be on. What a step tells of its last run is to be of the graph's.
  const size_t most_runs = request.properties.is_profiled ? 1 : device_count;
  // One thread for each device that can be at work at the same time.
  ONNXIFI_RETURN_IF_ERROR(pool.Start(device_count));
  std::vector<CrossingValue> values = ValuesOf(whole, *steps);
  return std::unique_ptr<abi::Graph>(new PlannedGraph(
      SignatureOf(whole), std::move(told),
      std::make_shared<PlannedSteps>(*std::move(steps), std::move(values), whole.inputs(),
                                     whole.outputs(), pool, runner, most_runs),
      is_emulated));
}

PlannedGraph::~PlannedGraph() { Close(); }

base::Result<std::shared_ptr<const abi::Binding>> PlannedGraph::Bind(abi::GraphTensors tensors) {
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const Binding> binding,
                           steps_->Bind(std::move(tensors)));
  return std::shared_ptr<const abi::Binding>(std::move(binding));
}

base::Result<std::shared_ptr<abi::Event>> PlannedGraph::Run(
    std::shared_ptr<const abi::Binding> binding, std::shared_ptr<abi::Event> input) {
  ++runs_;
  // Bind makes no others.
  return steps_->Run(std::static_pointer_cast<const Binding>(std::move(binding)), std::move(input));
}

void PlannedGraph::Close() {
  if (is_closed_) return;
  is_closed_ = true;
  steps_->Close();
  for (const PlannedStep& step : steps_->steps()) {
    for (abi::Graph* graph : GraphsOf(step)) graph->Close();
  }
}

base::Result<std::vector<abi::TensorShape>> PlannedGraph::InferOutputShapes(
    std::span<const abi::TensorDescriptor> inputs) {
  return steps_->InferOutputShapes(inputs);
}

base::Result<abi::GraphCounters> PlannedGraph::Counters() {
  constexpr uint64_t abi::GraphCounters::*kSums[] = {
      &abi::GraphCounters::lowerings,       &abi::GraphCounters::bindings,
      &abi::GraphCounters::allocations,     &abi::GraphCounters::copies,
      &abi::GraphCounters::kernel_builds,   &abi::GraphCounters::map_steps,
      &abi::GraphCounters::reduce_steps,    &abi::GraphCounters::row_steps,
      &abi::GraphCounters::scan_steps,      &abi::GraphCounters::contract_steps,
      &abi::GraphCounters::window_steps,    &abi::GraphCounters::index_steps,
      &abi::GraphCounters::host_steps,      &abi::GraphCounters::control_steps,
      &abi::GraphCounters::attention_steps, &abi::GraphCounters::submissions,
      &abi::GraphCounters::recordings,      &abi::GraphCounters::recurrent_steps,
  };
  abi::GraphCounters sum;
  for (const auto counter : kSums) sum.*counter = 0;
  for (const PlannedStep& step : steps_->steps()) {
    for (abi::Graph* graph : GraphsOf(step)) {
      // A plain ONNXIFI 1.0 plugin does not tell.
      const auto counters = graph->Counters();
      for (const auto counter : kSums) {
        AddCounter(counters.ok() ? (*counters).*counter : abi::GraphCounters::kUnknown,
                   sum.*counter);
      }
    }
  }
  if (sum.copies != abi::GraphCounters::kUnknown) sum.copies += steps_->copies();
  sum.runs = runs_;
  return sum;
}

GraphPlan PlannedGraph::Plan() {
  GraphPlan plan = plan_;
  const std::vector<PlannedSteps::StepTime> times = steps_->LastTimes();
  for (size_t island = 0; island < times.size(); ++island) {
    plan.islands[island].measured_start_ns = times[island].start_ns;
    plan.islands[island].measured_duration_ns = times[island].duration_ns;
  }
  for (size_t island = 0; island < plan.islands.size(); ++island) {
    const PlannedStep& step = steps_->steps()[island];
    const bool has_moved =
        step.fallback != nullptr && step.fallback->graph() != nullptr &&
        (step.fallback->has_taken_over() || (island < times.size() && times[island].is_fallback));
    if (has_moved) plan.islands[island].device_key = KeysOf(*step.fallback->graph());
    plan.islands[island].copies = 0;
    for (abi::Graph* graph : GraphsOf(step)) {
      const auto counters = graph->Counters();
      AddCounter(counters.ok() ? counters->copies : abi::GraphCounters::kUnknown,
                 plan.islands[island].copies);
    }
  }
  std::set<std::string> seen;
  for (GraphPlan::Cut& cut : plan.cuts) {
    if (seen.insert(cut.value_name).second) cut.copies = steps_->CopiesOf(cut.value_name);
  }
  return plan;
}

base::Result<std::vector<abi::StepRecord>> PlannedGraph::Profile() {
  const std::vector<PlannedSteps::StepTime> times = steps_->LastTimes();
  if (times.empty()) return Status(Code::kInvalidState, "No run of the graph has finished.");
  std::vector<abi::StepRecord> records;
  for (size_t index = 0; index < steps_->steps().size(); ++index) {
    const PlannedStep& step = steps_->steps()[index];
    abi::Graph& graph = times[index].is_fallback ? *step.fallback->graph() : *step.graph;
    ONNXIFI_ASSIGN_OR_RETURN(std::vector<abi::StepRecord> told, graph.Profile());
    for (abi::StepRecord& record : told) {
      const auto node = static_cast<size_t>(record.node_index);
      if (record.node_index >= 0 && node < step.model_nodes.size()) {
        record.node_index = step.model_nodes[node];
      }
      record.start_ns += times[index].start_ns;
      records.push_back(std::move(record));
    }
  }
  std::stable_sort(
      records.begin(), records.end(),
      [](const abi::StepRecord& a, const abi::StepRecord& b) { return a.start_ns < b.start_ns; });
  return records;
}

base::Result<std::vector<abi::LoadRecord>> PlannedGraph::LoadProfile() {
  std::vector<abi::LoadRecord> sums;
  for (const PlannedStep& step : steps_->steps()) {
    ONNXIFI_ASSIGN_OR_RETURN(const std::vector<abi::LoadRecord> told, step.graph->LoadProfile());
    for (const abi::LoadRecord& record : told) {
      const auto known = std::find_if(sums.begin(), sums.end(), [&](const abi::LoadRecord& sum) {
        return sum.stage == record.stage;
      });
      if (known == sums.end()) {
        sums.push_back(record);
      } else {
        known->count += record.count;
        known->duration_ns += record.duration_ns;
      }
    }
  }
  return sums;
}

}  // namespace onnxifi::partitioned
