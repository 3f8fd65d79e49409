// SPDX-License-Identifier: Apache-2.0
//
// onnxSetGraphIO: names, types, shapes, memory, and what a failed call leaves behind.

#include <onnx/onnxifi.h>
#include <onnxifi/sdk.h>

#include <array>
#include <string>
#include <vector>

#include "conformance/suites/interface/case_groups.h"
#include "conformance/suites/interface/check.h"
#include "conformance/suites/interface/scene.h"
#include "conformance/suites/interface/small_models.h"

namespace onnxifi::suites {
namespace {

using Descriptor = onnxTensorDescriptorV1;

// A graph of z = x + y, ready to be bound.
struct Prepared {
  explicit Prepared(Check& check) : scene(check), graph(scene.InitGraph(MakeAddModel())) {}

  Scene scene;
  onnxGraph graph;
  AddTensors tensors;
};

// Spoils one descriptor, binds, expects the answer, and checks that the failed call discarded the
// previous binding.
void ExpectFault(Check& check, std::initializer_list<onnxStatus> expected, std::string_view what,
                 bool is_output, void (*spoil)(Descriptor&)) {
  Prepared prepared(check);
  if (prepared.graph == nullptr) return;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, prepared.tensors.Bind(check.library(), prepared.graph),
                     "onnxSetGraphIO");
  AddTensors spoilt(2);
  spoil(is_output ? spoilt.outputs()[0] : spoilt.inputs()[1]);
  check.ExpectOneOf(expected, spoilt.Bind(check.library(), prepared.graph), what);
  const onnxEvent event = prepared.scene.InitEvent();
  const onnxMemoryFenceV1 input = MakeFence(event);
  onnxMemoryFenceV1 output = MakeFence(event);
  check.ExpectStatus(ONNXIFI_STATUS_UNIDENTIFIED_NAME,
                     check.library().onnxRunGraph(prepared.graph, &input, &output),
                     "onnxRunGraph after a failed onnxSetGraphIO, which discards the binding,");
}

void BothSides(Check& check, std::initializer_list<onnxStatus> expected, std::string_view what,
               void (*spoil)(Descriptor&)) {
  ExpectFault(check, expected, std::string("onnxSetGraphIO with an input ") + std::string(what),
              /*is_output=*/false, spoil);
  ExpectFault(check, expected, std::string("onnxSetGraphIO with an output ") + std::string(what),
              /*is_output=*/true, spoil);
}

void TagIsCheckedFirst(Check& check) {
  BothSides(check, {ONNXIFI_STATUS_UNSUPPORTED_TAG}, "of an unknown tag and nothing else right",
            [](Descriptor& tensor) {
              tensor = {};
              tensor.tag = 12345;
            });
}

void NamesMustBeTheGraphs(Check& check) {
  BothSides(check, {ONNXIFI_STATUS_INVALID_NAME}, "that has no name (R22)",
            [](Descriptor& tensor) { tensor.name = nullptr; });
  BothSides(check, {ONNXIFI_STATUS_INVALID_NAME}, "that the graph does not have",
            [](Descriptor& tensor) { tensor.name = "nothing"; });
  BothSides(check, {ONNXIFI_STATUS_INVALID_NAME}, "whose name differs in case",
            [](Descriptor& tensor) { tensor.name = tensor.name[0] == 'y' ? "Y" : "Z"; });
}

void NamesMustBeUnique(Check& check) {
  ExpectFault(check, {ONNXIFI_STATUS_INVALID_NAME}, "onnxSetGraphIO with one input twice",
              /*is_output=*/false, [](Descriptor& tensor) { tensor.name = "x"; });
}

void DataTypesAreChecked(Check& check) {
  BothSides(check, {ONNXIFI_STATUS_INVALID_DATATYPE}, "of data type 12345",
            [](Descriptor& tensor) { tensor.dataType = 12345; });
  BothSides(check, {ONNXIFI_STATUS_INVALID_DATATYPE}, "of data type UNDEFINED",
            [](Descriptor& tensor) { tensor.dataType = ONNXIFI_DATATYPE_UNDEFINED; });
  BothSides(check, {ONNXIFI_STATUS_MISMATCHING_DATATYPE}, "of another type than declared",
            [](Descriptor& tensor) { tensor.dataType = ONNXIFI_DATATYPE_INT32; });
}

void MemoryTypesAreChecked(Check& check) {
  BothSides(check, {ONNXIFI_STATUS_INVALID_MEMORY_TYPE}, "of memory type 3 (R21)",
            [](Descriptor& tensor) { tensor.memoryType = 3; });
}

uint64_t TakenMemoryTypes(Check& check) {
  uint64_t taken = 0;
  size_t size_bytes = sizeof(taken);
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     check.library().onnxGetBackendInfo(check.id(), ONNXIFI_BACKEND_MEMORY_TYPES,
                                                        &taken, &size_bytes),
                     "onnxGetBackendInfo for the memory types");
  return taken;
}

void KnownMemoryTypesMayBeUnsupported(Check& check) {
  const uint64_t taken = TakenMemoryTypes(check);
  if ((taken & ONNXIFI_MEMORY_TYPE_CUDA_BUFFER) == 0) {
    BothSides(check, {ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE}, "in CUDA memory, which is not taken",
              [](Descriptor& tensor) { tensor.memoryType = ONNXIFI_MEMORY_TYPE_CUDA_BUFFER; });
  }
  if ((taken & ONNXIFI_MEMORY_TYPE_OPENGLES_TEXTURE_2D) == 0) {
    BothSides(
        check, {ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE}, "in a texture, which is not taken",
        [](Descriptor& tensor) { tensor.memoryType = ONNXIFI_MEMORY_TYPE_OPENGLES_TEXTURE_2D; });
  }
}

// ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD, for libraries that know it.
void OpaqueFileDescriptorsAreChecked(Check& check) {
  if (check.extensions().get_last_error_message == nullptr) return;
  static constexpr auto kMove = [](Descriptor& tensor, const onnxOpaqueFd* told) {
    tensor.memoryType = ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD;
    tensor.buffer = reinterpret_cast<onnxPointer>(told);
  };
  if ((TakenMemoryTypes(check) & ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD) == 0) {
    BothSides(check, {ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE},
              "behind a file descriptor, which is not taken", [](Descriptor& tensor) {
                static onnxOpaqueFd told = {};
                told.struct_size = sizeof(told);
                kMove(tensor, &told);
              });
    return;
  }
  BothSides(check, {ONNXIFI_STATUS_INVALID_MEMORY_LOCATION}, "behind a file descriptor at NULL",
            [](Descriptor& tensor) { kMove(tensor, nullptr); });
  BothSides(check, {ONNXIFI_STATUS_INVALID_MEMORY_LOCATION},
            "behind a file descriptor whose structure is cut short", [](Descriptor& tensor) {
              static onnxOpaqueFd told = {};
              told.struct_size = sizeof(told.struct_size);
              kMove(tensor, &told);
            });
  BothSides(check, {ONNXIFI_STATUS_INVALID_MEMORY_LOCATION},
            "behind a file descriptor that is not open, of no device", [](Descriptor& tensor) {
              static onnxOpaqueFd told = {};
              told.struct_size = sizeof(told);
              told.fd = -1;
              told.allocation_bytes = told.size_bytes = 4096;
              kMove(tensor, &told);
            });
}

void ShapesAreChecked(Check& check) {
  static constexpr std::array<uint64_t, 2> kZero = {0, 3};
  static constexpr std::array<uint64_t, 2> kOther = {3, 2};
  static constexpr std::array<uint64_t, 3> kHigher = {2, 3, 1};
  BothSides(check, {ONNXIFI_STATUS_INVALID_SHAPE}, "of extent 0 where 2 is declared (R23)",
            [](Descriptor& tensor) { tensor.shape = kZero.data(); });
  BothSides(check, {ONNXIFI_STATUS_MISMATCHING_SHAPE}, "of another shape than declared",
            [](Descriptor& tensor) { tensor.shape = kOther.data(); });
  BothSides(check, {ONNXIFI_STATUS_MISMATCHING_SHAPE}, "of another rank than declared",
            [](Descriptor& tensor) {
              tensor.dimensions = 3;
              tensor.shape = kHigher.data();
            });
  BothSides(check, {ONNXIFI_STATUS_MISMATCHING_SHAPE}, "of rank 0 where 2 is declared",
            [](Descriptor& tensor) { tensor.dimensions = 0; });
  BothSides(check, {ONNXIFI_STATUS_INVALID_POINTER}, "of rank 2 without a shape (R22)",
            [](Descriptor& tensor) { tensor.shape = nullptr; });
}

void BuffersMustExist(Check& check) {
  BothSides(check, {ONNXIFI_STATUS_INVALID_MEMORY_LOCATION}, "at address 0",
            [](Descriptor& tensor) { tensor.buffer = 0; });
}

void ArgumentsAreChecked(Check& check) {
  Prepared prepared(check);
  if (prepared.graph == nullptr) return;
  const client::Library& library = check.library();
  AddTensors& tensors = prepared.tensors;
  const Descriptor* inputs = tensors.inputs().data();
  const Descriptor* outputs = tensors.outputs().data();
  int local = 0;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_GRAPH,
                     library.onnxSetGraphIO(nullptr, 2, inputs, 1, outputs),
                     "onnxSetGraphIO with a NULL graph");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_GRAPH,
                     library.onnxSetGraphIO(&local, 2, nullptr, 1, nullptr),
                     "onnxSetGraphIO with a foreign graph and NULL lists");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     library.onnxSetGraphIO(prepared.graph, 2, nullptr, 1, outputs),
                     "onnxSetGraphIO with inputs at NULL");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     library.onnxSetGraphIO(prepared.graph, 2, inputs, 1, nullptr),
                     "onnxSetGraphIO with outputs at NULL");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_SIZE,
                     library.onnxSetGraphIO(prepared.graph, 2, inputs, 0, outputs),
                     "onnxSetGraphIO with 0 outputs (R18)");
  check.ExpectStatus(ONNXIFI_STATUS_UNIDENTIFIED_NAME,
                     library.onnxSetGraphIO(prepared.graph, 1, inputs, 1, outputs),
                     "onnxSetGraphIO with an input left out");
  check.ExpectStatus(ONNXIFI_STATUS_UNIDENTIFIED_NAME,
                     library.onnxSetGraphIO(prepared.graph, 0, nullptr, 1, outputs),
                     "onnxSetGraphIO with all inputs left out");
}

void StaticInputsGetNoDescriptor(Check& check) {
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeInitializerModel());
  if (graph == nullptr) return;
  AddTensors tensors;  // Has x and y; y is an initializer.
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_NAME, tensors.Bind(check.library(), graph),
                     "onnxSetGraphIO with a descriptor for a static input (R13)");
}

void OrderIsFree(Check& check) {
  Prepared prepared(check);
  if (prepared.graph == nullptr) return;
  AddTensors& tensors = prepared.tensors;
  std::swap(tensors.inputs()[0], tensors.inputs()[1]);
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(check.library(), prepared.graph),
                     "onnxSetGraphIO with the inputs in another order");
  prepared.scene.RunAndWait(prepared.graph);
  check.Expect(tensors.IsSum(), "The sum is wrong when the inputs come in another order.");
}

void MetadataIsCopied(Check& check) {
  Prepared prepared(check);
  if (prepared.graph == nullptr) return;
  AddTensors& tensors = prepared.tensors;
  {
    std::string names[3] = {"x", "y", "z"};
    std::vector<uint64_t> shape = {kRows, kColumns};
    std::vector<Descriptor> inputs(tensors.inputs().data(), tensors.inputs().data() + 2);
    Descriptor output = tensors.outputs()[0];
    inputs[0].name = names[0].c_str();
    inputs[1].name = names[1].c_str();
    output.name = names[2].c_str();
    inputs[0].shape = inputs[1].shape = output.shape = shape.data();
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                       check.library().onnxSetGraphIO(prepared.graph, 2, inputs.data(), 1, &output),
                       "onnxSetGraphIO with lists that die after it");
    for (std::string& name : names) name[0] = '?';
    shape.assign(2, 999);
    inputs.assign(2, Descriptor());
    output = {};
  }
  prepared.scene.RunAndWait(prepared.graph);
  check.Expect(tensors.IsSum(), "The sum is wrong after the descriptors are gone.");
}

void OneBindingServesManyRuns(Check& check) {
  Prepared prepared(check);
  if (prepared.graph == nullptr) return;
  AddTensors& tensors = prepared.tensors;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(check.library(), prepared.graph),
                     "onnxSetGraphIO");
  for (int run = 0; run < 20; ++run) {
    for (float& value : tensors.x()) value = static_cast<float>(run) - value;
    if (!prepared.scene.RunAndWait(prepared.graph)) return;
    check.Expect(tensors.IsSum(), "A run does not read the values that are in the inputs now.");
  }
}

void BindingCanBeReplaced(Check& check) {
  Prepared prepared(check);
  if (prepared.graph == nullptr) return;
  for (int time = 0; time < 5; ++time) {
    AddTensors other(static_cast<float>(time) * 3);
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, other.Bind(check.library(), prepared.graph),
                       "onnxSetGraphIO that replaces a binding");
    prepared.scene.RunAndWait(prepared.graph);
    check.Expect(other.IsSum(), "A run does not use the latest binding.");
  }
}

void InputMayBeReturnedUnchanged(Check& check) {
  Scene scene(check);
  // R24: one name as input and output.
  const std::string model = ModelWriter()
                                .Input("x", ElementType::kFloat32, {kRows, kColumns})
                                .Node("Relu", {"x"}, {"y"})
                                .Output("y", ElementType::kFloat32, {kRows, kColumns})
                                .Output("x", ElementType::kFloat32, {kRows, kColumns})
                                .Build();
  const onnxGraph graph = scene.InitGraph(model);
  if (graph == nullptr) return;
  const std::array<int64_t, 2> extents = {kRows, kColumns};
  std::vector<float> x = {1, -2, 3, -4, 5, -6};
  std::vector<float> y(6, -1);
  std::vector<float> copy(6, -1);
  client::DescriptorList inputs;
  client::DescriptorList outputs;
  inputs.Add("x", ElementType::kFloat32, extents, x.data());
  outputs.Add("x", ElementType::kFloat32, extents, copy.data());
  outputs.Add("y", ElementType::kFloat32, extents, y.data());
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     check.library().onnxSetGraphIO(graph, 1, inputs.data(), 2, outputs.data()),
                     "onnxSetGraphIO with a name in both lists (R24)");
  scene.RunAndWait(graph);
  check.Expect(copy == x, "An input that is returned unchanged arrives changed.");
  check.Expect(y == std::vector<float>({1, 0, 3, 0, 5, 0}), "The other output is wrong.");
}

void BuffersNeedOnlyNaturalAlignment(Check& check) {
  Prepared prepared(check);
  if (prepared.graph == nullptr) return;
  std::vector<float> storage(32, 0.0f);
  AddTensors& tensors = prepared.tensors;
  // R29: every element offset within a cache line is legal.
  for (size_t offset = 0; offset < 17; ++offset) {
    std::fill(storage.begin(), storage.end(), -3.0f);
    tensors.outputs()[0].buffer = reinterpret_cast<onnxPointer>(storage.data() + 4 + offset);
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(check.library(), prepared.graph),
                       "onnxSetGraphIO with a buffer on natural alignment");
    if (!prepared.scene.RunAndWait(prepared.graph)) return;
    for (size_t index = 0; index < storage.size(); ++index) {
      const bool is_inside = index >= 4 + offset && index < 4 + offset + 6;
      const float expected =
          is_inside ? tensors.x()[index - 4 - offset] + tensors.y()[index - 4 - offset] : -3.0f;
      check.Expect(storage[index] == expected,
                   "A run writes wrongly, or beside a buffer on natural alignment.");
    }
  }
}

// The rule of sdk.h for memory that inputs and outputs share.
bool MayShareMemory(Check& check) {
  if (check.extensions().infer_output_shapes != nullptr) return true;
  check.SetNotSupported(ONNXIFI_STATUS_UNIDENTIFIED_NAME,
                        "The library does not offer the functions of sdk.h.");
  return false;
}

// Binds, runs twice, and expects the second run to read what the first one left.
void RunTwice(Check& check, Scene& scene, onnxGraph graph, const client::DescriptorList& inputs,
              const client::DescriptorList& outputs, const std::vector<float>& memory,
              std::vector<float> (*expect)(const std::vector<float>&), std::string_view what) {
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     check.library().onnxSetGraphIO(graph, inputs.count(), inputs.data(),
                                                    outputs.count(), outputs.data()),
                     "onnxSetGraphIO with inputs and outputs that share memory");
  for (int run = 0; run < 2; ++run) {
    const std::vector<float> expected = expect(memory);
    if (!scene.RunAndWait(graph)) return;
    check.Expect(memory == expected, std::string(what) + " computes what it should not.");
  }
}

constexpr int64_t kEdge = 16;
constexpr size_t kSquare = kEdge * kEdge;

std::vector<float> Ascending(size_t count) {
  std::vector<float> values(count);
  for (size_t k = 0; k < count; ++k) values[k] = static_cast<float>(k);
  return values;
}

// `memory` after a square at its begin was transposed to `offset`.
template <size_t offset>
std::vector<float> Transposed(const std::vector<float>& memory) {
  std::vector<float> result = memory;
  for (size_t row = 0; row < kEdge; ++row) {
    for (size_t column = 0; column < kEdge; ++column) {
      result[offset + row * kEdge + column] = memory[column * kEdge + row];
    }
  }
  return result;
}

void OutputMayShareAnInputsMemory(Check& check) {
  if (!MayShareMemory(check)) return;
  Scene scene(check);
  const std::string model = ModelWriter()
                                .Input("x", ElementType::kFloat32, {kEdge, kEdge})
                                .Node("Transpose", {"x"}, {"y"})
                                .Output("y", ElementType::kFloat32, {kEdge, kEdge})
                                .Build();
  const onnxGraph graph = scene.InitGraph(model);
  if (graph == nullptr) return;
  const std::array<int64_t, 2> extents = {kEdge, kEdge};
  const auto bind_at = [&](std::vector<float>& memory, size_t offset,
                           std::vector<float> (*expect)(const std::vector<float>&),
                           std::string_view what) {
    client::DescriptorList inputs;
    client::DescriptorList outputs;
    inputs.Add("x", ElementType::kFloat32, extents, memory.data());
    outputs.Add("y", ElementType::kFloat32, extents, memory.data() + offset);
    RunTwice(check, scene, graph, inputs, outputs, memory, expect, what);
  };
  std::vector<float> whole = Ascending(kSquare);
  bind_at(whole, 0, Transposed<0>, "A run whose output is the memory of its input");
  std::vector<float> partial = Ascending(2 * kSquare);
  bind_at(partial, kSquare / 2 + 3, Transposed<kSquare / 2 + 3>,
          "A run whose output has a part of its input's memory");
}

// Of two squares each becomes the other one's negative.
std::vector<float> ExchangedNegatives(const std::vector<float>& memory) {
  std::vector<float> result(2 * kSquare);
  for (size_t k = 0; k < kSquare; ++k) {
    result[k] = -memory[kSquare + k];
    result[kSquare + k] = -memory[k];
  }
  return result;
}

void OutputsMayShareTheMemoryOfOtherInputs(Check& check) {
  if (!MayShareMemory(check)) return;
  Scene scene(check);
  const std::string model = ModelWriter()
                                .Input("x", ElementType::kFloat32, {kEdge, kEdge})
                                .Input("y", ElementType::kFloat32, {kEdge, kEdge})
                                .Node("Neg", {"x"}, {"u"})
                                .Node("Neg", {"y"}, {"v"})
                                .Output("u", ElementType::kFloat32, {kEdge, kEdge})
                                .Output("v", ElementType::kFloat32, {kEdge, kEdge})
                                .Build();
  const onnxGraph graph = scene.InitGraph(model);
  if (graph == nullptr) return;
  const std::array<int64_t, 2> extents = {kEdge, kEdge};
  std::vector<float> memory = Ascending(2 * kSquare);
  client::DescriptorList inputs;
  client::DescriptorList outputs;
  inputs.Add("x", ElementType::kFloat32, extents, memory.data());
  inputs.Add("y", ElementType::kFloat32, extents, memory.data() + kSquare);
  outputs.Add("u", ElementType::kFloat32, extents, memory.data() + kSquare);
  outputs.Add("v", ElementType::kFloat32, extents, memory.data());
  RunTwice(check, scene, graph, inputs, outputs, memory, ExchangedNegatives,
           "A run whose outputs have the memory of the other input each");
}

// A decoder's cache: the run with present in the memory of past gives what one with memory of its
// own gives.
void CacheMayBeExtendedInPlace(Check& check) {
  if (!MayShareMemory(check)) return;
  Scene scene(check);
  constexpr int64_t kHeads = 2;
  constexpr int64_t kHeadSize = 8;
  constexpr int64_t kRoom = 12;
  constexpr int32_t kPast = 5;
  constexpr size_t kRow = kHeads * kHeadSize;
  constexpr size_t kCache = kHeads * kRoom * kHeadSize;
  const std::vector<Dimension> row = {int64_t{1}, int64_t{1}, int64_t{kRow}};
  const std::vector<Dimension> cache = {int64_t{1}, kHeads, kRoom, kHeadSize};
  const std::string model =
      ModelWriter()
          .Input("query", ElementType::kFloat32, row)
          .Input("key", ElementType::kFloat32, row)
          .Input("value", ElementType::kFloat32, row)
          .Input("past_key", ElementType::kFloat32, cache)
          .Input("past_value", ElementType::kFloat32, cache)
          .Input("seqlens_k", ElementType::kInt32, {int64_t{1}})
          .Input("total", ElementType::kInt32, {})
          .Node("GroupQueryAttention",
                {"query", "key", "value", "past_key", "past_value", "seqlens_k", "total"},
                {"output", "present_key", "present_value"},
                {onnx_file::MakeIntAttribute("num_heads", kHeads),
                 onnx_file::MakeIntAttribute("kv_num_heads", kHeads)},
                "com.microsoft")
          .Import("com.microsoft", 1)
          .Output("output", ElementType::kFloat32, row)
          .Output("present_key", ElementType::kFloat32, cache)
          .Output("present_value", ElementType::kFloat32, cache)
          .Build();
  const onnxGraph graph = scene.InitGraph(model);
  if (graph == nullptr) return;
  const std::array<int64_t, 3> row_extents = {1, 1, kRow};
  const std::array<int64_t, 4> cache_extents = {1, kHeads, kRoom, kHeadSize};
  const auto draw = [](size_t count, int seed) {
    std::vector<float> values(count);
    for (size_t k = 0; k < count; ++k) {
      values[k] = static_cast<float>((k * 37 + static_cast<size_t>(seed) * 11) % 17) / 8 - 1;
    }
    return values;
  };
  struct Caches {
    std::vector<float> output, key, value;
  };
  // Two tokens, one after the other.
  const auto decode = [&](bool is_shared) {
    Caches past = {std::vector<float>(kRow), draw(kCache, 1), draw(kCache, 2)};
    for (int32_t token = 0; token < 2; ++token) {
      Caches present = past;
      Caches& made = is_shared ? past : present;
      std::vector<float> rows[3] = {draw(kRow, 3 + token), draw(kRow, 5 + token),
                                    draw(kRow, 7 + token)};
      int32_t last = kPast + token;
      int32_t total = last + 1;
      const std::array<int64_t, 1> one = {1};
      client::DescriptorList inputs;
      client::DescriptorList outputs;
      inputs.Add("query", ElementType::kFloat32, row_extents, rows[0].data());
      inputs.Add("key", ElementType::kFloat32, row_extents, rows[1].data());
      inputs.Add("value", ElementType::kFloat32, row_extents, rows[2].data());
      inputs.Add("past_key", ElementType::kFloat32, cache_extents, past.key.data());
      inputs.Add("past_value", ElementType::kFloat32, cache_extents, past.value.data());
      inputs.Add("seqlens_k", ElementType::kInt32, one, &last);
      inputs.Add("total", ElementType::kInt32, {}, &total);
      outputs.Add("output", ElementType::kFloat32, row_extents, made.output.data());
      outputs.Add("present_key", ElementType::kFloat32, cache_extents, made.key.data());
      outputs.Add("present_value", ElementType::kFloat32, cache_extents, made.value.data());
      check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                         check.library().onnxSetGraphIO(graph, 7, inputs.data(), 3, outputs.data()),
                         "onnxSetGraphIO of a decoder");
      scene.RunAndWait(graph);
      past = made;
    }
    return past;
  };
  const Caches apart = decode(/*is_shared=*/false);
  const Caches shared = decode(/*is_shared=*/true);
  check.Expect(shared.key == apart.key && shared.value == apart.value,
               "A cache that is extended in place differs from one that is made anew.");
  check.Expect(shared.output == apart.output,
               "Attention to a cache that is extended in place differs.");
  check.Expect(apart.key != draw(kCache, 1), "The new token is not in the cache.");
}

constexpr InterfaceCase kCases[] = {
    {"bindings", "tag_is_checked_first", TagIsCheckedFirst},
    {"bindings", "names_are_those_of_the_graph", NamesMustBeTheGraphs},
    {"bindings", "names_are_unique", NamesMustBeUnique},
    {"bindings", "data_types_are_checked", DataTypesAreChecked},
    {"bindings", "memory_types_are_checked", MemoryTypesAreChecked},
    {"bindings", "known_memory_types_may_be_unsupported", KnownMemoryTypesMayBeUnsupported},
    {"bindings", "opaque_file_descriptors_are_checked", OpaqueFileDescriptorsAreChecked},
    {"bindings", "shapes_are_checked", ShapesAreChecked},
    {"bindings", "buffers_exist", BuffersMustExist},
    {"bindings", "set_io_checks_its_arguments_in_order", ArgumentsAreChecked},
    {"bindings", "static_inputs_get_no_descriptor", StaticInputsGetNoDescriptor},
    {"bindings", "order_of_descriptors_is_free", OrderIsFree},
    {"bindings", "descriptors_are_copied", MetadataIsCopied},
    {"bindings", "one_binding_serves_many_runs", OneBindingServesManyRuns},
    {"bindings", "binding_can_be_replaced", BindingCanBeReplaced},
    {"bindings", "input_may_be_returned_unchanged", InputMayBeReturnedUnchanged},
    {"bindings", "buffers_need_only_natural_alignment", BuffersNeedOnlyNaturalAlignment},
    {"bindings", "output_may_share_an_inputs_memory", OutputMayShareAnInputsMemory},
    {"bindings", "outputs_may_share_other_inputs_memory", OutputsMayShareTheMemoryOfOtherInputs},
    {"bindings", "cache_may_be_extended_in_place", CacheMayBeExtendedInPlace},
};

}  // namespace

std::span<const InterfaceCase> BindingCases() { return kCases; }

}  // namespace onnxifi::suites
