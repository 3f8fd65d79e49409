// SPDX-License-Identifier: Apache-2.0
//
// What the table of pairs makes of results.

#include "conformance/cases/pair_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "client/onnx_file/tensor_file.h"

namespace onnxifi::cases {
namespace {

using report::CaseResult;
using report::Verdict;

CaseResult Ended(const char* name, Verdict verdict) {
  CaseResult result;
  result.name = name;
  result.verdict = verdict;
  return result;
}

int64_t CountFailures(const std::vector<CaseResult>& results) {
  return std::ranges::count_if(results, &CaseResult::has_failed);
}

TEST(PairTable, CountsPairsByWhatBecameOfTheirCases) {
  const std::vector<Pair> pairs = {{"", "Abs", 1, {"a", "b"}, ""},
                                   {"", "Abs", 6, {"c"}, ""},
                                   {"", "Upsample", 10, {}, "It is deprecated."}};
  std::vector<CaseResult> results = {Ended("a", Verdict::kNotSupported), Ended("b", Verdict::kPass),
                                     Ended("c", Verdict::kNotSupported)};
  EXPECT_EQ(CheckPairs(pairs, results),
            "3 operators of a version: 1 with a case that passes, 1 with a reason why none can "
            "exist, 1 refused\n");
  EXPECT_EQ(CountFailures(results), 0);
}

TEST(PairTable, FailsWithoutCaseAndReason) {
  std::vector<CaseResult> results;
  CheckPairs({{"ai.onnx.ml", "Scaler", 1, {}, ""}}, results);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_TRUE(results[0].has_failed());
  EXPECT_EQ(results[0].name, "ai.onnx.ml Scaler 1");
}

TEST(PairTable, FailsWithAReasonBesideACase) {
  std::vector<CaseResult> results = {Ended("a", Verdict::kPass)};
  CheckPairs({{"", "Abs", 1, {"a"}, "It cannot be."}}, results);
  EXPECT_EQ(CountFailures(results), 1);
}

TEST(PairTable, FailsWhereACaseHasNotRun) {
  std::vector<CaseResult> results = {Ended("a", Verdict::kPass)};
  CheckPairs({{"", "Abs", 1, {"a", "b"}, ""}}, results);
  EXPECT_EQ(CountFailures(results), 1);
}

TEST(PairTable, IsReadFromTheIndex) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "pair_table_index";
  std::filesystem::create_directories(folder);
  const auto write = [&](std::string_view text) {
    ASSERT_TRUE(onnx_file::WriteFile(folder / "index.json", text).ok());
  };
  write(R"({"cases": []})");
  EXPECT_FALSE(ReadPairs(folder).ok());
  write(R"({"pairs": [{"domain": "", "operator": "Abs", "version": 6, "cases": ["a"]},
                      {"domain": "d", "operator": "B", "version": 2, "reason": "No."}]})");
  const auto pairs = ReadPairs(folder);
  ASSERT_TRUE(pairs.ok()) << pairs.status().Text();
  ASSERT_EQ(pairs->size(), 2u);
  EXPECT_EQ(pairs->front().version, 6);
  EXPECT_EQ(pairs->front().cases, std::vector<std::string>{"a"});
  EXPECT_EQ(pairs->back().reason, "No.");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace onnxifi::cases
