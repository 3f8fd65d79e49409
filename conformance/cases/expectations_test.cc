// SPDX-License-Identifier: Apache-2.0
//
// Lists that say the truth change nothing but names; lists that do not fail the run.

#include "conformance/cases/expectations.h"

#include <gtest/gtest.h>

#include "conformance/onnx_file/tensor_file.h"

namespace onnxifi::cases {
namespace {

using report::CaseResult;
using report::Verdict;

CaseResult Make(std::string name, Verdict verdict) {
  CaseResult result;
  result.name = std::move(name);
  result.verdict = verdict;
  return result;
}

Expectation Expect(const std::string& pattern) {
  Expectation expectation;
  expectation.pattern = pattern;
  expectation.expression = std::regex(pattern);
  expectation.reason = "because";
  return expectation;
}

TEST(ExpectationsTest, AListedFailureIsExpected) {
  Expectations expectations;
  expectations.failing.push_back(Expect("test_a.*"));
  std::vector<CaseResult> results = {Make("test_a1", Verdict::kFail),
                                     Make("test_a2", Verdict::kCrash),
                                     Make("test_b", Verdict::kFail)};
  ApplyExpectations(expectations, /*is_partial=*/false, results);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].verdict, Verdict::kExpectedFailure);
  EXPECT_EQ(results[1].verdict, Verdict::kExpectedFailure);
  EXPECT_EQ(results[2].verdict, Verdict::kFail);
}

TEST(ExpectationsTest, APassThatIsListedOtherwiseIsStale) {
  Expectations expectations;
  expectations.failing.push_back(Expect("a"));
  expectations.unsupported.push_back(Expect("b"));
  std::vector<CaseResult> results = {Make("a", Verdict::kPass), Make("b", Verdict::kPass)};
  ApplyExpectations(expectations, /*is_partial=*/false, results);
  EXPECT_EQ(results[0].verdict, Verdict::kUnexpectedPass);
  EXPECT_EQ(results[1].verdict, Verdict::kUnexpectedPass);
}

TEST(ExpectationsTest, AnUnsupportedCaseMayBeListed) {
  Expectations expectations;
  expectations.unsupported.push_back(Expect("b"));
  std::vector<CaseResult> results = {Make("b", Verdict::kNotSupported)};
  ApplyExpectations(expectations, /*is_partial=*/false, results);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].verdict, Verdict::kNotSupported);
}

TEST(ExpectationsTest, AnEntryWithoutACaseFailsAWholeRunOnly) {
  Expectations expectations;
  expectations.unsupported.push_back(Expect("gone"));
  std::vector<CaseResult> results = {Make("a", Verdict::kPass)};
  ApplyExpectations(expectations, /*is_partial=*/true, results);
  EXPECT_EQ(results.size(), 1u);
  ApplyExpectations(expectations, /*is_partial=*/false, results);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(results[1].has_failed());
}

TEST(ExpectationsTest, PatternsMatchWholeNames) {
  Expectations expectations;
  expectations.failing.push_back(Expect("test_a"));
  std::vector<CaseResult> results = {Make("test_a", Verdict::kFail),
                                     Make("test_ab", Verdict::kFail)};
  ApplyExpectations(expectations, /*is_partial=*/false, results);
  EXPECT_EQ(results[1].verdict, Verdict::kFail);
}

TEST(ExpectationsTest, AnEntryNeedsAReasonAndAnExpression) {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / "expectations.json";
  const auto read = [&path](std::string_view content) {
    EXPECT_TRUE(onnx_file::WriteFile(path, content).ok());
    return ReadExpectations(path, "operators");
  };
  EXPECT_TRUE(read(R"({"failing": [{"suite": "operators", "case": "a", "reason": "b"}]})").ok());
  EXPECT_FALSE(read(R"({"failing": [{"suite": "operators", "case": "a"}]})").ok());
  EXPECT_FALSE(read(R"({"failing": [{"case": "a", "reason": "b"}]})").ok());
  EXPECT_FALSE(read(R"({"failing": [{"suite": "operators", "case": "(", "reason": "b"}]})").ok());
  const auto other = read(R"({"failing": [{"suite": "models", "case": "a", "reason": "b"}]})");
  ASSERT_TRUE(other.ok());
  EXPECT_TRUE(other->failing.empty());
  EXPECT_FALSE(read("[]").ok());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace onnxifi::cases
