// SPDX-License-Identifier: Apache-2.0
//
// Find the devices, read, run in turns, compare.

#include "apps/onnxifi_run/model_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <limits>

#include "apps/onnxifi_run/graph_session.h"
#include "apps/onnxifi_run/input_source.h"
#include "apps/onnxifi_run/library_error.h"
#include "apps/onnxifi_run/plan_reader.h"
#include "apps/onnxifi_run/stopwatch.h"
#include "client/comparison/value_comparison.h"
#include "client/default_library.h"
#include "client/onnx_file/model_inputs.h"
#include "client/onnx_file/node_names.h"
#include "client/printable.h"
#include "discovery/probe/plugin_probe.h"

namespace onnxifi::run {
namespace {

using onnx_file::FileValue;
using onnx_file::ModelOutline;

base::Result<std::vector<FileValue>> ReadExpected(const Options& options,
                                                  const ModelOutline& outline) {
  std::vector<FileValue> expected;
  if (options.expect.empty()) return expected;
  for (size_t index = 0; index < outline.outputs.size(); ++index) {
    ONNXIFI_ASSIGN_OR_RETURN(
        FileValue value,
        onnx_file::ReadValueFile(options.expect / fmt::format("output_{}.pb", index),
                                 outline.outputs[index].kind));
    expected.push_back(std::move(value));
  }
  return expected;
}

// Sentences of a tensor do not name it: the report does.
comparison::Comparison CompareOutput(const FileValue& actual, const FileValue& expected,
                                     const comparison::Tolerance& tolerance) {
  const bool are_tensors = actual.kind == FileValue::Kind::kTensor && expected.kind == actual.kind;
  return are_tensors ? comparison::Compare(actual.tensor, expected.tensor, tolerance)
                     : comparison::CompareValue(actual, expected,
                                                fmt::format("Output '{}'", actual.name), tolerance);
}

// The node of this name, or else of this number.
base::Result<uint32_t> FindNode(const std::string& text,
                                const std::vector<onnx_file::NodeName>& nodes) {
  std::vector<uint32_t> found;
  for (size_t index = 0; index < nodes.size(); ++index) {
    if (nodes[index].name == text) found.push_back(static_cast<uint32_t>(index));
  }
  if (found.size() == 1) return found.front();
  if (found.size() > 1) {
    return base::Status(base::Code::kInvalidName,
                        fmt::format("{} nodes of the model are called '{}', numbers {} and {} among"
                                    " them.",
                                    found.size(), text, found[0], found[1]));
  }
  uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && last == end && number < nodes.size()) return number;
  return base::Status(base::Code::kInvalidName,
                      fmt::format("No node of the model is called '{}', and it is no number below "
                                  "{}.",
                                  text, nodes.size()));
}

// What the options say of where nodes run; nothing where they do not.
base::Result<std::optional<Placement>> PlacementOf(const Options& options,
                                                   std::span<const std::byte> model) {
  const bool has_any = options.placement != ONNXIFI_SDK_PLACEMENT_AUTO || !options.pins.empty() ||
                       !options.replay_plan.empty();
  if (!has_any) return std::optional<Placement>();
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<onnx_file::NodeName> nodes,
                           onnx_file::ParseNodeNames(model));
  Placement placement;
  if (!options.replay_plan.empty()) {
    ONNXIFI_ASSIGN_OR_RETURN(placement, ReadPlan(options.replay_plan, nodes));
    return std::optional(std::move(placement));
  }
  placement.kind = options.placement;
  placement.device_keys = options.placement_keys;
  for (const auto& [node, key] : options.pins) {
    ONNXIFI_ASSIGN_OR_RETURN(const uint32_t index, FindNode(node, nodes));
    placement.groups.push_back({key, {index}});
  }
  return std::optional(std::move(placement));
}

// What the caller places by single nodes; none where a plan is given.
std::vector<Placement::Group> PinsOf(const Options& options,
                                     const std::optional<Placement>& placement) {
  if (!placement || !options.replay_plan.empty()) return {};
  return placement->groups;
}

// A session's parts, with those that all sessions of the program share.
FirstResult WithCommonParts(FirstResult times, const FirstResult& common) {
  times.probe_ms = common.probe_ms;
  times.discover_ms = common.discover_ms;
  times.read_ms = common.read_ms;
  return times;
}

// Runs each once without counting it, and then all in turns, in another order every time, so that
// what slows the machine down for a while slows them all.
base::Status TakeTurns(const Options& options, GraphSession& session,
                       std::vector<GraphSession>& others, RunReport& report) {
  std::vector<GraphSession*> sessions = {&session};
  for (GraphSession& other : others) sessions.push_back(&other);
  std::vector<std::vector<double>> run_ms(sessions.size());
  for (int round = -1; round < options.repeat; ++round) {
    for (size_t turn = 0; turn < sessions.size(); ++turn) {
      const size_t place = (turn + static_cast<size_t>(round + 1)) % sessions.size();
      ONNXIFI_ASSIGN_OR_RETURN(const double milliseconds, sessions[place]->Run());
      if (round < 0) continue;
      run_ms[place].push_back(milliseconds);
      if (place > 0 || !options.profile) continue;
      auto steps = session.graph().Profile();
      if (!steps) return ToStatus(steps.error(), "asking for the profile");
      report.step_records.push_back(*std::move(steps));
    }
  }
  report.run_ms = std::move(run_ms[0]);
  for (size_t place = 1; place < sessions.size(); ++place) {
    report.beside.push_back({sessions[place]->device_key(),
                             WithCommonParts(sessions[place]->first_result(), report.first_result),
                             std::move(run_ms[place])});
  }
  report.first_result = WithCommonParts(session.first_result(), report.first_result);
  return base::Ok();
}

// To a precision; records do not tell of rows that were rounded to 8 bits.
bool HasRounded(const RunReport& report) {
  return !report.step_records.empty() &&
         std::ranges::any_of(report.step_records.back(), [](const StepRecord& step) {
           return step.precision != ONNXIFI_SDK_PRECISION_FLOAT32;
         });
}

// Runs the model on the device once more, in float32, and rounds nothing.
base::Result<std::vector<OutputError>> ErrorsAgainstFloat32(
    const Device& device, const SessionRequest& request, const std::optional<Placement>& placement,
    const std::vector<FileValue>& outputs) {
  ONNXIFI_ASSIGN_OR_RETURN(GraphSession session,
                           GraphSession::Open(device, request, placement, /*is_profiled=*/false,
                                              /*rounding=*/{}));
  ONNXIFI_RETURN_IF_ERROR(session.Run().status());
  const std::vector<FileValue> exact = session.TakeOutputs();
  comparison::Tolerance tolerance;
  tolerance.rms_factor = 1;
  std::vector<OutputError> errors;
  for (size_t index = 0; index < outputs.size(); ++index) {
    const bool is_same_shape = outputs[index].tensor.extents == exact[index].tensor.extents &&
                               outputs[index].elements.size() == exact[index].elements.size();
    errors.push_back({outputs[index].name,
                      is_same_shape
                          ? CompareOutput(outputs[index], exact[index], tolerance).worst_ratio
                          : std::numeric_limits<double>::infinity()});
  }
  return errors;
}

// What this program does before it compiles the model, for the processes that try a plugin: opens
// the library and initialises the devices that it is going to use, or that auto may.
void Rehearse(const Options& options, const std::filesystem::path& path,
              const probe::EnterStage& enter) {
  enter("it is opened and lists its devices");
  const auto library = Library::Open(path.string());
  if (!library) return;
  std::vector<std::string> names = options.beside;
  names.push_back(options.device);
  const bool takes_all = std::ranges::any_of(
      names, [](const std::string& name) { return name.empty() || name == "auto"; });
  std::vector<Device> devices;
  if (takes_all) {
    if (auto all = library->Devices()) devices = *std::move(all);
  } else {
    for (const std::string& name : names) {
      if (auto found = library->FindDevice(name)) devices.push_back(*std::move(found));
    }
  }
  for (const Device& device : devices) {
    enter("device " + KeyOf(device) + " is initialised");
    static_cast<void>(device.InitBackend().ok());
  }
}

bool HasNoShape(const onnx_file::ValueOutline& input) {
  return input.kind == onnx_file::ValueKind::kTensor && !input.shape;
}

// A list of as many integers as a caller gives, which may be extents or axes.
bool IsOpenList(const onnx_file::ValueOutline& input) {
  using onnx_file::ElementType;
  return input.kind == onnx_file::ValueKind::kTensor && input.shape && input.shape->size() == 1 &&
         !input.shape->front().extent &&
         (input.type == ElementType::kInt64 || input.type == ElementType::kInt32);
}

// The model with the shapes of those given inputs that `is_open` is true of; empty without any.
base::Result<std::string> WithShapes(std::span<const std::byte> model, const ModelOutline& outline,
                                     const std::vector<onnx_file::DenseTensor>& inputs,
                                     bool (*is_open)(const onnx_file::ValueOutline&)) {
  onnx_file::ExtentsByName extents;
  for (size_t index = 0; index < inputs.size(); ++index) {
    if (!is_open(outline.inputs[index])) continue;
    const std::vector<int64_t>& given = inputs[index].extents;
    extents[outline.inputs[index].name].assign(given.begin(), given.end());
  }
  if (extents.empty()) return std::string();
  return onnx_file::DeclareExtents(model, extents);
}

// What is refused with a list of any length of extents may run with as many as are given. `listed`
// holds the model then.
base::Result<GraphSession> OpenSession(const Options& options, const Device& device,
                                       SessionRequest& request,
                                       const std::optional<Placement>& placement,
                                       std::string& listed) {
  const auto open = [&] {
    return GraphSession::Open(device, request, placement, options.profile, options.rounding);
  };
  base::Result<GraphSession> session = open();
  if (session.ok() || session.status().code() != base::Code::kUnsupportedShape) return session;
  ONNXIFI_ASSIGN_OR_RETURN(listed,
                           WithShapes(request.model, request.outline, request.inputs, IsOpenList));
  if (listed.empty()) return session;
  request.model = std::as_bytes(std::span(listed));
  return open();
}

}  // namespace

bool RunReport::is_as_expected() const {
  return std::ranges::all_of(differences, &std::string::empty);
}

base::Result<std::filesystem::path> FindSafeLibrary(const Options& options) {
  std::filesystem::path path = options.library;
  if (path.empty()) {
    ONNXIFI_ASSIGN_OR_RETURN(path, client::FindDefaultLibrary());
  }
  const std::chrono::milliseconds limit(static_cast<int64_t>(options.probe_limit_s * 1000));
  if (limit.count() > 0) {
    const auto trial = [&](const probe::EnterStage& enter) { Rehearse(options, path, enter); };
    const auto findings = probe::ProbePlugins(path, trial, limit);
    for (const probe::Finding& finding : findings) {
      fmt::print(stderr, "onnxifi_run: Plugin '{}' is not used. {}\n", finding.path.string(),
                 client::Printable(finding.sentence));
    }
    probe::Disable(findings);
  }
  return path;
}

base::Result<Library> OpenLibrary(const std::filesystem::path& path) {
  auto library = Library::Open(path.string());
  if (!library) return ToStatus(library.error(), "opening the library");
  return *std::move(library);
}

base::Result<Device> FindDevice(const Library& library, const std::string& name) {
  if (name.empty()) {
    auto devices = library.Devices();
    if (!devices) return ToStatus(devices.error(), "listing the devices");
    if (!devices->empty()) return devices->front();
    return base::Status(base::Code::kBackendUnavailable,
                        "The library lists no device; onnxifi_info says why.");
  }
  auto device = library.FindDevice(name);
  if (!device) return ToStatus(device.error(), "choosing the device");
  return *std::move(device);
}

base::Result<Explanation> ExplainModel(const Device& device, std::span<const std::byte> model) {
  auto explanation = device.Explain(model);
  if (!explanation) return ToStatus(explanation.error(), "asking about the nodes");
  return *std::move(explanation);
}

base::Result<client::ModelAnswers> AskDevices(const Library& library, const Options& options,
                                              std::span<const std::byte> model) {
  auto answers = client::AskDevices(library, model, BaseFolderOf(options));
  if (!answers) return ToStatus(answers.error(), "asking the devices about the nodes");
  return *std::move(answers);
}

base::Result<RunReport> RunModel(const Options& options, const Device& device,
                                 std::span<const Device> beside, std::span<const std::byte> model,
                                 const ModelOutline& outline, const FirstResult& before) {
  RunReport report;
  report.first_result = before;
  report.device_key = KeyOf(device);
  report.device_name =
      device.TextInfo(ONNXIFI_BACKEND_DEVICE) ? *device.TextInfo(ONNXIFI_BACKEND_DEVICE) : "";
  Stopwatch stopwatch;
  ONNXIFI_ASSIGN_OR_RETURN(report.inputs, CollectInputs(options, outline));
  report.first_result.read_ms += stopwatch.Lap();
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<FileValue> expected, ReadExpected(options, outline));
  ONNXIFI_ASSIGN_OR_RETURN(const std::optional<Placement> placement, PlacementOf(options, model));
  report.has_placement = placement.has_value();
  for (const auto& [key, nodes] : PinsOf(options, placement)) {
    for (const uint32_t node : nodes) report.pinned[node] = key;
  }
  ONNXIFI_ASSIGN_OR_RETURN(const std::string declared,
                           WithShapes(model, outline, report.inputs, HasNoShape));
  if (!declared.empty()) model = std::as_bytes(std::span(declared));
  SessionRequest request{options, model, outline, report.inputs, expected};
  std::string listed;
  ONNXIFI_ASSIGN_OR_RETURN(GraphSession session,
                           OpenSession(options, device, request, placement, listed));
  std::vector<GraphSession> others;
  for (const Device& other : beside) {
    ONNXIFI_ASSIGN_OR_RETURN(GraphSession opened,
                             GraphSession::Open(other, request, /*placement=*/{},
                                                /*is_profiled=*/false, options.rounding));
    others.push_back(std::move(opened));
  }
  if (options.profile) {
    if (auto stages = session.graph().LoadProfile()) report.load_records = *std::move(stages);
  }
  ONNXIFI_RETURN_IF_ERROR(TakeTurns(options, session, others, report));
  report.outputs = session.TakeOutputs();
  for (const auto& output : outline.outputs) report.output_kinds.push_back(output.kind);
  if (options.profile && (options.rounding.dynamic_quantization || HasRounded(report))) {
    ONNXIFI_ASSIGN_OR_RETURN(report.errors,
                             ErrorsAgainstFloat32(device, request, placement, report.outputs));
  }
  if (const auto counters = session.graph().Counters()) report.counters = *counters;
  auto plan = session.graph().Plan();
  if (!plan && !options.plan.empty()) return ToStatus(plan.error(), "asking for the plan");
  if (plan) report.plan = *std::move(plan);
  comparison::Tolerance tolerance;
  tolerance.rms_factor = 1e-4;
  for (size_t index = 0; index < expected.size(); ++index) {
    const comparison::Comparison comparison =
        CompareOutput(report.outputs[index], expected[index], tolerance);
    report.worst_ratios.push_back(comparison.worst_ratio);
    report.differences.push_back(comparison.sentence);
  }
  return report;
}

}  // namespace onnxifi::run
