// SPDX-License-Identifier: Apache-2.0
//
// GraphSession: initialise, find the outputs' shapes, bind, run.

#include "apps/onnxifi_run/graph_session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <ranges>

#include "apps/onnxifi_run/library_error.h"
#include "apps/onnxifi_run/stopwatch.h"
#include "client/value_run.h"

namespace onnxifi::run {
namespace {

using onnx_file::DenseTensor;
using onnx_file::FileValue;
using onnx_file::ModelOutline;

// The first that is none; null where all are.
const onnx_file::ValueOutline* FindOtherThanNumbers(const ModelOutline& outline) {
  for (const auto* values : {&outline.inputs, &outline.outputs}) {
    const auto other =
        std::ranges::find_if_not(*values, &onnx_file::ValueOutline::may_be_of_numbers);
    if (other != values->end()) return &*other;
  }
  return nullptr;
}

// Those of numbers.
std::vector<Tensor> Lend(std::vector<DenseTensor>& tensors) {
  std::vector<Tensor> lent;
  for (DenseTensor& tensor : tensors) {
    if (tensor.type == onnx_file::ElementType::kString) continue;
    Tensor& lend = lent.emplace_back();
    lend.name = tensor.name;
    lend.data_type = static_cast<onnxEnum>(tensor.type);
    lend.shape.assign(tensor.extents.begin(), tensor.extents.end());
    lend.data = tensor.bytes.data();
  }
  return lent;
}

// Those of strings.
std::vector<Value> CopyTexts(const std::vector<DenseTensor>& tensors) {
  std::vector<Value> values;
  for (const DenseTensor& tensor : tensors) {
    if (tensor.type != onnx_file::ElementType::kString) continue;
    Value& value = values.emplace_back();
    value.name = tensor.name;
    value.data_type = static_cast<onnxEnum>(tensor.type);
    value.extents = tensor.extents;
    value.strings = tensor.strings;
  }
  return values;
}

// The extents of output `index`: as inferred, and where they depend on data, as expected, or as
// --dim says for the symbol that the model gives.
base::Result<std::vector<int64_t>> BoundOf(const OutputShape& shape, size_t index,
                                           const Options& options, const ModelOutline& outline,
                                           const std::vector<FileValue>& expected) {
  const bool is_known = shape.has_rank && std::ranges::none_of(shape.extents, [](int64_t extent) {
                          return extent == ONNXIFI_SDK_UNKNOWN;
                        });
  if (is_known) return shape.extents;
  if (!expected.empty()) return expected[index].tensor.extents;
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

base::Result<std::vector<OutputShape>> InferShapes(const Graph& graph,
                                                   std::vector<DenseTensor>& inputs,
                                                   const ModelOutline& outline) {
  auto shapes = graph.InferOutputShapes(Lend(inputs));
  if (!shapes && shapes.error().status == ONNXIFI_STATUS_UNIDENTIFIED_NAME) {
    return DeclaredShapes(outline);  // A plain ONNXIFI 1.0 library.
  }
  if (!shapes) return ToStatus(shapes.error(), "asking for the shapes of the outputs");
  if (shapes->size() != outline.outputs.size()) {
    return base::Status(base::Code::kInternalError,
                        fmt::format("The library reports {} outputs, the model has {}.",
                                    shapes->size(), outline.outputs.size()));
  }
  return *std::move(shapes);
}

bool HasBounds(const std::vector<OutputShape>& shapes, const Options& options,
               const ModelOutline& outline, const std::vector<FileValue>& expected) {
  for (size_t index = 0; index < shapes.size(); ++index) {
    if (!BoundOf(shapes[index], index, options, outline, expected).ok()) return false;
  }
  return true;
}

base::Result<std::vector<DenseTensor>> MakeOutputs(const std::vector<OutputShape>& shapes,
                                                   const Options& options,
                                                   const ModelOutline& outline,
                                                   const std::vector<FileValue>& expected) {
  std::vector<DenseTensor> outputs;
  for (size_t index = 0; index < shapes.size(); ++index) {
    DenseTensor& output = outputs.emplace_back();
    output.name = outline.outputs[index].name;
    output.type = static_cast<onnx_file::ElementType>(shapes[index].data_type);
    ONNXIFI_ASSIGN_OR_RETURN(output.extents,
                             BoundOf(shapes[index], index, options, outline, expected));
    const std::optional<int64_t> count = onnx_file::ElementCount(output.extents);
    const std::optional<int64_t> size_bytes =
        count ? onnx_file::SizeBytes(output.type, *count) : std::nullopt;
    constexpr int64_t kMaxBytes = int64_t{1} << 36;
    if (!size_bytes || *size_bytes > kMaxBytes) {
      return base::Status(base::Code::kInvalidShape,
                          fmt::format("Output '{}' of shape {} needs more than {} bytes.",
                                      output.name, onnx_file::ToString(output.extents), kMaxBytes));
    }
    output.bytes.resize(static_cast<size_t>(*size_bytes));
  }
  return outputs;
}

void CutToShape(DenseTensor& output) {
  const std::optional<int64_t> count = onnx_file::ElementCount(output.extents);
  const std::optional<int64_t> size_bytes =
      count ? onnx_file::SizeBytes(output.type, *count) : std::nullopt;
  if (size_bytes && static_cast<size_t>(*size_bytes) < output.bytes.size()) {
    output.bytes.resize(static_cast<size_t>(*size_bytes));
  }
}

}  // namespace

std::string KeyOf(const Device& device) {
  const auto key = device.Key();
  return key ? *key : "";
}

std::string BaseFolderOf(const Options& options) {
  return std::filesystem::absolute(options.model).parent_path().string();
}

base::Result<GraphSession> GraphSession::Open(const Device& device, const SessionRequest& request,
                                              const std::optional<Placement>& placement,
                                              bool is_profiled,
                                              const RoundingPermissions& rounding) {
  const Options& options = request.options;
  FirstResult times;
  Stopwatch stopwatch;
  auto backend = device.InitBackend();
  if (!backend) return ToStatus(backend.error(), "initialising the device");
  times.init_backend_ms = stopwatch.Lap();
  GraphOptions graph_options;
  if (request.outline.has_external_data) graph_options.base_folder = BaseFolderOf(options);
  graph_options.profile = is_profiled;
  graph_options.fast_algorithms = !options.exact_algorithms;
  const auto taken = device.NumberInfo(ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES);
  const auto takes = [&taken](uint64_t property) { return taken && (*taken & property) != 0; };
  graph_options.mapped_model = takes(ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL);  // MappedFile's
  graph_options.lasting_model = takes(ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL);
  graph_options.caller_runs = takes(ONNXIFI_SDK_GRAPH_PROPERTY_CALLER_RUNS);  // Run waits
  if (takes(ONNXIFI_SDK_GRAPH_PROPERTY_PRECISION)) graph_options.precision = rounding.precision;
  graph_options.dynamic_quantization =
      rounding.dynamic_quantization && takes(ONNXIFI_SDK_GRAPH_PROPERTY_DYNAMIC_QUANTIZATION);
  graph_options.measure = options.measure && takes(ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE);
  graph_options.placement = placement;
  if (placement && !takes(ONNXIFI_SDK_GRAPH_PROPERTY_PLACEMENT)) {
    return base::Status(
        base::Code::kUnsupportedProperty,
        fmt::format("Device '{}' has no others to place nodes on; --device auto has.",
                    KeyOf(device)));
  }
  const onnx_file::ValueOutline* const other = FindOtherThanNumbers(request.outline);
  const bool takes_values = takes(ONNXIFI_SDK_GRAPH_PROPERTY_VALUES);
  if (other != nullptr && !takes_values) {
    return base::Status(
        base::Code::kUnsupportedProperty,
        fmt::format("'{}' is no tensor of numbers, and device '{}' takes nothing else.",
                    other->name, KeyOf(device)));
  }
  graph_options.values = other != nullptr;
  auto graph = backend->InitGraph(request.model, graph_options);
  if (!graph && takes_values && graph.error().status == ONNXIFI_STATUS_MISMATCHING_SHAPE) {
    // The file declares shapes that do not follow. Values bring their own.
    graph_options.values = true;
    if (auto by_values = backend->InitGraph(request.model, graph_options)) {
      graph = std::move(by_values);
    } else {
      graph_options.values = false;
    }
  }
  if (!graph) return ToStatus(graph.error(), "initialising the model");
  times.init_graph_ms = stopwatch.Lap();
  GraphSession session(*std::move(backend), *std::move(graph));
  session.device_key_ = KeyOf(device);
  const ModelOutline& outline = request.outline;
  for (const auto& output : outline.outputs) session.output_names_.push_back(output.name);
  session.by_values_ = graph_options.values;
  if (!session.by_values_) {
    ONNXIFI_ASSIGN_OR_RETURN(const std::vector<OutputShape> shapes,
                             InferShapes(session.graph_, request.inputs, outline));
    if (takes_values && !HasBounds(shapes, options, outline, request.expected)) {
      // Once more; a plain plugin behind libonnxifi refuses it, and then only a bound helps.
      graph_options.values = true;
      if (auto by_values = session.backend_.InitGraph(request.model, graph_options)) {
        session.graph_ = *std::move(by_values);
        session.by_values_ = true;
      }
    }
    if (!session.by_values_) {
      ONNXIFI_ASSIGN_OR_RETURN(session.outputs_,
                               MakeOutputs(shapes, options, outline, request.expected));
    }
  }
  times.infer_shapes_ms = stopwatch.Lap();
  const auto bound = session.by_values_
                         ? session.graph_.SetValues(CopyTexts(request.inputs), Lend(request.inputs))
                         : session.graph_.SetIO(Lend(request.inputs), Lend(session.outputs_));
  if (!bound) return ToStatus(bound.error(), "binding inputs and outputs");
  times.bind_ms = stopwatch.Lap();
  session.first_result_ = times;
  return session;
}

base::Result<double> GraphSession::Run() {
  const auto input = backend_.NewEvent();
  if (!input) return ToStatus(input.error(), "making an event");
  if (const Outcome signalled = input->Signal(); !signalled) {
    return ToStatus(signalled.error(), "signalling the inputs");
  }
  Stopwatch stopwatch;
  const auto end = graph_.Run(*input);
  if (!end) return ToStatus(end.error(), "starting the run");
  if (const Outcome waited = end->Wait(); !waited) return ToStatus(waited.error(), "running");
  const double milliseconds = stopwatch.Lap();
  if (!std::exchange(has_run_, true)) first_result_.first_run_ms = milliseconds;
  if (by_values_) {
    values_.clear();
    const Outcome kept = end->VisitValues(
        [this](const onnxValue& value) { values_.push_back(client::FromRecord(value)); });
    if (!kept) return ToStatus(kept.error(), "asking for the outputs of the run");
    if (!std::ranges::equal(values_, output_names_, {}, &FileValue::name)) {
      return base::Status(
          base::Code::kInternalError,
          fmt::format("The run kept the outputs '{}'; the model has '{}'.",
                      fmt::join(values_ | std::views::transform(&FileValue::name), "', '"),
                      fmt::join(output_names_, "', '")));
    }
    return milliseconds;
  }
  const auto shapes = end->OutputShapes();
  if (!shapes && shapes.error().status == ONNXIFI_STATUS_UNIDENTIFIED_NAME) return milliseconds;
  if (!shapes) return ToStatus(shapes.error(), "asking for the shapes after the run");
  for (const OutputShape& shape : *shapes) {
    const auto output = std::ranges::find(outputs_, shape.name, &DenseTensor::name);
    if (output != outputs_.end()) output->extents = shape.extents;
  }
  return milliseconds;
}

std::vector<FileValue> GraphSession::TakeOutputs() {
  if (by_values_) return std::move(values_);
  std::vector<FileValue> outputs;
  for (DenseTensor& output : outputs_) {
    CutToShape(output);
    FileValue& value = outputs.emplace_back();
    value.name = output.name;
    value.kind = FileValue::Kind::kTensor;
    value.tensor = std::move(output);
  }
  return outputs;
}

}  // namespace onnxifi::run
