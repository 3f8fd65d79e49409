// SPDX-License-Identifier: Apache-2.0
//
// onnxInitGraph: arguments, properties, weights by descriptor (R11 to R13), what may be gone after
// the call.

#include <onnx/onnxifi.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "client/execution.h"
#include "client/onnx_file/tensor_file.h"
#include "conformance/suites/interface/case_groups.h"
#include "conformance/suites/interface/check.h"
#include "conformance/suites/interface/scene.h"
#include "conformance/suites/interface/small_models.h"

namespace onnxifi::suites {
namespace {

constexpr size_t kCount = kRows * kColumns;

onnxStatus InitWithWeights(Check& check, const Scene& scene, const std::string& model,
                           uint32_t count, const onnxTensorDescriptorV1* weights,
                           onnxGraph* graph) {
  return check.library().onnxInitGraph(scene.backend(), nullptr, model.size(), model.data(), count,
                                       weights, graph);
}

// The weight y of the suite's weight model, float32 [2, 3], 1 throughout unless changed.
class Weight {
 public:
  Weight() : values_(kCount, 1.0f) {
    const std::array<int64_t, 2> extents = {kRows, kColumns};
    list_.Add("y", ElementType::kFloat32, extents, values_.data());
  }
  Weight(const Weight&) = delete;
  Weight& operator=(const Weight&) = delete;

  onnxTensorDescriptorV1& descriptor() { return list_[0]; }
  const onnxTensorDescriptorV1* data() const { return list_.data(); }
  std::vector<float>& values() { return values_; }

 private:
  std::vector<float> values_;
  client::DescriptorList list_;
};

// Spoils the weight's descriptor, initialises, and expects the answer.
void ExpectWeightFault(Check& check, std::initializer_list<onnxStatus> expected,
                       std::string_view what, void (*spoil)(onnxTensorDescriptorV1&)) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  Weight weight;
  spoil(weight.descriptor());
  onnxGraph graph = reinterpret_cast<onnxGraph>(&scene);
  const onnxStatus status =
      InitWithWeights(check, scene, MakeWeightModel(), 1, weight.data(), &graph);
  check.ExpectOneOf(expected, status, what);
  if (client::IsAcceptance(status)) {
    scene.ReleaseGraphNow(graph);
  } else {
    check.Expect(graph == nullptr, "onnxInitGraph fails and leaves *graph other than NULL.");
  }
}

// Binds x and z only, runs, and says whether z = x + addend.
bool SumsWith(Check& check, Scene& scene, onnxGraph graph, float addend) {
  const std::array<int64_t, 2> extents = {kRows, kColumns};
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  std::vector<float> z(kCount, -1.0f);
  client::DescriptorList inputs;
  client::DescriptorList outputs;
  inputs.Add("x", ElementType::kFloat32, extents, x.data());
  outputs.Add("z", ElementType::kFloat32, extents, z.data());
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     check.library().onnxSetGraphIO(graph, 1, inputs.data(), 1, outputs.data()),
                     "onnxSetGraphIO without the static weight (R13)");
  if (!scene.RunAndWait(graph)) return false;
  for (size_t index = 0; index < kCount; ++index) {
    if (z[index] != x[index] + addend) return false;
  }
  return true;
}

void ArgumentsAreChecked(Check& check) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  const std::string model = MakeAddModel();
  const client::Library& library = check.library();
  int local = 0;
  onnxGraph graph = &local;
  const auto init = [&](onnxBackend backend, size_t size, const void* bytes, uint32_t weights,
                        onnxGraph* result) {
    graph = &local;
    return library.onnxInitGraph(backend, nullptr, size, bytes, weights, nullptr, result);
  };
  const auto expect = [&](onnxStatus expected, onnxStatus actual, std::string_view what) {
    check.ExpectStatus(expected, actual, what);
    check.Expect(graph == nullptr, "onnxInitGraph fails and leaves *graph other than NULL.");
  };
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     init(scene.backend(), model.size(), model.data(), 0, nullptr),
                     "onnxInitGraph with a NULL result");
  expect(ONNXIFI_STATUS_INVALID_BACKEND, init(nullptr, model.size(), model.data(), 0, &graph),
         "onnxInitGraph with a NULL backend");
  expect(ONNXIFI_STATUS_INVALID_BACKEND, init(&local, 0, nullptr, 0, &graph),
         "onnxInitGraph with a foreign backend and no model");
  expect(ONNXIFI_STATUS_INVALID_POINTER, init(scene.backend(), model.size(), nullptr, 0, &graph),
         "onnxInitGraph with a NULL model");
  expect(ONNXIFI_STATUS_INVALID_POINTER,
         init(scene.backend(), model.size(), model.data(), 1, &graph),
         "onnxInitGraph with a weight count and no weights");
  expect(ONNXIFI_STATUS_INVALID_SIZE, init(scene.backend(), 0, model.data(), 0, &graph),
         "onnxInitGraph with size 0");
}

void EmptyPropertyListsAreAccepted(Check& check) {
  Scene scene(check);
  const std::string model = MakeAddModel();
  if (scene.InitGraph(model) == nullptr) return;  // With NULL.
  const std::array<uint64_t, 1> none = {ONNXIFI_GRAPH_PROPERTY_NONE};
  onnxGraph graph = nullptr;
  check.ExpectOneOf({ONNXIFI_STATUS_SUCCESS, ONNXIFI_STATUS_FALLBACK},
                    check.library().onnxInitGraph(scene.backend(), none.data(), model.size(),
                                                  model.data(), 0, nullptr, &graph),
                    "onnxInitGraph with an empty list");
  if (graph != nullptr) scene.ReleaseGraphNow(graph);
}

void UnknownPropertyIsUnsupported(Check& check) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  const std::string model = MakeAddModel();
  int local = 0;
  onnxGraph graph = &local;
  const std::array<uint64_t, 1> list = {0x7777};  // R2: not ended, nothing behind it is read.
  check.ExpectStatus(ONNXIFI_STATUS_UNSUPPORTED_PROPERTY,
                     check.library().onnxInitGraph(scene.backend(), list.data(), model.size(),
                                                   model.data(), 0, nullptr, &graph),
                     "onnxInitGraph with an unknown key");
  check.Expect(graph == nullptr, "onnxInitGraph fails and leaves *graph other than NULL.");
}

void InvalidPropertyValueIsSaid(Check& check) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  const std::string model = MakeAddModel();
  onnxGraph graph = nullptr;
  // The value of the SDK's base folder is an address.
  const std::array<uint64_t, 3> list = {ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER, 0,
                                        ONNXIFI_GRAPH_PROPERTY_NONE};
  check.ExpectOneOf({ONNXIFI_STATUS_INVALID_PROPERTY, ONNXIFI_STATUS_UNSUPPORTED_PROPERTY},
                    check.library().onnxInitGraph(scene.backend(), list.data(), model.size(),
                                                  model.data(), 0, nullptr, &graph),
                    "onnxInitGraph with a base folder at address 0");
}

// float32 [2, 3] times [3, 2] of constants that every precision has: each product and sum is exact,
// whatever operands are rounded to.
std::string MakeProductModel() {
  return ModelWriter()
      .Input("x", ElementType::kFloat32, {kRows, kColumns})
      .Initializer(onnx_file::MakeFloatTensor("w", {kColumns, 2}, {1, 0, 0, 1, 2, 0.5f}))
      .Node("MatMul", {"x", "w"}, {"z"})
      .Output("z", ElementType::kFloat32, {kRows, int64_t{2}})
      .Build();
}

onnxStatus InitWithProperty(Check& check, Scene& scene, const std::string& model, uint64_t key,
                            uint64_t value, onnxGraph* graph) {
  const std::array<uint64_t, 3> list = {key, value, ONNXIFI_GRAPH_PROPERTY_NONE};
  return check.library().onnxInitGraph(scene.backend(), list.data(), model.size(), model.data(), 0,
                                       nullptr, graph);
}

// Each value is taken, and a product of float32 numbers that it leaves as they are is exact.
void ExpectPermissions(Check& check, uint64_t key, std::span<const uint64_t> values,
                       const std::string& name) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  const std::string model = MakeProductModel();
  for (const uint64_t value : values) {
    onnxGraph graph = nullptr;
    const onnxStatus status = InitWithProperty(check, scene, model, key, value, &graph);
    if (client::IsRefusal(status)) {
      check.SetNotSupported(status, check.library().LastError());
      return;
    }
    if (!check.ExpectOneOf({ONNXIFI_STATUS_SUCCESS, ONNXIFI_STATUS_FALLBACK}, status,
                           "onnxInitGraph with " + name + " " + std::to_string(value))) {
      return;
    }
    const std::array<int64_t, 2> x_extents = {kRows, kColumns};
    const std::array<int64_t, 2> z_extents = {kRows, 2};
    std::vector<float> x = {1, 2, 3, 4, 5, 6};
    std::vector<float> z(kRows * 2, -1.0f);
    client::DescriptorList inputs;
    client::DescriptorList outputs;
    inputs.Add("x", ElementType::kFloat32, x_extents, x.data());
    outputs.Add("z", ElementType::kFloat32, z_extents, z.data());
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                       check.library().onnxSetGraphIO(graph, 1, inputs.data(), 1, outputs.data()),
                       "onnxSetGraphIO of a graph with " + name);
    if (!scene.RunAndWait(graph)) return;
    check.Expect(z == std::vector<float>{7, 3.5f, 16, 8},
                 "A product of numbers that need no rounding is not exact with " + name + " " +
                     std::to_string(value) + ".");
    scene.ReleaseGraphNow(graph);
  }
}

void PrecisionIsAPermission(Check& check) {
  ExpectPermissions(
      check, ONNXIFI_SDK_GRAPH_PROPERTY_PRECISION,
      std::array<uint64_t, 4>{ONNXIFI_SDK_PRECISION_FLOAT32, ONNXIFI_SDK_PRECISION_TF32,
                              ONNXIFI_SDK_PRECISION_BFLOAT16, ONNXIFI_SDK_PRECISION_FLOAT16},
      "precision");
}

void DynamicQuantizationIsAPermission(Check& check) {
  ExpectPermissions(check, ONNXIFI_SDK_GRAPH_PROPERTY_DYNAMIC_QUANTIZATION,
                    std::array<uint64_t, 2>{0, 1}, "dynamic quantization");
}

// Each value is refused by a sentence that names it.
void ExpectInvalidValues(Check& check, uint64_t key, std::span<const uint64_t> values,
                         const std::string& name) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  const std::string model = MakeAddModel();
  for (const uint64_t value : values) {
    int local = 0;
    onnxGraph graph = &local;
    const onnxStatus status = InitWithProperty(check, scene, model, key, value, &graph);
    check.Expect(graph == nullptr, "onnxInitGraph fails and leaves *graph other than NULL.");
    if (status == ONNXIFI_STATUS_UNSUPPORTED_PROPERTY) {
      check.SetNotSupported(status, check.library().LastError());
      return;
    }
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_PROPERTY, status,
                       "onnxInitGraph with " + name + " " + std::to_string(value));
    const std::string sentence = check.library().LastError();
    check.Expect(
        sentence.find(std::to_string(value)) != std::string::npos,
        "The sentence about an unknown value of " + name + " does not name it: " + sentence);
  }
}

void UnknownPrecisionIsInvalid(Check& check) {
  ExpectInvalidValues(check, ONNXIFI_SDK_GRAPH_PROPERTY_PRECISION,
                      std::array<uint64_t, 4>{4, 256, uint64_t{1} << 32, ~uint64_t{0}},
                      "precision");
}

void UnknownDynamicQuantizationIsInvalid(Check& check) {
  ExpectInvalidValues(check, ONNXIFI_SDK_GRAPH_PROPERTY_DYNAMIC_QUANTIZATION,
                      std::array<uint64_t, 3>{2, uint64_t{1} << 32, ~uint64_t{0}},
                      "dynamic quantization");
}

void WeightByDescriptorIsCopied(Check& check) {
  Scene scene(check);
  if (scene.InitGraph(MakeWeightModel()) == nullptr) return;
  onnxGraph graph = nullptr;
  {
    // Everything that is passed is overwritten and freed right after the call.
    Weight weight;
    std::ranges::fill(weight.values(), 7.0f);
    std::string model = MakeWeightModel();
    if (!check.ExpectOneOf({ONNXIFI_STATUS_SUCCESS, ONNXIFI_STATUS_FALLBACK},
                           InitWithWeights(check, scene, model, 1, weight.data(), &graph),
                           "onnxInitGraph with a weight by descriptor")) {
      return;
    }
    std::ranges::fill(weight.values(), -999.0f);
    std::ranges::fill(model, '\xFF');
    weight.descriptor() = {};
  }
  check.Expect(SumsWith(check, scene, graph, 7), "The weight's values are not those of the call.");
  scene.ReleaseGraphNow(graph);
}

void DescriptorWinsOverInitializer(Check& check) {
  Scene scene(check);
  const onnxGraph plain = scene.InitGraph(MakeInitializerModel());
  if (plain == nullptr) return;
  check.Expect(SumsWith(check, scene, plain, 100), "The initializer's value is not used.");
  Weight weight;
  onnxGraph graph = nullptr;
  if (!check.ExpectOneOf(
          {ONNXIFI_STATUS_SUCCESS, ONNXIFI_STATUS_FALLBACK},
          InitWithWeights(check, scene, MakeInitializerModel(), 1, weight.data(), &graph),
          "onnxInitGraph with a descriptor for an initializer (R12)")) {
    return;
  }
  check.Expect(SumsWith(check, scene, graph, 1),
               "A weight descriptor does not win over the initializer of its name (R12).");
  scene.ReleaseGraphNow(graph);
}

void ZeroWeightsWithAPointer(Check& check) {
  Scene scene(check);
  if (scene.InitGraph(MakeAddModel()) == nullptr) return;
  onnxGraph graph = nullptr;
  const auto* dangling = reinterpret_cast<const onnxTensorDescriptorV1*>(uintptr_t{8});
  check.ExpectOneOf({ONNXIFI_STATUS_SUCCESS, ONNXIFI_STATUS_FALLBACK},
                    InitWithWeights(check, scene, MakeAddModel(), 0, dangling, &graph),
                    "onnxInitGraph with 0 weights and a pointer (R11)");
  if (graph != nullptr) scene.ReleaseGraphNow(graph);
}

void WeightOfANodeInputOnly(Check& check) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  // Some callers name weights only in the nodes (R12).
  const std::string model = ModelWriter(/*ir_version=*/3, /*opset=*/7)
                                .Input("x", ElementType::kFloat32, {kRows, kColumns})
                                .Node("Add", {"x", "y"}, {"z"})
                                .Output("z", ElementType::kFloat32, {kRows, kColumns})
                                .Build();
  Weight weight;
  onnxGraph graph = nullptr;
  const onnxStatus status = InitWithWeights(check, scene, model, 1, weight.data(), &graph);
  if (client::IsRefusal(status)) return check.SetNotSupported(status, check.library().LastError());
  if (!check.ExpectOneOf({ONNXIFI_STATUS_SUCCESS, ONNXIFI_STATUS_FALLBACK}, status,
                         "onnxInitGraph with a weight that only a node names (R12)")) {
    return;
  }
  check.Expect(SumsWith(check, scene, graph, 1), "The sum with such a weight is wrong.");
  scene.ReleaseGraphNow(graph);
}

void WeightFaults(Check& check) {
  using Descriptor = onnxTensorDescriptorV1;
  ExpectWeightFault(check, {ONNXIFI_STATUS_UNSUPPORTED_TAG},
                    "onnxInitGraph with a weight of an unknown tag (R18)",
                    [](Descriptor& weight) { weight.tag = 1; });
  ExpectWeightFault(check, {ONNXIFI_STATUS_INVALID_NAME},
                    "onnxInitGraph with a NULL weight name (R22)",
                    [](Descriptor& weight) { weight.name = nullptr; });
  ExpectWeightFault(check, {ONNXIFI_STATUS_INVALID_NAME},
                    "onnxInitGraph with a weight that nothing names (R12)",
                    [](Descriptor& weight) { weight.name = "nothing"; });
  ExpectWeightFault(check, {ONNXIFI_STATUS_INVALID_DATATYPE},
                    "onnxInitGraph with a weight of data type 12345",
                    [](Descriptor& weight) { weight.dataType = 12345; });
  ExpectWeightFault(check, {ONNXIFI_STATUS_INVALID_DATATYPE},
                    "onnxInitGraph with a weight of data type UNDEFINED",
                    [](Descriptor& weight) { weight.dataType = 0; });
  ExpectWeightFault(check, {ONNXIFI_STATUS_INVALID_MEMORY_TYPE},
                    "onnxInitGraph with a weight of memory type 3",
                    [](Descriptor& weight) { weight.memoryType = 3; });
  ExpectWeightFault(
      check, {ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE}, "onnxInitGraph with a weight in CUDA memory",
      [](Descriptor& weight) { weight.memoryType = ONNXIFI_MEMORY_TYPE_CUDA_BUFFER; });
  ExpectWeightFault(check, {ONNXIFI_STATUS_INVALID_MEMORY_LOCATION},
                    "onnxInitGraph with a weight at address 0",
                    [](Descriptor& weight) { weight.buffer = 0; });
  ExpectWeightFault(check, {ONNXIFI_STATUS_INVALID_POINTER},
                    "onnxInitGraph with a weight of rank 2 and no shape (R22)",
                    [](Descriptor& weight) { weight.shape = nullptr; });
  static constexpr std::array<uint64_t, 2> kZero = {0, 3};
  ExpectWeightFault(check, {ONNXIFI_STATUS_INVALID_SHAPE},
                    "onnxInitGraph with a weight of extent 0 where 2 is declared",
                    [](Descriptor& weight) { weight.shape = kZero.data(); });
  static constexpr std::array<uint64_t, 2> kOther = {3, 2};
  ExpectWeightFault(check, {ONNXIFI_STATUS_MISMATCHING_SHAPE},
                    "onnxInitGraph with a weight of another shape than declared",
                    [](Descriptor& weight) { weight.shape = kOther.data(); });
}

void WeightTypeMustFit(Check& check) {
  // For weights the descriptor's type wins, but the addition of float and int64 remains impossible.
  ExpectWeightFault(
      check, {ONNXIFI_STATUS_MISMATCHING_DATATYPE, ONNXIFI_STATUS_UNSUPPORTED_DATATYPE},
      "onnxInitGraph with a weight of another type than declared",
      [](onnxTensorDescriptorV1& weight) { weight.dataType = ONNXIFI_DATATYPE_INT32; });
}

void DuplicateWeightIsInvalid(Check& check) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  Weight first;
  Weight second;
  const std::array<onnxTensorDescriptorV1, 2> both = {first.descriptor(), second.descriptor()};
  onnxGraph graph = nullptr;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_NAME,
                     InitWithWeights(check, scene, MakeWeightModel(), 2, both.data(), &graph),
                     "onnxInitGraph with one weight twice (R18)");
}

void GraphsAreIndependent(Check& check) {
  Scene scene(check);
  if (scene.InitGraph(MakeWeightModel()) == nullptr) return;
  // The same names with other values in each: nothing may leak between graphs.
  std::vector<onnxGraph> graphs;
  for (int index = 0; index < 4; ++index) {
    Weight weight;
    std::ranges::fill(weight.values(), static_cast<float>(10 * index));
    onnxGraph graph = nullptr;
    if (!check.ExpectOneOf(
            {ONNXIFI_STATUS_SUCCESS, ONNXIFI_STATUS_FALLBACK},
            InitWithWeights(check, scene, MakeWeightModel(), 1, weight.data(), &graph),
            "onnxInitGraph for one of several graphs")) {
      return;
    }
    graphs.push_back(graph);
  }
  for (const int index : {2, 0, 3, 1}) {
    check.Expect(
        SumsWith(check, scene, graphs[static_cast<size_t>(index)], static_cast<float>(10 * index)),
        "A graph computes with the weights of another.");
  }
  for (const onnxGraph graph : graphs) scene.ReleaseGraphNow(graph);
}

void ReleasingNoGraphIsInvalid(Check& check) {
  Scene scene(check);
  int local = 0;
  for (const onnxGraph graph : {onnxGraph{nullptr}, static_cast<onnxGraph>(&local),
                                static_cast<onnxGraph>(scene.backend())}) {
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_GRAPH, check.library().onnxReleaseGraph(graph),
                       "onnxReleaseGraph with no graph");
  }
}

constexpr InterfaceCase kCases[] = {
    {"graphs", "init_graph_checks_its_arguments_in_order", ArgumentsAreChecked},
    {"graphs", "empty_graph_property_lists_are_accepted", EmptyPropertyListsAreAccepted},
    {"graphs", "unknown_graph_property_is_unsupported", UnknownPropertyIsUnsupported},
    {"graphs", "invalid_graph_property_value_is_refused", InvalidPropertyValueIsSaid},
    {"graphs", "precision_is_a_permission", PrecisionIsAPermission},
    {"graphs", "unknown_precision_is_invalid", UnknownPrecisionIsInvalid},
    {"graphs", "dynamic_quantization_is_a_permission", DynamicQuantizationIsAPermission},
    {"graphs", "unknown_dynamic_quantization_is_invalid", UnknownDynamicQuantizationIsInvalid},
    {"graphs", "weight_by_descriptor_is_copied", WeightByDescriptorIsCopied},
    {"graphs", "descriptor_wins_over_initializer", DescriptorWinsOverInitializer},
    {"graphs", "zero_weights_with_a_pointer", ZeroWeightsWithAPointer},
    {"graphs", "weight_that_only_a_node_names", WeightOfANodeInputOnly},
    {"graphs", "faulty_weight_descriptors", WeightFaults},
    {"graphs", "weight_of_another_type", WeightTypeMustFit},
    {"graphs", "duplicate_weight_is_invalid", DuplicateWeightIsInvalid},
    {"graphs", "graphs_of_one_backend_are_independent", GraphsAreIndependent},
    {"graphs", "release_of_no_graph_is_invalid", ReleasingNoGraphIsInvalid},
};

}  // namespace

std::span<const InterfaceCase> GraphCases() { return kCases; }

}  // namespace onnxifi::suites
