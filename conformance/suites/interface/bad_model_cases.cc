// SPDX-License-Identifier: Apache-2.0
//
// Bytes that are no model and models that break ONNX's rules: each gets its status and a sentence,
// nothing more happens.

#include <fmt/format.h>
#include <onnx/onnxifi.h>

#include <array>
#include <random>
#include <string>

#include "client/onnx_file/wire_writer.h"
#include "conformance/suites/interface/case_groups.h"
#include "conformance/suites/interface/check.h"
#include "conformance/suites/interface/scene.h"
#include "conformance/suites/interface/small_models.h"

namespace onnxifi::suites {
namespace {

constexpr ElementType kFloat = ElementType::kFloat32;

// Asks both functions; both answer one of the expected codes.
void ExpectBoth(Check& check, std::initializer_list<onnxStatus> expected, const std::string& model,
                std::string_view what) {
  check.ExpectOneOf(
      expected, check.library().onnxGetBackendCompatibility(check.id(), model.size(), model.data()),
      fmt::format("onnxGetBackendCompatibility for {}", what));
  Scene scene(check);
  onnxGraph graph = reinterpret_cast<onnxGraph>(&scene);
  const onnxStatus status = check.library().onnxInitGraph(scene.backend(), nullptr, model.size(),
                                                          model.data(), 0, nullptr, &graph);
  check.ExpectOneOf(expected, status, fmt::format("onnxInitGraph for {}", what));
  if (client::IsAcceptance(status)) {
    scene.ReleaseGraphNow(graph);
  } else {
    check.Expect(graph == nullptr, "onnxInitGraph fails and leaves *graph other than NULL.");
  }
}

void GarbageIsNoProtobuf(Check& check) {
  const std::string bytes(64, '\xFF');
  ExpectBoth(check, {ONNXIFI_STATUS_INVALID_PROTOBUF}, bytes, "64 bytes of 0xFF");
  ExpectBoth(check, {ONNXIFI_STATUS_INVALID_PROTOBUF}, std::string("\x3A\xFF\xFF\xFF\xFF\x0F", 6),
             "a field that is longer than the message");
}

void TruncatedModelsAreRefused(Check& check) {
  const std::string model = MakeAddModel();
  for (size_t size = 1; size < model.size(); ++size) {
    const onnxStatus status =
        check.library().onnxGetBackendCompatibility(check.id(), size, model.data());
    const bool is_named =
        status == ONNXIFI_STATUS_INVALID_PROTOBUF || status == ONNXIFI_STATUS_INVALID_MODEL ||
        status == ONNXIFI_STATUS_UNSUPPORTED_VERSION || client::IsAcceptance(status);
    check.Expect(is_named, fmt::format("onnxGetBackendCompatibility for the first {} of {} bytes "
                                       "answers {}.",
                                       size, model.size(), client::StatusName(status)));
  }
}

void FlippedBitsDoNoHarm(Check& check) {
  const std::string model = MakeInitializerModel();
  std::mt19937 generator(20260101);
  Scene scene(check);
  if (!scene.is_ready()) return;
  for (int time = 0; time < 3000; ++time) {
    std::string mutant = model;
    const unsigned flips = 1 + generator() % 4;
    for (unsigned flip = 0; flip < flips; ++flip) {
      mutant[generator() % mutant.size()] ^= static_cast<char>(1 << generator() % 8);
    }
    const onnxStatus claim =
        check.library().onnxGetBackendCompatibility(check.id(), mutant.size(), mutant.data());
    if (!client::IsAcceptance(claim)) {
      check.Expect(
          check.extensions().get_last_error_message == nullptr ||
              !check.library().LastError().empty(),
          fmt::format("A mutant is answered {} without a sentence.", client::StatusName(claim)));
    }
    onnxGraph graph = nullptr;
    const onnxStatus status = check.library().onnxInitGraph(scene.backend(), nullptr, mutant.size(),
                                                            mutant.data(), 0, nullptr, &graph);
    check.Expect(client::IsAcceptance(status) == (graph != nullptr),
                 "onnxInitGraph stores a graph and fails, or the reverse.");
    if (graph != nullptr) scene.ReleaseGraphNow(graph);
  }
}

void ModelWithoutGraphIsInvalid(Check& check) {
  std::string model;
  onnx_file::AppendIntegerField(model, 1, 8);
  ExpectBoth(check, {ONNXIFI_STATUS_INVALID_MODEL}, model, "a model without a graph");
}

void TwoValuesOfOneNameAreInvalid(Check& check) {
  const std::string model = ModelWriter()
                                .Input("x", kFloat, {kRows})
                                .Node("Relu", {"x"}, {"y"})
                                .Node("Neg", {"x"}, {"y"})
                                .Output("y", kFloat, {kRows})
                                .Build();
  ExpectBoth(check, {ONNXIFI_STATUS_INVALID_MODEL}, model, "a value that two nodes make");
}

void CyclesAreInvalid(Check& check) {
  const std::string model = ModelWriter()
                                .Input("x", kFloat, {kRows})
                                .Node("Add", {"x", "b"}, {"a"})
                                .Node("Add", {"x", "a"}, {"b"})
                                .Output("b", kFloat, {kRows})
                                .Build();
  ExpectBoth(check, {ONNXIFI_STATUS_INVALID_MODEL}, model, "a cycle of two nodes");
}

void MissingAttributeIsInvalid(Check& check) {
  const std::string model = ModelWriter()
                                .Input("x", kFloat, {kRows})
                                .Node("Concat", {"x", "x"}, {"y"})  // axis is required.
                                .Output("y", kFloat, {"N"})
                                .Build();
  ExpectBoth(check, {ONNXIFI_STATUS_INVALID_MODEL}, model, "Concat without its axis");
}

void WrongNumberOfInputsIsInvalid(Check& check) {
  const std::string model = ModelWriter()
                                .Input("x", kFloat, {kRows})
                                .Node("Add", {"x"}, {"y"})
                                .Output("y", kFloat, {kRows})
                                .Build();
  ExpectBoth(check, {ONNXIFI_STATUS_INVALID_MODEL}, model, "Add with one input");
}

void ImpossibleInputsAreRefused(Check& check) {
  const std::string model = ModelWriter()
                                .Input("a", kFloat, {int64_t{2}, int64_t{3}})
                                .Input("b", kFloat, {int64_t{4}, int64_t{5}})
                                .Node("MatMul", {"a", "b"}, {"c"})
                                .Output("c", kFloat, {int64_t{2}, int64_t{5}})
                                .Build();
  ExpectBoth(check, {ONNXIFI_STATUS_INVALID_MODEL, ONNXIFI_STATUS_MISMATCHING_SHAPE}, model,
             "MatMul of [2, 3] and [4, 5]");
}

void WeightOfTheWrongSizeIsInvalid(Check& check) {
  onnx_file::DenseTensor weight = onnx_file::MakeFloatTensor("y", {kRows, kColumns}, {1, 2});
  const std::string model = ModelWriter()
                                .Input("x", kFloat, {kRows, kColumns})
                                .Initializer(weight)
                                .Node("Add", {"x", "y"}, {"z"})
                                .Output("z", kFloat, {kRows, kColumns})
                                .Build();
  Scene scene(check);
  onnxGraph graph = nullptr;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_MODEL,
                     check.library().onnxInitGraph(scene.backend(), nullptr, model.size(),
                                                   model.data(), 0, nullptr, &graph),
                     "onnxInitGraph for an initializer with 8 bytes for 6 elements");
}

// `depth` If nodes inside each other, or as many nested messages.
std::string NestGraphs(int depth) {
  std::string graph =
      ModelWriter().Node("Identity", {"x"}, {"y"}).Output("y", kFloat, {kRows}).BuildGraph();
  for (int level = 0; level < depth; ++level) {
    graph =
        ModelWriter()
            .Node("If", {"condition"}, {"y"},
                  {onnx_file::MakeGraphAttribute("then_branch", graph),
                   onnx_file::MakeGraphAttribute("else_branch", ModelWriter()
                                                                    .Node("Identity", {"x"}, {"y"})
                                                                    .Output("y", kFloat, {kRows})
                                                                    .BuildGraph())})
            .Output("y", kFloat, {kRows})
            .BuildGraph();
  }
  return ModelWriter()
      .Input("x", kFloat, {kRows})
      .Input("condition", ElementType::kBool, {})
      .Node("If", {"condition"}, {"y"},
            {onnx_file::MakeGraphAttribute("then_branch", graph),
             onnx_file::MakeGraphAttribute("else_branch", graph)})
      .Output("y", kFloat, {kRows})
      .Build();
}

void NestingBombsAreRefused(Check& check) {
  // 200 levels are beyond protobuf's own limit of 100 messages; 8 are legal.
  const std::string bomb = NestGraphs(200);
  const onnxStatus status =
      check.library().onnxGetBackendCompatibility(check.id(), bomb.size(), bomb.data());
  check.Expect(!client::IsAcceptance(status), "A graph nested 200 deep is accepted.");
  const std::string legal = NestGraphs(8);
  const onnxStatus answer =
      check.library().onnxGetBackendCompatibility(check.id(), legal.size(), legal.data());
  check.Expect(client::IsAcceptance(answer) || client::IsRefusal(answer),
               fmt::format("A graph nested 8 deep is answered {}.", client::StatusName(answer)));
}

void ExternalDataMayNotLeaveItsFolder(Check& check) {
  // A TensorProto whose data lie in another file; location is key and value of an entry of
  // field 13.
  for (const std::string_view location : {"../../../../etc/passwd", "/etc/passwd", "missing.bin"}) {
    std::string entry;
    onnx_file::AppendBytesField(entry, 1, "location");
    onnx_file::AppendBytesField(entry, 2, location);
    std::string tensor;
    onnx_file::AppendIntegerField(tensor, 1, kRows);
    onnx_file::AppendIntegerField(tensor, 2, 1);
    onnx_file::AppendBytesField(tensor, 8, "w");
    onnx_file::AppendBytesField(tensor, 13, entry);
    onnx_file::AppendIntegerField(tensor, 14, 1);
    const std::string model = ModelWriter()
                                  .Input("x", kFloat, {kRows})
                                  .RawInitializer(tensor)
                                  .Node("Add", {"x", "w"}, {"y"})
                                  .Output("y", kFloat, {kRows})
                                  .Build();
    Scene scene(check);
    if (!scene.is_ready()) return;
    onnxGraph graph = nullptr;
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_MODEL,
                       check.library().onnxInitGraph(scene.backend(), nullptr, model.size(),
                                                     model.data(), 0, nullptr, &graph),
                       fmt::format("onnxInitGraph with data in '{}' and no base folder", location));
    const std::array<uint64_t, 3> list = {ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER,
                                          reinterpret_cast<uint64_t>("/tmp"), 0};
    const onnxStatus status = check.library().onnxInitGraph(
        scene.backend(), list.data(), model.size(), model.data(), 0, nullptr, &graph);
    check.ExpectOneOf({ONNXIFI_STATUS_INVALID_MODEL, ONNXIFI_STATUS_UNSUPPORTED_PROPERTY}, status,
                      fmt::format("onnxInitGraph with data in '{}' below /tmp", location));
  }
}

void MoreMemoryThanThereIs(Check& check) {
  // 2^40 floats, 4 TiB, in the middle of a model whose inputs are small.
  constexpr int64_t kSide = int64_t{1} << 20;
  const std::string model = MakeHugeModel(kSide);
  const client::Library& library = check.library();
  const std::initializer_list<onnxStatus> refusals = {
      ONNXIFI_STATUS_NO_SYSTEM_MEMORY, ONNXIFI_STATUS_NO_DEVICE_MEMORY,
      ONNXIFI_STATUS_UNSUPPORTED_SHAPE, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR};
  const onnxStatus claim =
      library.onnxGetBackendCompatibility(check.id(), model.size(), model.data());
  if (!client::IsAcceptance(claim)) {
    check.ExpectOneOf(refusals, claim, "onnxGetBackendCompatibility for a model of 4 TiB");
    return;
  }
  Scene scene(check);
  onnxGraph graph = nullptr;
  onnxStatus status = library.onnxInitGraph(scene.backend(), nullptr, model.size(), model.data(), 0,
                                            nullptr, &graph);
  if (!client::IsAcceptance(status)) {
    check.ExpectOneOf(refusals, status, "onnxInitGraph for a model of 4 TiB");
    return;
  }
  std::vector<float> vector(static_cast<size_t>(kSide), 1.0f);
  float result = 0;
  client::DescriptorList inputs;
  client::DescriptorList outputs;
  inputs.Add("a", kFloat, std::array<int64_t, 2>{kSide, 1}, vector.data());
  inputs.Add("b", kFloat, std::array<int64_t, 2>{1, kSide}, vector.data());
  outputs.Add("r", kFloat, {}, &result);
  status = library.onnxSetGraphIO(graph, 2, inputs.data(), 1, outputs.data());
  if (!client::IsAcceptance(status)) {
    check.ExpectOneOf(refusals, status, "onnxSetGraphIO for a model of 4 TiB");
    scene.ReleaseGraphNow(graph);
    return;
  }
  const onnxEvent event = scene.InitEvent();
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, library.onnxSignalEvent(event), "onnxSignalEvent");
  const onnxMemoryFenceV1 input = MakeFence(event);
  onnxMemoryFenceV1 output = MakeFence(nullptr);
  status = library.onnxRunGraph(graph, &input, &output);
  if (!client::IsAcceptance(status)) {
    check.ExpectOneOf(refusals, status, "onnxRunGraph for a model of 4 TiB");
  } else {
    scene.Keep(output.event);
    check.ExpectOneOf({ONNXIFI_STATUS_INTERNAL_ERROR}, library.onnxWaitEvent(output.event),
                      "onnxWaitEvent for a run that needs 4 TiB");
  }
  scene.ReleaseGraphNow(graph);
}

constexpr InterfaceCase kCases[] = {
    {"bad models", "garbage_is_no_protobuf", GarbageIsNoProtobuf},
    {"bad models", "truncated_models_are_refused", TruncatedModelsAreRefused},
    {"bad models", "flipped_bits_do_no_harm", FlippedBitsDoNoHarm},
    {"bad models", "model_without_graph_is_invalid", ModelWithoutGraphIsInvalid},
    {"bad models", "two_values_of_one_name_are_invalid", TwoValuesOfOneNameAreInvalid},
    {"bad models", "cycles_are_invalid", CyclesAreInvalid},
    {"bad models", "missing_attribute_is_invalid", MissingAttributeIsInvalid},
    {"bad models", "wrong_number_of_inputs_is_invalid", WrongNumberOfInputsIsInvalid},
    {"bad models", "impossible_inputs_are_refused", ImpossibleInputsAreRefused},
    {"bad models", "weight_of_the_wrong_size_is_invalid", WeightOfTheWrongSizeIsInvalid},
    {"bad models", "nesting_bombs_are_refused", NestingBombsAreRefused},
    {"bad models", "external_data_may_not_leave_its_folder", ExternalDataMayNotLeaveItsFolder},
    {"bad models", "more_memory_than_there_is", MoreMemoryThanThereIs},
};

}  // namespace

std::span<const InterfaceCase> BadModelCases() { return kCases; }

}  // namespace onnxifi::suites
