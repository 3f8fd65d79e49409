// SPDX-License-Identifier: Apache-2.0
//
// The order of calls is that of the upstream ONNXIFI test driver, without its faults.

#include "conformance/suites/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "client/comparison/comparison.h"
#include "client/execution.h"
#include "client/onnx_file/model_outline.h"
#include "client/onnx_file/odd_model.h"
#include "client/onnx_file/tensor_file.h"
#include "client/onnx_file/value_file.h"
#include "client/step_families.h"
#include "client/value_run.h"
#include "conformance/suites/alternation.h"
#include "conformance/suites/random_outputs.h"

namespace onnxifi::suites {
namespace {

using client::StatusName;
using onnx_file::DenseTensor;
using onnx_file::FileValue;
using onnx_file::ModelOutline;
using onnx_file::ValueOutline;
using report::CaseResult;
using report::Verdict;

base::Status Fault(std::string sentence) {
  return base::Status(base::Code::kInternalError, std::move(sentence));
}

// A graph that is released when the case ends.
class ScopedGraph {
 public:
  explicit ScopedGraph(const client::Library& library) : library_(library) {}
  ~ScopedGraph() {
    if (graph_ != nullptr) (void)library_.onnxReleaseGraph(graph_);
  }
  ScopedGraph(const ScopedGraph&) = delete;
  ScopedGraph& operator=(const ScopedGraph&) = delete;

  onnxGraph get() const { return graph_; }
  onnxGraph* address() { return &graph_; }

 private:
  const client::Library& library_;
  onnxGraph graph_ = nullptr;
};

struct DataSet {
  std::vector<DenseTensor> inputs;
  std::vector<DenseTensor> outputs;
};

base::Result<std::vector<DenseTensor>> ReadTensors(const std::filesystem::path& folder,
                                                   std::string_view prefix,
                                                   const std::vector<ValueOutline>& values) {
  std::vector<DenseTensor> tensors;
  for (size_t index = 0; index < values.size(); ++index) {
    ONNXIFI_ASSIGN_OR_RETURN(
        DenseTensor tensor,
        onnx_file::ReadTensorFile(folder / fmt::format("{}_{}.pb", prefix, index)));
    // Some data files have no names; position decides.
    tensor.name = values[index].name;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

base::Result<DataSet> ReadDataSet(const cases::CaseDescription& description, int number,
                                  const ModelOutline& outline) {
  const std::filesystem::path folder = description.folder / fmt::format("test_data_set_{}", number);
  DataSet data_set;
  ONNXIFI_ASSIGN_OR_RETURN(data_set.inputs, ReadTensors(folder, "input", outline.inputs));
  ONNXIFI_ASSIGN_OR_RETURN(data_set.outputs, ReadTensors(folder, "output", outline.outputs));
  return data_set;
}

base::Result<std::vector<FileValue>> ReadValues(const std::filesystem::path& folder,
                                                std::string_view prefix,
                                                const std::vector<ValueOutline>& values) {
  std::vector<FileValue> read;
  for (size_t index = 0; index < values.size(); ++index) {
    ONNXIFI_ASSIGN_OR_RETURN(
        FileValue value, onnx_file::ReadValueFile(folder / fmt::format("{}_{}.pb", prefix, index),
                                                  values[index].kind));
    value.name = values[index].name;
    read.push_back(std::move(value));
  }
  return read;
}

// Whether a value of this kind and type can be a descriptor.
bool CanCross(const ValueOutline& value) {
  return value.kind == onnx_file::ValueKind::kTensor &&
         value.type != onnx_file::ElementType::kString;
}

// The first graph input or output that no descriptor can carry, in words; empty if there is none.
std::string FindValueThatCannotCross(const ModelOutline& outline) {
  const auto describe = [](std::string_view role, const ValueOutline& value) {
    return fmt::format(
        "{} '{}' is a {}, which no descriptor can carry", role, value.name,
        value.kind == onnx_file::ValueKind::kTensor ? "tensor of strings" : NameOf(value.kind));
  };
  for (const ValueOutline& input : outline.inputs) {
    if (!CanCross(input)) return describe("Input", input);
  }
  for (const ValueOutline& output : outline.outputs) {
    if (!CanCross(output)) return describe("Output", output);
  }
  return {};
}

base::Status CheckOutput(const DenseTensor& actual, const DenseTensor& expected,
                         const comparison::Tolerance& tolerance, CaseResult& result) {
  const comparison::Comparison comparison = comparison::Compare(actual, expected, tolerance);
  result.worst_ratio = std::max(result.worst_ratio, comparison.worst_ratio);
  if (comparison.is_similar) return base::Ok();
  return Fault(fmt::format("Output '{}': {}", expected.name, comparison.sentence));
}

base::Status RunDataSet(const cases::CaseDescription& description, int number,
                        const ReplayRules& rules, const Target& target, const ModelOutline& outline,
                        onnxGraph graph, CaseResult& result) {
  ONNXIFI_ASSIGN_OR_RETURN(const DataSet data_set, ReadDataSet(description, number, outline));
  if (rules.refuse_constant_outputs) {
    for (const DenseTensor& output : data_set.outputs) {
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
                           client::Execute(target.library, target.extensions, target.backend, graph,
                                           data_set.inputs, data_set.outputs, options));
  if (DrawsRandomNumbers(outline, data_set.inputs)) {
    result.note = "random values: checked for type, shape and distribution";
    return CheckRandomOutputs(outline, data_set.inputs, data_set.outputs, outputs);
  }
  for (size_t index = 0; index < outputs.size(); ++index) {
    ONNXIFI_RETURN_IF_ERROR(
        CheckOutput(outputs[index], data_set.outputs[index], description.tolerance, result));
  }
  return base::Ok();
}

std::string_view NameOf(FileValue::Kind kind) {
  switch (kind) {
    case FileValue::Kind::kNothing:
      return "nothing";
    case FileValue::Kind::kTensor:
      return "a tensor";
    case FileValue::Kind::kSequence:
      return "a sequence";
    case FileValue::Kind::kMap:
      return "a map";
  }
  return "a value";
}

// `what` starts the sentence of a difference.
base::Status CheckValue(const FileValue& actual, const FileValue& expected, const std::string& what,
                        const comparison::Tolerance& tolerance, CaseResult& result) {
  if (actual.kind != expected.kind) {
    return Fault(
        fmt::format("{} is {} instead of {}.", what, NameOf(actual.kind), NameOf(expected.kind)));
  }
  if (expected.kind == FileValue::Kind::kTensor || expected.kind == FileValue::Kind::kMap) {
    const comparison::Comparison comparison =
        comparison::Compare(actual.tensor, expected.tensor, tolerance);
    result.worst_ratio = std::max(result.worst_ratio, comparison.worst_ratio);
    if (!comparison.is_similar) return Fault(fmt::format("{}: {}", what, comparison.sentence));
  }
  if (actual.elements.size() != expected.elements.size()) {
    return Fault(fmt::format("{} has {} elements instead of {}.", what, actual.elements.size(),
                             expected.elements.size()));
  }
  for (size_t index = 0; index < expected.elements.size(); ++index) {
    ONNXIFI_RETURN_IF_ERROR(CheckValue(actual.elements[index], expected.elements[index],
                                       fmt::format("Element {} of {}", index, what), tolerance,
                                       result));
  }
  return base::Ok();
}

// A data set of which a value is no tensor of numbers.
base::Status RunValueSet(const cases::CaseDescription& description, int number,
                         const Target& target, const ModelOutline& outline, onnxGraph graph,
                         CaseResult& result) {
  const std::filesystem::path folder = description.folder / fmt::format("test_data_set_{}", number);
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<FileValue> inputs,
                           ReadValues(folder, "input", outline.inputs));
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<FileValue> expected,
                           ReadValues(folder, "output", outline.outputs));
  client::ExecutionOptions options;
  options.signal_before_run = number % 2 == 1;
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<FileValue> outputs,
                           client::ExecuteOnValues(target.library, target.extensions,
                                                   target.backend, graph, inputs, options));
  if (outputs.size() != expected.size()) {
    return Fault(
        fmt::format("onnxGetRunValues tells {} outputs of {}.", outputs.size(), expected.size()));
  }
  for (size_t index = 0; index < outputs.size(); ++index) {
    if (outputs[index].name != expected[index].name) {
      return Fault(fmt::format("onnxGetRunValues tells '{}' in place of output '{}'.",
                               outputs[index].name, expected[index].name));
    }
    ONNXIFI_RETURN_IF_ERROR(CheckValue(outputs[index], expected[index],
                                       fmt::format("Output '{}'", expected[index].name),
                                       description.tolerance, result));
  }
  return base::Ok();
}

// Each element type of what crosses the interface, once.
std::vector<std::string> ElementTypesOf(const ModelOutline& outline) {
  std::vector<std::string> types;
  for (const std::vector<ValueOutline>* values : {&outline.inputs, &outline.outputs}) {
    for (const ValueOutline& value : *values) {
      std::string type = NameOf(value.type);
      if (std::ranges::find(types, type) == types.end()) types.push_back(std::move(type));
    }
  }
  return types;
}

// The families of the graph's steps; nothing when the library does not tell.
std::optional<std::vector<std::string>> ReadStepFamilies(const Target& target, onnxGraph graph) {
  const auto counts = client::ReadStepFamilies(target.extensions.get_graph_counters, graph);
  if (!counts) return std::nullopt;
  std::vector<std::string> families;
  for (const auto& [family, count] : *counts) families.push_back(family);
  return families;
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

// A graph that served many lengths was lowered once and bound at most once per length; so was each
// of its islands.
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
  if (counters.lowerings != islands) {
    return Fault(fmt::format("The graph was lowered {} times instead of {} for {} lengths.",
                             counters.lowerings, islands, description.length_count));
  }
  const uint64_t most = static_cast<uint64_t>(description.length_count) * islands;
  if (counters.bindings == 0 || counters.bindings > most) {
    return Fault(fmt::format("The graph was bound {} times for {} lengths.", counters.bindings,
                             description.length_count));
  }
  return base::Ok();
}

// How a case's graph is asked about and initialised: for descriptors, or for values.
struct Asking {
  bool by_values = false;
  std::vector<uint64_t> properties;
  // The function that is asked.
  std::string_view function;
};

base::Status RunAll(const cases::CaseDescription& description, const ReplayRules& rules,
                    const Target& target, const ModelOutline& outline,
                    std::span<const std::byte> model, const Asking& asking, CaseResult& result) {
  ScopedGraph graph(target.library);
  ONNXIFI_RETURN_IF_ERROR(client::ExpectSuccess(
      target.library, "onnxInitGraph",
      target.library.onnxInitGraph(target.backend, asking.properties.data(), model.size(),
                                   model.data(), 0, nullptr, graph.address())));
  for (int number = 0; number < description.data_set_count; ++number) {
    base::Status status =
        asking.by_values
            ? RunValueSet(description, number, target, outline, graph.get(), result)
            : RunDataSet(description, number, rules, target, outline, graph.get(), result);
    if (!status.ok()) {
      return description.data_set_count == 1
                 ? std::move(status)
                 : std::move(status).Context(fmt::format("in data set {}", number));
    }
  }
  result.step_families = ReadStepFamilies(target, graph.get());
  if (description.length_count != 0) {
    return CheckCounters(description, target, graph.get(), result);
  }
  return base::Ok();
}

// The device has refused; checks that it did so as it may.
base::Status CheckRefusal(const Target& target, std::span<const std::byte> model,
                          const Asking& asking, onnxStatus refusal, CaseResult& result) {
  if (!client::IsRefusal(refusal)) {
    return Fault(fmt::format("{} answers {} to a legal model: {}", asking.function,
                             StatusName(refusal), target.library.LastError()));
  }
  result.status = StatusName(refusal);
  result.sentence = target.library.LastError();
  if (result.sentence.empty()) {
    if (target.extensions.get_last_error_message != nullptr) {
      return Fault(fmt::format("{} comes without a sentence.", result.status));
    }
    result.sentence = "The library has no means to give a reason.";
  }
  ScopedGraph graph(target.library);
  const onnxStatus initialised =
      target.library.onnxInitGraph(target.backend, asking.properties.data(), model.size(),
                                   model.data(), 0, nullptr, graph.address());
  if (initialised != refusal) {
    return Fault(fmt::format("{} answers {}, onnxInitGraph {}: {}", asking.function, result.status,
                             StatusName(initialised), result.sentence));
  }
  if (graph.get() != nullptr)
    return Fault("onnxInitGraph refuses and stores a graph all the same.");
  return base::Ok();
}

// The graph's properties but for those that go with values.
std::vector<uint64_t> MakeProperties(const ReplayRules& rules) {
  if (!rules.lend_model) return {ONNXIFI_GRAPH_PROPERTY_NONE};
  return {ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL, 1, ONNXIFI_GRAPH_PROPERTY_NONE};
}

base::Status Replay(const cases::CaseDescription& description, const ReplayRules& rules,
                    const Target& target, CaseResult& result) {
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<std::byte> content,
                           onnx_file::ReadFile(description.folder / "model.onnx"));
  ONNXIFI_ASSIGN_OR_RETURN(const ModelOutline outline, onnx_file::ParseModelOutline(content));
  if (!target.alternates.empty()) {
    ONNXIFI_ASSIGN_OR_RETURN(const std::string placed,
                             NameDevicesInTurn(content, target.library, target.alternates));
    const auto bytes = std::as_bytes(std::span(placed));
    content.assign(bytes.begin(), bytes.end());
  }
  std::span<const std::byte> model = content;
  std::optional<onnx_file::OddModel> odd_model;
  if (rules.lend_model) {
    ONNXIFI_ASSIGN_OR_RETURN(odd_model, onnx_file::OddModel::Make(content));
    model = odd_model->content();
  }
  result.operators = outline.operators;
  result.element_types = ElementTypesOf(outline);
  const std::string obstacle = FindValueThatCannotCross(outline);
  Asking asking{.by_values = false,
                .properties = MakeProperties(rules),
                .function = "onnxGetBackendCompatibility"};
  onnxStatus claim =
      target.library.onnxGetBackendCompatibility(target.id, model.size(), model.data());
  if (!obstacle.empty() && client::IsAcceptance(claim)) {
    return Fault(fmt::format("onnxGetBackendCompatibility accepts the model, but {}.", obstacle));
  }
  if (!obstacle.empty() && client::HasValues(target.extensions)) {
    // The standard's functions alone refuse it all the same, also to initialise it.
    ONNXIFI_RETURN_IF_ERROR(CheckRefusal(target, model, asking, claim, result));
    result.status.clear();
    result.sentence.clear();
    asking.by_values = true;
    asking.properties.insert(asking.properties.begin(), {ONNXIFI_SDK_GRAPH_PROPERTY_VALUES, 1});
    asking.function = "onnxGetBackendValueCompatibility";
    claim =
        target.extensions.get_backend_value_compatibility(target.id, model.size(), model.data());
  }
  if (!client::IsAcceptance(claim)) {
    result.verdict = Verdict::kNotSupported;
    return CheckRefusal(target, model, asking, claim, result);
  }
  result.verdict = Verdict::kPass;
  return RunAll(description, rules, target, outline, model, asking, result);
}

}  // namespace

CaseResult ReplayCase(const cases::CaseDescription& description, const ReplayRules& rules,
                      const Target& target) {
  CaseResult result;
  const base::Status status = Replay(description, rules, target, result);
  if (!status.ok()) {
    result.verdict = Verdict::kFail;
    result.sentence = status.Text();
  }
  return result;
}

}  // namespace onnxifi::suites
