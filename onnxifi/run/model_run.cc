// SPDX-License-Identifier: Apache-2.0
//
// Initialise, find the outputs' shapes, bind, run, compare.

#include "onnxifi/run/model_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "conformance/client/default_library.h"
#include "conformance/comparison/comparison.h"
#include "conformance/onnx_file/node_names.h"
#include "onnxifi/run/input_source.h"
#include "onnxifi/run/plan_reader.h"

namespace onnxifi::run {
namespace {

using onnx_file::DenseTensor;
using onnx_file::ModelOutline;
using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

base::Status ToStatus(const Error& error, std::string_view doing) {
  // The SDK numbers its codes as the interface does.
  base::Status status(static_cast<base::Code>(error.status),
                      error.sentence.empty() ? "The library gives no reason." : error.sentence);
  return std::move(status.Context(fmt::format("while {} ({})", doing, StatusName(error.status))));
}

// Where the model's external data are.
std::string BaseFolderOf(const Options& options) {
  return std::filesystem::absolute(options.model).parent_path().string();
}

std::vector<Tensor> Lend(std::vector<DenseTensor>& tensors) {
  std::vector<Tensor> lent;
  for (DenseTensor& tensor : tensors) {
    Tensor& lend = lent.emplace_back();
    lend.name = tensor.name;
    lend.data_type = static_cast<onnxEnum>(tensor.type);
    lend.shape.assign(tensor.extents.begin(), tensor.extents.end());
    lend.data = tensor.bytes.data();
  }
  return lent;
}

base::Result<std::vector<DenseTensor>> ReadExpected(const Options& options,
                                                    const ModelOutline& outline) {
  std::vector<DenseTensor> expected;
  if (options.expect.empty()) return expected;
  for (size_t index = 0; index < outline.outputs.size(); ++index) {
    ONNXIFI_ASSIGN_OR_RETURN(
        DenseTensor tensor,
        onnx_file::ReadTensorFile(options.expect / fmt::format("output_{}.pb", index)));
    expected.push_back(std::move(tensor));
  }
  return expected;
}

// The extents of output `index`: as inferred, and where they depend on data, as expected, or as
// --dim says for the symbol that the model gives.
base::Result<std::vector<int64_t>> BoundOf(const OutputShape& shape, size_t index,
                                           const Options& options, const ModelOutline& outline,
                                           const std::vector<DenseTensor>& expected) {
  const bool is_known = shape.has_rank && std::ranges::none_of(shape.extents, [](int64_t extent) {
                          return extent == ONNXIFI_SDK_UNKNOWN;
                        });
  if (is_known) return shape.extents;
  if (!expected.empty()) return expected[index].extents;
  if (!shape.has_rank) {
    return base::Status(
        base::Code::kInvalidShape,
        fmt::format("The rank of output '{}' depends on data; --expect may tell its "
                    "largest shape.",
                    shape.name));
  }
  std::vector<int64_t> extents = shape.extents;
  const auto& declared = outline.outputs[index].shape;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] != ONNXIFI_SDK_UNKNOWN) continue;
    const std::string symbol =
        declared && axis < declared->size() ? (*declared)[axis].symbol : std::string();
    const auto number = options.dims.find(symbol);
    if (number == options.dims.end()) {
      return base::Status(
          base::Code::kInvalidShape,
          fmt::format("Extent {} of output '{}' is not known before the run; {}.", axis, shape.name,
                      symbol.empty() ? "--expect may tell its largest value"
                                     : fmt::format("--dim {}=N tells its largest value", symbol)));
    }
    extents[axis] = number->second;
  }
  return extents;
}

// The shapes as the model declares them, with symbols as unknown extents.
std::vector<OutputShape> DeclaredShapes(const ModelOutline& outline) {
  std::vector<OutputShape> shapes;
  for (const onnx_file::ValueOutline& output : outline.outputs) {
    OutputShape& shape = shapes.emplace_back();
    shape.name = output.name;
    shape.data_type = static_cast<onnxEnum>(output.type);
    shape.has_rank = output.shape.has_value();
    if (!output.shape) continue;
    for (const onnx_file::DimensionOutline& dimension : *output.shape) {
      shape.extents.push_back(dimension.extent.value_or(ONNXIFI_SDK_UNKNOWN));
    }
  }
  return shapes;
}

base::Result<std::vector<DenseTensor>> MakeOutputs(const Options& options, const Graph& graph,
                                                   std::vector<DenseTensor>& inputs,
                                                   const ModelOutline& outline,
                                                   const std::vector<DenseTensor>& expected) {
  auto shapes = graph.InferOutputShapes(Lend(inputs));
  if (!shapes && shapes.error().status == ONNXIFI_STATUS_UNIDENTIFIED_NAME) {
    shapes = DeclaredShapes(outline);  // A plain ONNXIFI 1.0 library.
  }
  if (!shapes) return ToStatus(shapes.error(), "asking for the shapes of the outputs");
  if (shapes->size() != outline.outputs.size()) {
    return base::Status(base::Code::kInternalError,
                        fmt::format("The library reports {} outputs, the model has {}.",
                                    shapes->size(), outline.outputs.size()));
  }
  std::vector<DenseTensor> outputs;
  for (size_t index = 0; index < shapes->size(); ++index) {
    DenseTensor& output = outputs.emplace_back();
    output.name = outline.outputs[index].name;
    output.type = static_cast<onnx_file::ElementType>((*shapes)[index].data_type);
    ONNXIFI_ASSIGN_OR_RETURN(output.extents,
                             BoundOf((*shapes)[index], index, options, outline, expected));
    const std::optional<int64_t> count = onnx_file::ElementCount(output.extents);
    const std::optional<int64_t> size_bytes =
        count ? onnx_file::SizeBytes(output.type, *count) : std::nullopt;
    constexpr int64_t kMostBytes = int64_t{1} << 36;
    if (!size_bytes || *size_bytes > kMostBytes) {
      return base::Status(
          base::Code::kInvalidShape,
          fmt::format("Output '{}' of shape {} needs more than {} bytes.", output.name,
                      onnx_file::ToString(output.extents), kMostBytes));
    }
    output.bytes.resize(static_cast<size_t>(*size_bytes));
  }
  return outputs;
}

// One run; afterwards outputs bound by an upper bound have the shape that the run gave them.
base::Status RunOnce(const Backend& backend, const Graph& graph, std::vector<DenseTensor>& outputs,
                     double& milliseconds) {
  const auto input = backend.NewEvent();
  if (!input) return ToStatus(input.error(), "making an event");
  if (const Outcome signalled = input->Signal(); !signalled) {
    return ToStatus(signalled.error(), "signalling the inputs");
  }
  const Clock::time_point start = Clock::now();
  const auto end = graph.Run(*input);
  if (!end) return ToStatus(end.error(), "starting the run");
  if (const Outcome waited = end->Wait(); !waited) return ToStatus(waited.error(), "running");
  milliseconds = MillisecondsSince(start);
  const auto shapes = end->OutputShapes();
  if (!shapes && shapes.error().status == ONNXIFI_STATUS_UNIDENTIFIED_NAME) return base::Ok();
  if (!shapes) return ToStatus(shapes.error(), "asking for the shapes after the run");
  for (const OutputShape& shape : *shapes) {
    const auto output = std::ranges::find(outputs, shape.name, &DenseTensor::name);
    if (output != outputs.end()) output->extents = shape.extents;
  }
  return base::Ok();
}

void CutToShape(DenseTensor& output) {
  const std::optional<int64_t> count = onnx_file::ElementCount(output.extents);
  const std::optional<int64_t> size_bytes =
      count ? onnx_file::SizeBytes(output.type, *count) : std::nullopt;
  if (size_bytes && static_cast<size_t>(*size_bytes) < output.bytes.size()) {
    output.bytes.resize(static_cast<size_t>(*size_bytes));
  }
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

}  // namespace

bool RunReport::is_as_expected() const {
  return std::ranges::all_of(differences, &std::string::empty);
}

base::Result<Library> OpenLibrary(const Options& options) {
  std::filesystem::path path = options.library;
  if (path.empty()) {
    ONNXIFI_ASSIGN_OR_RETURN(path, client::FindDefaultLibrary());
  }
  auto library = Library::Open(path.string());
  if (!library) return ToStatus(library.error(), "opening the library");
  return *std::move(library);
}

base::Result<Device> FindDevice(const Library& library, const Options& options) {
  if (options.device.empty()) {
    auto devices = library.Devices();
    if (!devices) return ToStatus(devices.error(), "listing the devices");
    if (!devices->empty()) return devices->front();
    return base::Status(base::Code::kBackendUnavailable, "The library lists no device.");
  }
  auto device = library.FindDevice(options.device);
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
                                 std::span<const std::byte> model, const ModelOutline& outline) {
  RunReport report;
  report.device_key = device.Key() ? *device.Key() : "";
  report.device_name =
      device.TextInfo(ONNXIFI_BACKEND_DEVICE) ? *device.TextInfo(ONNXIFI_BACKEND_DEVICE) : "";
  ONNXIFI_ASSIGN_OR_RETURN(report.inputs, CollectInputs(options, outline));
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<DenseTensor> expected, ReadExpected(options, outline));
  const auto backend = device.InitBackend();
  if (!backend) return ToStatus(backend.error(), "initialising the device");
  GraphOptions graph_options;
  if (outline.has_external_data) {
    graph_options.base_folder = BaseFolderOf(options);
  }
  graph_options.profile = options.profile;
  graph_options.fast_algorithms = !options.exact_algorithms;
  const auto taken = device.NumberInfo(ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES);
  graph_options.mapped_model =
      taken && (*taken & ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL) != 0;  // MappedFile's
  ONNXIFI_ASSIGN_OR_RETURN(graph_options.placement, PlacementOf(options, model));
  if (graph_options.placement && (!taken || (*taken & ONNXIFI_SDK_GRAPH_PROPERTY_PLACEMENT) == 0)) {
    return base::Status(
        base::Code::kUnsupportedProperty,
        fmt::format("Device '{}' has no others to place nodes on; --device auto has.",
                    report.device_key));
  }
  const Clock::time_point start = Clock::now();
  const auto graph = backend->InitGraph(model, graph_options);
  if (!graph) return ToStatus(graph.error(), "initialising the model");
  report.init_ms = MillisecondsSince(start);
  if (options.profile) {
    if (auto stages = graph->LoadProfile()) report.load_records = *std::move(stages);
  }

  ONNXIFI_ASSIGN_OR_RETURN(report.outputs,
                           MakeOutputs(options, *graph, report.inputs, outline, expected));
  const Clock::time_point before_binding = Clock::now();
  const auto bound = graph->SetIO(Lend(report.inputs), Lend(report.outputs));
  if (!bound) return ToStatus(bound.error(), "binding inputs and outputs");
  report.bind_ms = MillisecondsSince(before_binding);
  double milliseconds = 0;
  ONNXIFI_RETURN_IF_ERROR(RunOnce(*backend, *graph, report.outputs, milliseconds));
  for (int run = 0; run < options.repeat; ++run) {
    ONNXIFI_RETURN_IF_ERROR(RunOnce(*backend, *graph, report.outputs, milliseconds));
    report.run_ms.push_back(milliseconds);
    if (!options.profile) continue;
    auto steps = graph->Profile();
    if (!steps) return ToStatus(steps.error(), "asking for the profile");
    report.step_records.push_back(*std::move(steps));
  }
  std::ranges::for_each(report.outputs, CutToShape);
  if (const auto counters = graph->Counters()) report.counters = *counters;
  if (!options.plan.empty() || options.explain) {
    auto plan = graph->Plan();
    const bool is_needed = !options.plan.empty();
    if (!plan && is_needed) return ToStatus(plan.error(), "asking for the plan");
    if (plan) report.plan = *std::move(plan);
  }
  comparison::Tolerance tolerance;
  tolerance.rms_factor = 1e-4;
  for (size_t index = 0; index < expected.size(); ++index) {
    const comparison::Comparison comparison =
        comparison::Compare(report.outputs[index], expected[index], tolerance);
    report.worst_ratios.push_back(comparison.worst_ratio);
    report.differences.push_back(comparison.sentence);
  }
  return report;
}

}  // namespace onnxifi::run
