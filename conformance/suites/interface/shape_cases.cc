// SPDX-License-Identifier: Apache-2.0
//
// Symbolic extents, extents of 0, scalars, and outputs whose shape depends on data.

#include <onnx/onnxifi.h>

#include <array>
#include <vector>

#include "client/device_list.h"
#include "conformance/suites/interface/case_groups.h"
#include "conformance/suites/interface/check.h"
#include "conformance/suites/interface/scene.h"
#include "conformance/suites/interface/small_models.h"

namespace onnxifi::suites {
namespace {

constexpr ElementType kFloat = ElementType::kFloat32;

uint64_t CapabilitiesOf(Check& check) {
  return client::QueryNumber(check.library(), check.id(), ONNXIFI_BACKEND_CAPABILITIES).value_or(0);
}

// Without the capability, a symbolic model must be refused as such; then the case has nothing more
// to ask.
bool NeedsSymbols(Check& check) {
  if ((CapabilitiesOf(check) & ONNXIFI_CAPABILITY_SYMBOLIC_BATCH_SIZE) != 0) return true;
  const std::string model = MakeSymbolicModel();
  check.ExpectStatus(
      ONNXIFI_STATUS_UNSUPPORTED_SHAPE,
      check.library().onnxGetBackendCompatibility(check.id(), model.size(), model.data()),
      "onnxGetBackendCompatibility for a symbolic extent without that capability");
  check.SetNotSupported(ONNXIFI_STATUS_UNSUPPORTED_SHAPE,
                        "The device lacks the capability of symbolic extents.");
  return false;
}

// Binds x and y of y = Relu(x) at [rows, 3], runs, and checks the result.
void RunReluAt(Check& check, Scene& scene, onnxGraph graph, int64_t rows) {
  const std::array<int64_t, 2> extents = {rows, kColumns};
  std::vector<float> x;
  for (int64_t index = 0; index < rows * kColumns; ++index) {
    x.push_back(index % 2 == 0 ? static_cast<float>(index) : -1.0f);
  }
  std::vector<float> y(x.size() + 4, -7.0f);
  client::DescriptorList inputs;
  client::DescriptorList outputs;
  inputs.Add("x", kFloat, extents, x.data());
  outputs.Add("y", kFloat, extents, y.data());
  if (!check.ExpectStatus(
          ONNXIFI_STATUS_SUCCESS,
          check.library().onnxSetGraphIO(graph, 1, inputs.data(), 1, outputs.data()),
          "onnxSetGraphIO with a number for a symbol")) {
    return;
  }
  if (!scene.RunAndWait(graph)) return;
  for (size_t index = 0; index < y.size(); ++index) {
    const float expected = index >= x.size() ? -7.0f : std::max(x[index], 0.0f);
    if (!check.Expect(y[index] == expected, "The result at a new extent is wrong.")) return;
  }
}

void ExtentChangesFromRunToRun(Check& check) {
  if (!NeedsSymbols(check)) return;
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeSymbolicModel());
  if (graph == nullptr) return;
  for (const int64_t rows : {1, 7, 2, 100, 1, 1000, 7}) RunReluAt(check, scene, graph, rows);
}

void EmptyBatchIsAccepted(Check& check) {
  if (!NeedsSymbols(check)) return;
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeSymbolicModel());
  if (graph == nullptr) return;
  RunReluAt(check, scene, graph, 5);
  // R23: where the model declares a symbol, 0 is a number like others, with any buffer.
  const std::array<int64_t, 2> empty = {0, kColumns};
  client::DescriptorList inputs;
  client::DescriptorList outputs;
  inputs.Add("x", kFloat, empty, nullptr);
  outputs.Add("y", kFloat, empty, nullptr);
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     check.library().onnxSetGraphIO(graph, 1, inputs.data(), 1, outputs.data()),
                     "onnxSetGraphIO with 0 for a symbol and NULL buffers (R23)");
  scene.RunAndWait(graph);
  RunReluAt(check, scene, graph, 3);
}

void OneSymbolIsOneNumber(Check& check) {
  if (!NeedsSymbols(check)) return;
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeTwoSymbolsModel());
  if (graph == nullptr) return;
  const auto bind = [&](int64_t x_rows, int64_t y_rows, int64_t z_rows) {
    std::vector<float> memory(64, 0.0f);
    client::DescriptorList inputs;
    client::DescriptorList outputs;
    inputs.Add("x", kFloat, std::array<int64_t, 2>{x_rows, kColumns}, memory.data());
    inputs.Add("y", kFloat, std::array<int64_t, 2>{y_rows, kColumns}, memory.data());
    outputs.Add("z", kFloat, std::array<int64_t, 2>{z_rows, kColumns}, memory.data() + 32);
    return check.library().onnxSetGraphIO(graph, 2, inputs.data(), 1, outputs.data());
  };
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, bind(4, 4, 4), "onnxSetGraphIO with equal numbers");
  check.ExpectStatus(ONNXIFI_STATUS_MISMATCHING_SHAPE, bind(4, 5, 4),
                     "onnxSetGraphIO with two numbers for one symbol in the inputs");
  check.ExpectStatus(ONNXIFI_STATUS_MISMATCHING_SHAPE, bind(4, 4, 5),
                     "onnxSetGraphIO with two numbers for one symbol in input and output");
}

void FixedExtentsBesideSymbolsAreKept(Check& check) {
  if (!NeedsSymbols(check)) return;
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeSymbolicModel());
  if (graph == nullptr) return;
  std::vector<float> memory(64, 0.0f);
  client::DescriptorList inputs;
  client::DescriptorList outputs;
  inputs.Add("x", kFloat, std::array<int64_t, 2>{4, 4}, memory.data());
  outputs.Add("y", kFloat, std::array<int64_t, 2>{4, 4}, memory.data() + 32);
  check.ExpectStatus(ONNXIFI_STATUS_MISMATCHING_SHAPE,
                     check.library().onnxSetGraphIO(graph, 1, inputs.data(), 1, outputs.data()),
                     "onnxSetGraphIO with 4 where the model fixes 3");
}

void VastNumberForASymbol(Check& check) {
  if (!NeedsSymbols(check)) return;
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeSymbolicModel());
  if (graph == nullptr) return;
  std::vector<float> memory(64, 0.0f);
  client::DescriptorList inputs;
  client::DescriptorList outputs;
  const std::array<int64_t, 2> vast = {INT64_MAX / 2, kColumns};
  inputs.Add("x", kFloat, vast, memory.data());
  outputs.Add("y", kFloat, vast, memory.data() + 32);
  check.ExpectOneOf({ONNXIFI_STATUS_UNSUPPORTED_SHAPE, ONNXIFI_STATUS_INVALID_SHAPE},
                    check.library().onnxSetGraphIO(graph, 1, inputs.data(), 1, outputs.data()),
                    "onnxSetGraphIO with a number of elements that overflows");
  client::DescriptorList negative_inputs;
  client::DescriptorList negative_outputs;
  const std::array<int64_t, 2> negative = {-1, kColumns};
  negative_inputs.Add("x", kFloat, negative, memory.data());
  negative_outputs.Add("y", kFloat, negative, memory.data() + 32);
  check.ExpectOneOf(
      {ONNXIFI_STATUS_UNSUPPORTED_SHAPE, ONNXIFI_STATUS_INVALID_SHAPE},
      check.library().onnxSetGraphIO(graph, 1, negative_inputs.data(), 1, negative_outputs.data()),
      "onnxSetGraphIO with an extent of 2^64 - 1");
}

void UnnamedSymbolsAreEachTheirOwn(Check& check) {
  if ((CapabilitiesOf(check) & ONNXIFI_CAPABILITY_SYMBOLIC_SIZE_TENSORS) == 0) {
    return check.SetNotSupported(ONNXIFI_STATUS_UNSUPPORTED_SHAPE,
                                 "The device lacks the capability of symbolic extents everywhere.");
  }
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(ModelWriter()
                                              .Input("x", kFloat, {"", ""})
                                              .Node("Relu", {"x"}, {"y"})
                                              .Output("y", kFloat, {"", ""})
                                              .Build());
  if (graph == nullptr) return;
  std::vector<float> x = {1, -1, 2, -2, 3, -3, 4, -4};
  std::vector<float> y(8, -7);
  client::DescriptorList inputs;
  client::DescriptorList outputs;
  inputs.Add("x", kFloat, std::array<int64_t, 2>{2, 4}, x.data());
  outputs.Add("y", kFloat, std::array<int64_t, 2>{2, 4}, y.data());
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     check.library().onnxSetGraphIO(graph, 1, inputs.data(), 1, outputs.data()),
                     "onnxSetGraphIO with numbers for extents that have no name");
  scene.RunAndWait(graph);
  check.Expect(y == std::vector<float>({1, 0, 2, 0, 3, 0, 4, 0}), "The result is wrong.");
}

void ScalarsHaveNoShape(Check& check) {
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(ModelWriter()
                                              .Input("x", kFloat, {})
                                              .Node("Relu", {"x"}, {"y"})
                                              .Output("y", kFloat, {})
                                              .Build());
  if (graph == nullptr) return;
  float x = 3;
  float y = -7;
  client::DescriptorList inputs;
  client::DescriptorList outputs;
  inputs.Add("x", kFloat, {}, &x);
  outputs.Add("y", kFloat, {}, &y);
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     check.library().onnxSetGraphIO(graph, 1, inputs.data(), 1, outputs.data()),
                     "onnxSetGraphIO with scalars whose shape is NULL");
  scene.RunAndWait(graph);
  check.Expect(y == 3, "The result of a scalar is wrong.");
  // R22: a shape that is not NULL beside rank 0 is not read.
  inputs[0].shape = reinterpret_cast<const uint64_t*>(uintptr_t{8});
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     check.library().onnxSetGraphIO(graph, 1, inputs.data(), 1, outputs.data()),
                     "onnxSetGraphIO with a scalar whose shape is not NULL (R22)");
}

void DeclaredEmptyTensorsRunOrAreRefused(Check& check) {
  Scene scene(check);
  const std::vector<Dimension> empty = {int64_t{0}, kColumns};
  const onnxGraph graph = scene.InitGraph(ModelWriter()
                                              .Input("x", kFloat, empty)
                                              .Node("Relu", {"x"}, {"y"})
                                              .Output("y", kFloat, empty)
                                              .Build());
  if (graph == nullptr) return;
  client::DescriptorList inputs;
  client::DescriptorList outputs;
  inputs.Add("x", kFloat, std::array<int64_t, 2>{0, kColumns}, nullptr);
  outputs.Add("y", kFloat, std::array<int64_t, 2>{0, kColumns}, nullptr);
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     check.library().onnxSetGraphIO(graph, 1, inputs.data(), 1, outputs.data()),
                     "onnxSetGraphIO with 0 where 0 is declared (R23)");
  scene.RunAndWait(graph);
}

void DataDependentOutputHasAnUpperBound(Check& check) {
  constexpr uint64_t kNeeded = ONNXIFI_CAPABILITY_VARIABLE_SIZE_OUTPUTS;
  const std::string model = ModelWriter()
                                .Input("x", kFloat, {int64_t{8}})
                                .Node("NonZero", {"x"}, {"y"})
                                .Output("y", ElementType::kInt64, {int64_t{1}, "count"})
                                .Build();
  if ((CapabilitiesOf(check) & kNeeded) == 0) {
    return check.SetNotSupported(ONNXIFI_STATUS_UNSUPPORTED_SHAPE,
                                 "The device lacks the capability of data-dependent outputs.");
  }
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(model);
  if (graph == nullptr) return;
  std::vector<float> x = {0, 5, 0, 0, 6, 7, 0, 0};
  std::vector<int64_t> y(8, -7);
  client::DescriptorList inputs;
  client::DescriptorList outputs;
  inputs.Add("x", kFloat, std::array<int64_t, 1>{8}, x.data());
  outputs.Add("y", ElementType::kInt64, std::array<int64_t, 2>{1, 8}, y.data());
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     check.library().onnxSetGraphIO(graph, 1, inputs.data(), 1, outputs.data()),
                     "onnxSetGraphIO with an upper bound for a data-dependent output");
  scene.RunAndWait(graph);
  check.Expect(std::vector<int64_t>(y.begin(), y.begin() + 3) == std::vector<int64_t>({1, 4, 5}),
               "The data of a data-dependent output are not dense at the start of the buffer.");
}

constexpr InterfaceCase kCases[] = {
    {"shapes", "extent_changes_from_run_to_run", ExtentChangesFromRunToRun},
    {"shapes", "empty_batch_is_accepted", EmptyBatchIsAccepted},
    {"shapes", "one_symbol_is_one_number", OneSymbolIsOneNumber},
    {"shapes", "fixed_extents_beside_symbols_are_kept", FixedExtentsBesideSymbolsAreKept},
    {"shapes", "vast_number_for_a_symbol_is_refused", VastNumberForASymbol},
    {"shapes", "unnamed_symbols_are_each_their_own", UnnamedSymbolsAreEachTheirOwn},
    {"shapes", "scalars_have_no_shape", ScalarsHaveNoShape},
    {"shapes", "declared_empty_tensors_run_or_are_refused", DeclaredEmptyTensorsRunOrAreRefused},
    {"shapes", "data_dependent_output_has_an_upper_bound", DataDependentOutputHasAnUpperBound},
};

}  // namespace

std::span<const InterfaceCase> ShapeCases() { return kCases; }

}  // namespace onnxifi::suites
