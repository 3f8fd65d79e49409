// SPDX-License-Identifier: Apache-2.0
//
// The order of calls is that of the upstream ONNXIFI test driver, without its faults.

#include "conformance/suites/replay.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "client/execution.h"
#include "client/onnx_file/model_outline.h"
#include "client/onnx_file/odd_model.h"
#include "client/status_names.h"
#include "client/value_run.h"
#include "conformance/suites/alternation.h"
#include "conformance/suites/data_set.h"
#include "conformance/suites/draws.h"
#include "conformance/suites/random_outputs.h"
#include "conformance/suites/value_check.h"
#include "conformance/suites/variant_run.h"

namespace onnxifi::suites {
namespace {

using onnx_file::DenseTensor;
using onnx_file::FileValue;
using onnx_file::ModelOutline;
using report::CaseResult;
using report::Verdict;

base::Status Fault(std::string sentence) {
  return base::Status(base::Code::kInternalError, std::move(sentence));
}

base::Status RunDataSet(const cases::CaseDescription& description, int number,
                        const ReplayRules& rules, const ModelOutline& outline,
                        const CaseGraph& graph, CaseResult& result) {
  ONNXIFI_ASSIGN_OR_RETURN(const DataSet data_set, ReadDataSet(description, number, outline));
  const std::vector<DenseTensor> inputs = TensorsOf(data_set.inputs);
  const std::vector<DenseTensor> expected = TensorsOf(data_set.outputs);
  if (rules.refuse_constant_outputs) {
    for (const DenseTensor& output : expected) {
      if (comparison::IsConstant(output)) {
        return Fault(
            fmt::format("The expected output '{}' has one value throughout: the case checks "
                        "nothing.",
                        output.name));
      }
    }
  }
  client::ExecutionOptions options;
  options.signal_before_run = number % 2 == 1;
  options.misalign = rules.misalign;
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<DenseTensor> outputs,
                           graph.Run(inputs, expected, options));
  if (DrawsRandomNumbers(outline, inputs)) {
    result.note = "random values: checked for type, shape and distribution";
    return CheckRandomOutputs(outline, inputs, expected, outputs);
  }
  return CheckTensors(outputs, expected, description.tolerance, result.worst_ratio);
}

// A data set of which a value is no tensor of numbers.
base::Status RunValueSet(const cases::CaseDescription& description, int number,
                         const ModelOutline& outline, const CaseGraph& graph, CaseResult& result) {
  ONNXIFI_ASSIGN_OR_RETURN(const DataSet data_set, ReadDataSet(description, number, outline));
  client::ExecutionOptions options;
  options.signal_before_run = number % 2 == 1;
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<FileValue> outputs,
                           graph.RunOnValues(data_set.inputs, options));
  return CheckValues(outputs, data_set.outputs, description.tolerance, result.worst_ratio);
}

void ONNXIFI_ABI CountIsland(void* count, const onnxPlanIsland* /*island*/) {
  ++*static_cast<uint64_t*>(count);
}

void ONNXIFI_ABI IgnoreCut(void* /*context*/, const onnxPlanCut* /*cut*/) {}

// The parts of the graph that are compiled and bound by themselves.
base::Result<uint64_t> CountIslands(const Target& target, onnxGraph graph) {
  if (target.extensions.get_graph_plan == nullptr) return uint64_t{1};
  uint64_t count = 0;
  ONNXIFI_RETURN_IF_ERROR(client::ExpectSuccess(
      target.library, "onnxGetGraphPlan",
      target.extensions.get_graph_plan(graph, CountIsland, IgnoreCut, &count)));
  return count;
}

// Of an island, shapes for whose numbers it may be compiled again: two lengths may be the same one
// for an island, and what comes twice may be worth it.
constexpr uint64_t kMaxShapesOfAnIsland = 4;

// A graph that served many lengths was lowered once and bound at most once per length; of its
// islands each was bound as often, and lowered for some shapes at most.
base::Status CheckCounters(const cases::CaseDescription& description, const Target& target,
                           onnxGraph graph, CaseResult& result) {
  if (target.extensions.get_graph_counters == nullptr) {
    result.note = fmt::format("{} lengths; the library does not count its lowerings",
                              description.length_count);
    return base::Ok();
  }
  onnxGraphCounters counters = {};
  counters.struct_size = sizeof(counters);
  ONNXIFI_RETURN_IF_ERROR(
      client::ExpectSuccess(target.library, "onnxGetGraphCounters",
                            target.extensions.get_graph_counters(graph, &counters)));
  result.note =
      fmt::format("{} lengths: {} lowering(s), {} bindings, {} runs", description.length_count,
                  counters.lowerings, counters.bindings, counters.runs);
  ONNXIFI_ASSIGN_OR_RETURN(const uint64_t islands, CountIslands(target, graph));
  const uint64_t most_lowerings = islands == 1 ? 1 : islands * (1 + kMaxShapesOfAnIsland);
  if (counters.lowerings < islands || counters.lowerings > most_lowerings) {
    return Fault(fmt::format("The graph was lowered {} times for {} lengths, not {} to {} times.",
                             counters.lowerings, description.length_count, islands,
                             most_lowerings));
  }
  const uint64_t most = static_cast<uint64_t>(description.length_count) * islands;
  if (counters.bindings == 0 || counters.bindings > most) {
    return Fault(fmt::format("The graph was bound {} times for {} lengths.", counters.bindings,
                             description.length_count));
  }
  return base::Ok();
}

base::Status RunAll(const cases::CaseDescription& description, const ReplayRules& rules,
                    const Target& target, const ModelOutline& outline, const GraphRequest& request,
                    CaseResult& result) {
  CaseGraph graph(target);
  ONNXIFI_RETURN_IF_ERROR(
      client::ExpectSuccess(target.library, "onnxInitGraph", graph.Init(request)));
  for (int number = 0; number < description.data_set_count; ++number) {
    base::Status status = request.by_values
                              ? RunValueSet(description, number, outline, graph, result)
                              : RunDataSet(description, number, rules, outline, graph, result);
    if (!status.ok()) {
      return description.data_set_count == 1
                 ? std::move(status)
                 : std::move(status).Context(fmt::format("in data set {}", number));
    }
  }
  result.step_families = graph.ReadStepFamilies();
  if (description.length_count != 0) {
    return CheckCounters(description, target, graph.get(), result);
  }
  return base::Ok();
}

base::Status RunDraws(const cases::CaseDescription& description, const ReplayRules& rules,
                      const Target& target, const ModelOutline& outline,
                      const GraphRequest& request, CaseResult& result) {
  ONNXIFI_ASSIGN_OR_RETURN(const DataSet data_set, ReadDataSet(description, 0, outline));
  result.note = "random values: checked for distribution and sequence";
  return CheckDraws(target, request, data_set, *description.draws, {.misalign = rules.misalign});
}

// The graph's properties but for those that go with values.
std::vector<uint64_t> MakeProperties(const ReplayRules& rules) {
  if (!rules.lend_model) return {ONNXIFI_GRAPH_PROPERTY_NONE};
  return {ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL, 1, ONNXIFI_GRAPH_PROPERTY_NONE};
}

base::Status Replay(const cases::CaseDescription& description, const ReplayRules& rules,
                    const Target& target, Oracle& oracle, CaseResult& result) {
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<std::byte> content,
                           onnx_file::ReadFile(description.folder / "model.onnx"));
  ONNXIFI_ASSIGN_OR_RETURN(const ModelOutline outline, onnx_file::ParseModelOutline(content));
  if (!target.alternates.empty()) {
    ONNXIFI_ASSIGN_OR_RETURN(const std::string placed,
                             NameDevicesInTurn(content, target.library, target.alternates));
    const auto bytes = std::as_bytes(std::span(placed));
    content.assign(bytes.begin(), bytes.end());
  }
  GraphRequest request = {
      .model = content, .weights = {}, .properties = MakeProperties(rules), .by_values = false};
  std::optional<onnx_file::OddModel> odd_model;
  if (rules.lend_model) {
    ONNXIFI_ASSIGN_OR_RETURN(odd_model, onnx_file::OddModel::Make(content));
    request.model = odd_model->content();
  }
  result.operators = outline.operators;
  result.element_types = ElementTypesOf(outline);
  const std::string obstacle = FindValueThatCannotCross(outline);
  onnxStatus claim = Claim(target, request);
  if (!obstacle.empty() && client::IsAcceptance(claim)) {
    return Fault(fmt::format("onnxGetBackendCompatibility accepts the model, but {}.", obstacle));
  }
  if (!obstacle.empty() && client::HasValues(target.extensions)) {
    // The standard's functions alone refuse it all the same, also to initialise it.
    if (rules.variant == cases::Variant::kPlain) {
      ONNXIFI_RETURN_IF_ERROR(CheckRefusal(target, request, claim, result));
      result.status.clear();
      result.sentence.clear();
    }
    request.by_values = true;
    request.properties.insert(request.properties.begin(), {ONNXIFI_SDK_GRAPH_PROPERTY_VALUES, 1});
    claim = Claim(target, request);
  }
  if (rules.variant != cases::Variant::kPlain) {
    if (client::IsAcceptance(claim)) {
      return VariantRun(description, rules, target, outline, request, oracle, result).Run();
    }
    result.verdict = Verdict::kNotApplicable;
    result.sentence = "The device refuses the case as it is.";
    return base::Ok();
  }
  if (!client::IsAcceptance(claim)) {
    result.verdict = Verdict::kNotSupported;
    return CheckRefusal(target, request, claim, result);
  }
  result.verdict = Verdict::kPass;
  if (description.draws) return RunDraws(description, rules, target, outline, request, result);
  return RunAll(description, rules, target, outline, request, result);
}

}  // namespace

CaseResult ReplayCase(const cases::CaseDescription& description, const ReplayRules& rules,
                      const Target& target, Oracle& oracle) {
  CaseResult result;
  const base::Status status = Replay(description, rules, target, oracle, result);
  if (!status.ok()) {
    result.verdict = Verdict::kFail;
    result.sentence = status.Text();
  }
  return result;
}

}  // namespace onnxifi::suites
