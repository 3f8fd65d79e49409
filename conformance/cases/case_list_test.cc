// SPDX-License-Identifier: Apache-2.0
//
// index.json and case.json as the generators write them, and otherwise.

#include "conformance/cases/case_list.h"

#include <gtest/gtest.h>

#include "client/onnx_file/tensor_file.h"

namespace onnxifi::cases {
namespace {

class CaseListTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("case_list_" +
               std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const char* name, std::string_view content) {
    ASSERT_TRUE(onnx_file::WriteFile(folder_ / name, content).ok());
  }

  std::filesystem::path folder_;
};

TEST_F(CaseListTest, ReadsTheIndex) {
  Write("index.json", R"({"stamp": "1", "cases": [
      {"name": "test_a", "kind": "node", "expanded": true, "path": "node/test_a"}]})");
  const auto entries = ReadIndex(folder_);
  ASSERT_TRUE(entries.ok()) << entries.status().Text();
  ASSERT_EQ(entries->size(), 1u);
  EXPECT_EQ(entries->front().name, "test_a");
  EXPECT_EQ(entries->front().group, "node");
  EXPECT_TRUE(entries->front().is_expanded);
  EXPECT_EQ(entries->front().path, "node/test_a");
}

TEST_F(CaseListTest, ReadsTolerancesOfBothKinds) {
  Write("case.json", R"({"name": "a", "data_sets": 2, "rtol": 0.5, "atol": 0.25,
                         "input_kinds": ["tensor", "sequence"]})");
  const auto plain = ReadDescription(folder_);
  ASSERT_TRUE(plain.ok()) << plain.status().Text();
  EXPECT_EQ(plain->data_set_count, 2);
  EXPECT_EQ(plain->tolerance.relative, 0.5);
  EXPECT_EQ(plain->tolerance.absolute, 0.25);
  EXPECT_EQ(plain->tolerance.rms_factor, 0);
  EXPECT_EQ(plain->input_kinds.back(), "sequence");
  Write("case.json", R"({"name": "a", "data_sets": 50, "tolerance": "rms", "lengths": 50})");
  const auto model = ReadDescription(folder_);
  ASSERT_TRUE(model.ok()) << model.status().Text();
  EXPECT_EQ(model->tolerance.rms_factor, 1e-4);
  EXPECT_EQ(model->length_count, 50);
}

TEST_F(CaseListTest, RefusesOtherFiles) {
  EXPECT_FALSE(ReadIndex(folder_).ok());
  Write("index.json", "no json");
  EXPECT_FALSE(ReadIndex(folder_).ok());
  Write("index.json", R"({"cases": [{"kind": "node"}]})");
  EXPECT_FALSE(ReadIndex(folder_).ok());
  Write("case.json", R"({"name": "a"})");
  EXPECT_FALSE(ReadDescription(folder_).ok());
}

}  // namespace
}  // namespace onnxifi::cases
