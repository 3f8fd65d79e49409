// SPDX-License-Identifier: Apache-2.0
//
// Models that are mapped files: what becomes of that property on the way to the devices.

#include <gtest/gtest.h>
#include <onnxifi/sdk.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#undef MAP_TYPE  // a constant of ONNX's parser has this name

#include "onnxifi/testing/planned_sandbox.h"

namespace onnxifi::dispatch {
namespace {

constexpr int64_t kCount = 100'000;

float WeightAt(int64_t index) { return static_cast<float>(index % 977) - 400.5F; }

// y = Neg(x + w), with w much larger than a page.
std::string MakeModel() {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(model, R"(<ir_version: 10, opset_import: ["" : 21]>
        graph (float[N, 1] x) => (float[N, 100000] y) { a = Add(x, w)  y = Neg(a) })");
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  std::vector<float> numbers;
  for (int64_t k = 0; k < kCount; ++k) numbers.push_back(WeightAt(k));
  onnx::TensorProto& weight = *model.mutable_graph()->add_initializer();
  weight.set_name("w");
  weight.set_data_type(onnx::TensorProto::FLOAT);
  weight.add_dims(kCount);
  weight.set_raw_data(numbers.data(), numbers.size() * sizeof(float));
  return model.SerializeAsString();
}

// The answers are of one device that runs all, of two, and of one that knows the standard alone.
struct Case {
  const char* first;
  const char* second;
  bool is_plain;
  bool is_lasting = false;  // the mapping stays for as long as the graph
};

class MappedModel : public testing::TestWithParam<Case> {};

TEST_P(MappedModel, RunsAsAnyOtherAndKeepsItsBytes) {
  PlannedSandbox sandbox;
  sandbox.AddMock("first", GetParam().first)
      .AddMock("second", GetParam().second,
               GetParam().is_plain ? ONNXIFI_TEST_PLAIN_MOCK : ONNXIFI_TEST_MOCK);
  const Library library = sandbox.Open();
  const std::string text = MakeModel();
  const std::filesystem::path path = sandbox.folder() / "model.onnx";
  std::ofstream(path, std::ios::binary) << text;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  ASSERT_NE(file, nullptr);
  void* mapped = mmap(nullptr, text.size(), PROT_READ, MAP_PRIVATE, fileno(file), 0);
  std::fclose(file);
  ASSERT_NE(mapped, MAP_FAILED);
  const std::span<const std::byte> model(static_cast<const std::byte*>(mapped), text.size());

  const Device device = *library.FindDevice("auto");
  const Backend backend = *device.InitBackend();
  // Permissions: a device that does not know them is not told.
  auto graph = backend.InitGraph(model, {.precision = ONNXIFI_SDK_PRECISION_FLOAT16,
                                         .dynamic_quantization = true,
                                         .mapped_model = true,
                                         .lasting_model = GetParam().is_lasting});
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  if (!GetParam().is_lasting) {
    EXPECT_EQ(std::string(static_cast<const char*>(mapped), text.size()), text);
    munmap(mapped, text.size());
  }
  std::vector<float> x = {1, -2};
  std::vector<float> y(2 * kCount, -99);
  const std::vector<Tensor> inputs = {{"x", ONNXIFI_DATATYPE_FLOAT32, {2, 1}, x.data()}};
  const std::vector<Tensor> outputs = {{"y", ONNXIFI_DATATYPE_FLOAT32, {2, kCount}, y.data()}};
  ASSERT_TRUE(graph->SetIO(inputs, outputs));
  ASSERT_TRUE(graph->RunAndWait());
  for (int64_t k = 0; k < 2 * kCount; ++k) {
    ASSERT_EQ(y[static_cast<size_t>(k)],
              -(x[static_cast<size_t>(k / kCount)] + WeightAt(k % kCount)));
  }
  if (GetParam().is_lasting) {
    EXPECT_EQ(std::string(static_cast<const char*>(mapped), text.size()), text);
    graph = Error{};
    munmap(mapped, text.size());
  }
  // It says nothing else: nothing was measured either.
  EXPECT_FALSE(std::filesystem::exists(sandbox.folder() / "cache"));
}

INSTANTIATE_TEST_SUITE_P(
    Devices, MappedModel,
    testing::Values(
        Case{R"({"operators": ["Add", "Neg"]})", R"({"operators": ["Abs"]})", false},
        Case{R"({"operators": ["Add"]})", R"({"operators": ["Neg"]})", false},
        Case{R"({"operators": ["Abs"]})", R"({"operators": ["Add", "Neg"]})", true},
        Case{R"({"operators": ["Add", "Neg"]})", R"({"operators": ["Abs"]})", false, true},
        Case{R"({"operators": ["Add"]})", R"({"operators": ["Neg"]})", false, true},
        Case{R"({"operators": ["Abs"]})", R"({"operators": ["Add", "Neg"]})", true, true}));

}  // namespace
}  // namespace onnxifi::dispatch
