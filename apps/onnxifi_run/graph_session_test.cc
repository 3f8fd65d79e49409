// SPDX-License-Identifier: Apache-2.0
//
// GraphSession: when a model is initialised for values, and what becomes of a library that keeps
// others than its outputs.

#include "apps/onnxifi_run/graph_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "client/onnx_file/wire_writer.h"

namespace onnxifi::run {
namespace {

using onnx_file::AppendBytesField;
using onnx_file::AppendIntegerField;
using onnx_file::DenseTensor;
using onnx_file::ElementType;
using onnx_file::FileValue;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A ValueInfoProto of a tensor [rows, columns].
std::string Declare(const char* name, ElementType type, const char* columns, int64_t rows = 2) {
  std::string first, last, shape, tensor, declared, value;
  AppendIntegerField(first, 1, rows);
  AppendBytesField(last, 2, columns);
  AppendBytesField(shape, 1, first);
  AppendBytesField(shape, 1, last);
  AppendIntegerField(tensor, 1, static_cast<int64_t>(type));
  AppendBytesField(tensor, 2, shape);
  AppendBytesField(declared, 1, tensor);
  AppendBytesField(value, 1, name);
  AppendBytesField(value, 2, declared);
  return value;
}

// A ModelProto of one node, from x (float [2, m]) to y, which is declared [rows, n].
std::string MakeModel(const char* op_type, ElementType result, int64_t rows = 2) {
  std::string node, graph, opset, model;
  AppendBytesField(node, 1, "x");
  AppendBytesField(node, 2, "y");
  AppendBytesField(node, 4, op_type);
  AppendBytesField(graph, 1, node);
  AppendBytesField(graph, 2, "one");
  AppendBytesField(graph, 11, Declare("x", ElementType::kFloat32, "m"));
  AppendBytesField(graph, 12, Declare("y", result, "n", rows));
  AppendIntegerField(opset, 2, 13);
  AppendIntegerField(model, 1, 8);
  AppendBytesField(model, 7, graph);
  AppendBytesField(model, 8, opset);
  return model;
}

std::string NonZero() { return MakeModel("NonZero", ElementType::kInt64); }
std::string Negative() { return MakeModel("Neg", ElementType::kFloat32); }

template <typename T>
DenseTensor MakeTensor(const char* name, ElementType type, std::vector<int64_t> extents,
                       const std::vector<T>& numbers) {
  DenseTensor tensor{.name = name, .type = type, .extents = std::move(extents)};
  const auto bytes = std::as_bytes(std::span(numbers));
  tensor.bytes.assign(bytes.begin(), bytes.end());
  return tensor;
}

template <typename T>
std::vector<T> Numbers(const FileValue& value) {
  std::vector<T> numbers(value.tensor.bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), value.tensor.bytes.data(), value.tensor.bytes.size());
  return numbers;
}

// The null plugin behind a library that lies: a copy, which is a library of its own to the system.
class GraphSessionTest : public ::testing::Test {
 protected:
  GraphSessionTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "onnxifi-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~GraphSessionTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // A session on x [2, 3], of which three elements are not zero.
  base::Result<GraphSession> Open(std::string model, const char* lie,
                                  const std::vector<FileValue>& expected = {}) {
    model_ = std::move(model);
    const std::filesystem::path copy = folder_ / (std::to_string(copies_++) + ".so");
    std::filesystem::copy_file(ONNXIFI_MUTANT, copy);
    setenv("ONNXIFI_MUTANT_TARGET", ONNXIFI_MUTANT_TARGET, /*overwrite=*/1);
    setenv("ONNXIFI_MUTANT_LIE", lie, /*overwrite=*/1);
    const auto library = Library::Open(copy.string());
    if (!library) return base::Status(base::Code::kBackendUnavailable, library.error().Text());
    const auto devices = library->Devices();
    const auto bytes = std::as_bytes(std::span(model_));
    ONNXIFI_ASSIGN_OR_RETURN(const onnx_file::ModelOutline outline,
                             onnx_file::ParseModelOutline(bytes));
    return GraphSession::Open(devices->front(), {options_, bytes, outline, inputs_, expected},
                              std::nullopt, /*is_profiled=*/false, /*rounding=*/{});
  }

 private:
  std::filesystem::path folder_;
  int copies_ = 0;
  const Options options_;
  // Lent to the graph that was opened last.
  std::string model_;
  std::vector<DenseTensor> inputs_ = {
      MakeTensor<float>("x", ElementType::kFloat32, {2, 3}, {0, 5, 0, -1, 0, 2})};
};

TEST_F(GraphSessionTest, ASecondInitialisationIsForValuesWhereNothingBoundsAnOutput) {
  auto session = Open(NonZero(), "");
  ASSERT_TRUE(session.ok()) << session.status().Text();
  for (int run = 0; run < 2; ++run) {
    const auto ran = session->Run();
    ASSERT_TRUE(ran.ok()) << ran.status().Text();
  }
  const std::vector<FileValue> outputs = session->TakeOutputs();
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_THAT(outputs[0].tensor.extents, ElementsAre(2, 3));
  EXPECT_THAT(Numbers<int64_t>(outputs[0]), ElementsAre(0, 1, 1, 1, 0, 2));
}

// Only a bound helps.
TEST_F(GraphSessionTest, ALibraryMayRefuseValues) {
  const char* const lie = "refuses graphs of values";
  const auto refused = Open(NonZero(), lie);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().Text(),
              HasSubstr("Extent 1 of output 'y' is not known before the run; --dim n=N tells its "
                        "largest value."));
  const std::vector<FileValue> expected = {
      {.name = "y",
       .kind = FileValue::Kind::kTensor,
       .tensor = MakeTensor<int64_t>("y", ElementType::kInt64, {2, 4}, std::vector<int64_t>(8))}};
  auto session = Open(NonZero(), lie, expected);
  ASSERT_TRUE(session.ok()) << session.status().Text();
  const auto ran = session->Run();
  ASSERT_TRUE(ran.ok()) << ran.status().Text();
  const std::vector<FileValue> outputs = session->TakeOutputs();
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_THAT(outputs[0].tensor.extents, ElementsAre(2, 3));
  EXPECT_THAT(Numbers<int64_t>(outputs[0]), ElementsAre(0, 1, 1, 1, 0, 2));
}

TEST_F(GraphSessionTest, OutputsOfKnownExtentsNeedNoValues) {
  auto session = Open(Negative(), "refuses graphs of values");
  ASSERT_TRUE(session.ok()) << session.status().Text();
  const auto ran = session->Run();
  ASSERT_TRUE(ran.ok()) << ran.status().Text();
  EXPECT_THAT(Numbers<float>(session->TakeOutputs()[0]), ElementsAre(0, -5, 0, 1, 0, -2));
}

// As skl2onnx declares some targets.
TEST_F(GraphSessionTest, ASecondInitialisationIsForValuesWhereAnOutputIsDeclaredWrongly) {
  const std::string model = MakeModel("Neg", ElementType::kFloat32, /*rows=*/5);
  auto session = Open(model, "");
  ASSERT_TRUE(session.ok()) << session.status().Text();
  const auto ran = session->Run();
  ASSERT_TRUE(ran.ok()) << ran.status().Text();
  const std::vector<FileValue> outputs = session->TakeOutputs();
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_THAT(outputs[0].tensor.extents, ElementsAre(2, 3));
  EXPECT_THAT(Numbers<float>(outputs[0]), ElementsAre(0, -5, 0, 1, 0, -2));

  const auto refused = Open(model, "refuses graphs of values");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().Text(), HasSubstr("Value 'y' is declared [5, n] but is [2, "));
}

TEST_F(GraphSessionTest, NamesOutputsThatARunKeptInPlaceOfTheModels) {
  auto session = Open(NonZero(), "tells outputs by another name");
  ASSERT_TRUE(session.ok()) << session.status().Text();
  const auto ran = session->Run();
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.status().code(), base::Code::kInternalError);
  EXPECT_THAT(ran.status().Text(), HasSubstr("kept the outputs 'another'; the model has 'y'."));
}

}  // namespace
}  // namespace onnxifi::run
