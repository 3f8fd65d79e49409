// SPDX-License-Identifier: Apache-2.0
//
// Inputs and outputs that no descriptor carries: refused by the standard's functions alone, bound
// and read by the SDK's extension, and what that says to values that do not fit.

#include <onnxifi/sdk.h>

#include <array>
#include <string>
#include <vector>

#include "client/value_run.h"
#include "conformance/suites/interface/case_groups.h"
#include "conformance/suites/interface/check.h"
#include "conformance/suites/interface/scene.h"
#include "conformance/suites/interface/small_models.h"

namespace onnxifi::suites {
namespace {

using onnx_file::FileValue;

// t = s, strings [N]; y = Relu(x), float32 [2].
std::string MakeModelOfStrings() {
  return ModelWriter()
      .Input("s", ElementType::kString, {"N"})
      .Input("x", ElementType::kFloat32, {2})
      .Node("Identity", {"s"}, {"t"})
      .Node("Relu", {"x"}, {"y"})
      .Output("t", ElementType::kString, {"N"})
      .Output("y", ElementType::kFloat32, {2})
      .Build();
}

FileValue Strings(std::string name, std::vector<std::string> texts) {
  FileValue value;
  value.name = std::move(name);
  value.kind = FileValue::Kind::kTensor;
  value.tensor.type = ElementType::kString;
  value.tensor.extents = {static_cast<int64_t>(texts.size())};
  value.tensor.strings = std::move(texts);
  return value;
}

FileValue Floats(std::string name, const std::vector<float>& numbers) {
  FileValue value;
  value.name = name;
  value.kind = FileValue::Kind::kTensor;
  value.tensor = onnx_file::MakeFloatTensor(name, {static_cast<int64_t>(numbers.size())}, numbers);
  return value;
}

// A graph for values; nullptr where the library or the device does not take them.
onnxGraph InitForValues(Check& check, Scene& scene, const std::string& model) {
  if (!client::HasValues(check.extensions())) {
    check.SetNotSupported(ONNXIFI_STATUS_UNIDENTIFIED_NAME,
                          "The library does not offer onnxSetGraphValues.");
    return nullptr;
  }
  const onnxStatus claim =
      check.extensions().get_backend_value_compatibility(check.id(), model.size(), model.data());
  if (client::IsRefusal(claim)) {
    check.SetNotSupported(claim, check.library().LastError());
    return nullptr;
  }
  const std::array<uint64_t, 3> properties = {ONNXIFI_SDK_GRAPH_PROPERTY_VALUES, 1,
                                              ONNXIFI_GRAPH_PROPERTY_NONE};
  onnxGraph graph = nullptr;
  if (!check.ExpectOneOf(
          {ONNXIFI_STATUS_SUCCESS, ONNXIFI_STATUS_FALLBACK},
          check.library().onnxInitGraph(scene.backend(), properties.data(), model.size(),
                                        model.data(), 0, nullptr, &graph),
          "onnxInitGraph with the values property")) {
    return nullptr;
  }
  scene.KeepGraph(graph);
  return graph;
}

onnxStatus Set(Check& check, onnxGraph graph, const std::vector<FileValue>& inputs) {
  client::ValueList list;
  for (const FileValue& input : inputs) list.Add(input);
  return check.extensions().set_graph_values(graph, 0, nullptr, list.count(), list.data(), 0,
                                             nullptr);
}

void StandardCallsRefuseStrings(Check& check) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  const std::string model = MakeModelOfStrings();
  check.ExpectStatus(
      ONNXIFI_STATUS_UNSUPPORTED_DATATYPE,
      check.library().onnxGetBackendCompatibility(check.id(), model.size(), model.data()),
      "onnxGetBackendCompatibility for a graph of strings");
  onnxGraph graph = nullptr;
  check.ExpectStatus(ONNXIFI_STATUS_UNSUPPORTED_DATATYPE,
                     check.library().onnxInitGraph(scene.backend(), nullptr, model.size(),
                                                   model.data(), 0, nullptr, &graph),
                     "onnxInitGraph for a graph of strings");
  check.Expect(graph == nullptr, "onnxInitGraph refuses and stores a graph all the same.");
}

void PropertyIsZeroOrOne(Check& check) {
  Scene scene(check);
  if (!scene.is_ready() || InitForValues(check, scene, MakeModelOfStrings()) == nullptr) return;
  const std::array<uint64_t, 3> properties = {ONNXIFI_SDK_GRAPH_PROPERTY_VALUES, 2,
                                              ONNXIFI_GRAPH_PROPERTY_NONE};
  const std::string model = MakeModelOfStrings();
  onnxGraph graph = nullptr;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_PROPERTY,
                     check.library().onnxInitGraph(scene.backend(), properties.data(), model.size(),
                                                   model.data(), 0, nullptr, &graph),
                     "onnxInitGraph with 2 for the values property");
}

struct Read {
  std::vector<FileValue> values;
};

void ONNXIFI_ABI Append(void* context, const onnxValue* record) {
  static_cast<Read*>(context)->values.push_back(client::FromRecord(*record));
}

void ValuesComeOutAsTheyWentIn(Check& check) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  const onnxGraph graph = InitForValues(check, scene, MakeModelOfStrings());
  if (graph == nullptr) return;
  // A NUL and bytes that are no UTF-8 are text as any other.
  const std::vector<std::string> texts = {"", std::string("a\0b", 3), "\xFF\xC3", "a"};
  for (const float seed : {1.0F, 5.0F}) {
    // Gone before the run.
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                       Set(check, graph, {Floats("x", {-seed, seed}), Strings("s", texts)}),
                       "onnxSetGraphValues");
    for (int run = 0; run < 2; ++run) {
      const onnxEvent event = scene.StartRun(graph);
      if (event == nullptr) return;
      check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(event),
                         "onnxWaitEvent");
      Read read;
      check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                         check.extensions().get_run_values(event, Append, &read),
                         "onnxGetRunValues");
      if (!check.Expect(read.values.size() == 2, "onnxGetRunValues does not tell two outputs.")) {
        return;
      }
      check.Expect(read.values[0].name == "t" && read.values[0].tensor.strings == texts,
                   "The strings that come out are not those that went in.");
      check.Expect(read.values[1].tensor.bytes == Floats("y", {0, seed}).tensor.bytes,
                   "The numbers beside the strings are wrong.");
    }
  }
}

void OutputsWithADescriptorGoThere(Check& check) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  const onnxGraph graph = InitForValues(check, scene, MakeModelOfStrings());
  if (graph == nullptr) return;
  std::vector<float> x = {-1, 3};
  std::vector<float> y = {7, 7};
  client::DescriptorList inputs;
  client::DescriptorList outputs;
  const std::vector<int64_t> extents = {2};
  inputs.Add("x", ElementType::kFloat32, extents, x.data());
  outputs.Add("y", ElementType::kFloat32, extents, y.data());
  client::ValueList values;
  const FileValue strings = Strings("s", {"only"});
  values.Add(strings);
  check.ExpectStatus(
      ONNXIFI_STATUS_SUCCESS,
      check.extensions().set_graph_values(graph, inputs.count(), inputs.data(), values.count(),
                                          values.data(), outputs.count(), outputs.data()),
      "onnxSetGraphValues with a descriptor for y");
  const onnxEvent event = scene.StartRun(graph);
  if (event == nullptr) return;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(event), "onnxWaitEvent");
  check.Expect(y == std::vector<float>({0, 3}), "The output with a descriptor is not there.");
  Read read;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     check.extensions().get_run_values(event, Append, &read), "onnxGetRunValues");
  check.Expect(read.values.size() == 1 && read.values[0].name == "t",
               "onnxGetRunValues does not tell the output without a descriptor alone.");
}

// A value brings its shape, so that what a file declares of an output or between nodes does not
// count; a caller who makes the output does as the graph does.
void OutputsHaveTheirOwnShapes(Check& check) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  const onnxGraph graph = InitForValues(check, scene,
                                        ModelWriter()
                                            .Input("x", ElementType::kFloat32, {2})
                                            .Node("Relu", {"x"}, {"v"})
                                            .Intermediate("v", ElementType::kFloat32, {2, 1})
                                            .Node("Neg", {"v"}, {"y"})
                                            .Output("y", ElementType::kFloat32, {3})
                                            .Build());
  if (graph == nullptr) return;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, Set(check, graph, {Floats("x", {-1, 3})}),
                     "onnxSetGraphValues");
  const onnxEvent event = scene.StartRun(graph);
  if (event == nullptr) return;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(event), "onnxWaitEvent");
  Read read;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     check.extensions().get_run_values(event, Append, &read), "onnxGetRunValues");
  if (!check.Expect(read.values.size() == 1, "onnxGetRunValues does not tell one output.")) return;
  const onnx_file::DenseTensor& y = read.values[0].tensor;
  check.Expect(
      y.extents == std::vector<int64_t>({2}) && y.bytes == Floats("y", {-0.0F, -3}).tensor.bytes,
      "The output has not the shape and numbers that follow from the input.");
  std::array<float, 3> declared = {};
  client::ValueList values;
  const FileValue x = Floats("x", {-1, 3});
  values.Add(x);
  client::DescriptorList outputs;
  const std::vector<int64_t> extents = {3};
  outputs.Add("y", ElementType::kFloat32, extents, declared.data());
  check.ExpectStatus(ONNXIFI_STATUS_MISMATCHING_SHAPE,
                     check.extensions().set_graph_values(graph, 0, nullptr, values.count(),
                                                         values.data(), 1, outputs.data()),
                     "onnxSetGraphValues with a descriptor as declared, where the output is "
                     "another");
}

void ValuesThatDoNotFitAreRefused(Check& check) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  const onnxGraph graph = InitForValues(check, scene, MakeModelOfStrings());
  if (graph == nullptr) return;
  const FileValue s = Strings("s", {"a"});
  const FileValue x = Floats("x", {1, 2});
  FileValue sequence;
  sequence.name = "s";
  sequence.kind = FileValue::Kind::kSequence;
  FileValue nothing;
  nothing.name = "s";
  FileValue matrix = s;
  matrix.tensor.extents = {1, 1};
  struct Fault {
    std::vector<FileValue> inputs;
    onnxStatus status;
    const char* what;
  };
  const Fault faults[] = {
      {{x}, ONNXIFI_STATUS_UNIDENTIFIED_NAME, "an input left out"},
      {{s, x, s}, ONNXIFI_STATUS_INVALID_NAME, "an input given twice"},
      {{s, x, Strings("u", {})}, ONNXIFI_STATUS_INVALID_NAME, "a name that no input has"},
      {{Floats("s", {1}), x}, ONNXIFI_STATUS_MISMATCHING_DATATYPE, "numbers for strings"},
      {{s, Strings("x", {"1", "2"})}, ONNXIFI_STATUS_MISMATCHING_DATATYPE, "strings for numbers"},
      {{sequence, x}, ONNXIFI_STATUS_MISMATCHING_DATATYPE, "a sequence for a tensor"},
      {{nothing, x}, ONNXIFI_STATUS_MISMATCHING_DATATYPE, "nothing for a tensor"},
      {{matrix, x}, ONNXIFI_STATUS_MISMATCHING_SHAPE, "a matrix for a vector"},
      {{s, Floats("x", {1, 2, 3})}, ONNXIFI_STATUS_MISMATCHING_SHAPE, "3 numbers for 2"},
  };
  for (const Fault& fault : faults) {
    check.ExpectStatus(fault.status, Set(check, graph, fault.inputs),
                       std::string("onnxSetGraphValues with ") + fault.what);
  }
  const auto set_one = [&](const onnxValue& record) {
    client::ValueList list;
    list.Add(x);
    const std::array<const onnxValue*, 2> values = {list.data()[0], &record};
    return check.extensions().set_graph_values(graph, 0, nullptr, 2, values.data(), 0, nullptr);
  };
  client::ValueList list;
  list.Add(s);
  const onnxValue good = *list.data()[0];
  const int64_t negative = -1;
  onnxValue record = good;
  record.kind = 99;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_DATATYPE, set_one(record), "A value of kind 99");
  record = good;
  record.data_type = 99;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_DATATYPE, set_one(record), "Element type 99");
  record = good;
  record.extents = nullptr;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER, set_one(record), "NULL extents");
  record = good;
  record.extents = &negative;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_SHAPE, set_one(record), "An extent of -1");
  record = good;
  record.strings = nullptr;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_MEMORY_LOCATION, set_one(record), "NULL strings");
  record = good;
  record.name = nullptr;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_NAME, set_one(record), "A NULL name");
  record = good;
  record.struct_size = sizeof(size_t);
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_SIZE, set_one(record), "A structure of its size alone");
  client::ValueList numbers;
  FileValue short_numbers = Floats("x", {1, 2});
  short_numbers.tensor.bytes.pop_back();
  numbers.Add(s);
  numbers.Add(short_numbers);
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_SIZE,
                     check.extensions().set_graph_values(graph, 0, nullptr, numbers.count(),
                                                         numbers.data(), 0, nullptr),
                     "2 floats in 7 bytes");
  const std::array<const onnxValue*, 1> null_value = {nullptr};
  const auto set_values = check.extensions().set_graph_values;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     set_values(graph, 0, nullptr, 1, null_value.data(), 0, nullptr),
                     "A NULL value");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     set_values(graph, 0, nullptr, 1, nullptr, 0, nullptr), "NULL values");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_GRAPH,
                     set_values(nullptr, 0, nullptr, 0, nullptr, 0, nullptr), "A NULL graph");
}

void RunValuesChecksItsArguments(Check& check) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  const onnxGraph graph = InitForValues(check, scene, MakeModelOfStrings());
  if (graph == nullptr) return;
  const auto read_values = check.extensions().get_run_values;
  Read read;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_EVENT, read_values(nullptr, Append, &read),
                     "onnxGetRunValues with a NULL event");
  const onnxEvent own = scene.InitEvent();
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_EVENT, read_values(own, Append, &read),
                     "onnxGetRunValues with an event that no run made");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     Set(check, graph, {Strings("s", {}), Floats("x", {1, 2})}),
                     "onnxSetGraphValues");
  const onnxMemoryFenceV1 input_fence = MakeFence(own);
  onnxMemoryFenceV1 output_fence = MakeFence(nullptr);
  if (!check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                          check.library().onnxRunGraph(graph, &input_fence, &output_fence),
                          "onnxRunGraph")) {
    return;
  }
  scene.Keep(output_fence.event);
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     read_values(output_fence.event, nullptr, &read),
                     "onnxGetRunValues without a callback");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_STATE, read_values(output_fence.event, Append, &read),
                     "onnxGetRunValues before the run has finished");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxSignalEvent(own),
                     "onnxSignalEvent");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(output_fence.event),
                     "onnxWaitEvent");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, read_values(output_fence.event, Append, &read),
                     "onnxGetRunValues");
  check.Expect(read.values.size() == 2 && read.values[0].tensor.strings.empty(),
               "No strings do not come out as none.");
}

constexpr InterfaceCase kCases[] = {
    {"values", "standard_calls_refuse_strings", StandardCallsRefuseStrings},
    {"values", "property_is_0_or_1", PropertyIsZeroOrOne},
    {"values", "values_come_out_as_they_went_in", ValuesComeOutAsTheyWentIn},
    {"values", "outputs_with_a_descriptor_go_there", OutputsWithADescriptorGoThere},
    {"values", "outputs_have_their_own_shapes", OutputsHaveTheirOwnShapes},
    {"values", "values_that_do_not_fit_are_refused", ValuesThatDoNotFitAreRefused},
    {"values", "run_values_checks_its_arguments", RunValuesChecksItsArguments},
};

}  // namespace

std::span<const InterfaceCase> ValueCases() { return kCases; }

}  // namespace onnxifi::suites
