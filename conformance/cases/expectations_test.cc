// SPDX-License-Identifier: Apache-2.0
//
// Lists that say the truth change nothing but names; lists that do not, or that leave a refusal
// out, fail the run.

#include "conformance/cases/expectations.h"

#include <gtest/gtest.h>

#include "client/onnx_file/tensor_file.h"

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

TEST(ExpectationsTest, AnEntryIsForAVariantOrForCasesAsTheyAre) {
  Expectations expectations;
  expectations.unsupported.push_back(Expect("test_a.*"));
  expectations.unsupported.push_back(Expect("test_b@symbols"));
  expectations.unsupported.push_back(Expect("test_b@tiled"));
  std::vector<CaseResult> results = {
      Make("test_a", Verdict::kNotSupported), Make("test_a@symbols", Verdict::kPass),
      Make("test_b", Verdict::kPass), Make("test_b@symbols", Verdict::kNotSupported)};
  ApplyExpectations(expectations, /*is_partial=*/false, results);
  // The entry for a variant that no case was replayed in says nothing of this run.
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].verdict, Verdict::kNotSupported);
  EXPECT_EQ(results[1].verdict, Verdict::kPass);
  EXPECT_EQ(results[2].verdict, Verdict::kPass);
  EXPECT_EQ(results[3].verdict, Verdict::kNotSupported);
}

TEST(ExpectationsTest, AVariantThatDoesNotApplyIsNeitherPassNorRefusal) {
  std::vector<CaseResult> results = {Make("test_a@tiled", Verdict::kNotApplicable)};
  ApplyExpectations(Expectations(), /*is_partial=*/false, results);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].verdict, Verdict::kNotApplicable);
  EXPECT_FALSE(results[0].has_failed());
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

TEST(ExpectationsTest, ARefusalThatIsNotListedFails) {
  std::vector<CaseResult> results = {Make("a", Verdict::kNotSupported), Make("b", Verdict::kPass)};
  results[0].status = "UNSUPPORTED_OPERATOR";
  results[0].sentence = "Operator Foo is not supported.";
  ApplyExpectations(Expectations(), /*is_partial=*/true, results);
  EXPECT_TRUE(results[0].has_failed());
  EXPECT_EQ(results[0].sentence,
            "The refusal UNSUPPORTED_OPERATOR is not listed as unsupported: Operator Foo is not "
            "supported.");
  EXPECT_EQ(results[1].verdict, Verdict::kPass);
}

TEST(ExpectationsTest, ARefusalThatIsListedAsFailingIsStale) {
  Expectations expectations;
  expectations.failing.push_back(Expect("a"));
  std::vector<CaseResult> results = {Make("a", Verdict::kNotSupported)};
  ApplyExpectations(expectations, /*is_partial=*/false, results);
  EXPECT_EQ(results[0].verdict, Verdict::kUnexpectedPass);
}

TEST(ExpectationsTest, AFailureOfAnUnsupportedCaseFails) {
  Expectations expectations;
  expectations.unsupported.push_back(Expect("a"));
  std::vector<CaseResult> results = {Make("a", Verdict::kCrash)};
  ApplyExpectations(expectations, /*is_partial=*/false, results);
  EXPECT_EQ(results[0].verdict, Verdict::kCrash);
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
  const auto two =
      read(R"({"failing": [{"suite": "operators", "reason": "b", "cases": ["a", "c"]}]})");
  ASSERT_TRUE(two.ok());
  ASSERT_EQ(two->failing.size(), 2u);
  EXPECT_EQ(two->failing[1].pattern, "c");
  EXPECT_EQ(two->failing[1].reason, "b");
  EXPECT_FALSE(read(R"({"failing": [{"suite": "operators", "cases": ["a"]}]})").ok());
  EXPECT_FALSE(read(R"({"failing": [{"reason": "b", "cases": ["a"]}]})").ok());
  EXPECT_FALSE(read(R"({"failing": [{"suite": "operators", "reason": "b"}]})").ok());
  EXPECT_FALSE(read(R"({"failing": [{"suite": "operators", "reason": "b", "cases": "a"}]})").ok());
  EXPECT_FALSE(
      read(R"({"failing": [{"suite": "operators", "reason": "b", "cases": ["("]}]})").ok());
  EXPECT_FALSE(read(R"({"failing": {}})").ok());
  const auto other = read(R"({"failing": [{"suite": "models", "reason": "b", "cases": ["a"]}]})");
  ASSERT_TRUE(other.ok());
  EXPECT_TRUE(other->failing.empty());
  EXPECT_FALSE(read("[]").ok());
  std::filesystem::remove(path);
}

TEST(ExpectationsTest, AWrittenFileAgreesWithItsResults) {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / "first_expectations.json";
  std::filesystem::remove(path);
  const std::vector<CaseResult> ran = {
      Make("test_a", Verdict::kPass), Make("test_b (1.0)", Verdict::kNotSupported),
      Make("test_c", Verdict::kCrash), Make("test_d", Verdict::kNotSupported)};
  ASSERT_TRUE(WriteExpectations(path, "operators", ran).ok());
  const auto expectations = ReadExpectations(path, "operators");
  ASSERT_TRUE(expectations.ok()) << expectations.status().Text();
  std::vector<CaseResult> results = ran;
  ApplyExpectations(*expectations, /*is_partial=*/false, results);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].verdict, Verdict::kPass);
  EXPECT_EQ(results[1].verdict, Verdict::kNotSupported);
  EXPECT_EQ(results[2].verdict, Verdict::kExpectedFailure);
  EXPECT_EQ(results[3].verdict, Verdict::kNotSupported);
  EXPECT_TRUE(ReadExpectations(path, "models")->unsupported.empty());
  std::filesystem::remove(path);
}

TEST(ExpectationsTest, AFileThatIsWrittenAgainKeepsReasonsAndOtherSuites) {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / "second_expectations.json";
  ASSERT_TRUE(onnx_file::WriteFile(path, R"({"unsupported": [
      {"suite": "models", "reason": "too large", "cases": ["vgg"]},
      {"suite": "operators", "reason": "by hand", "cases": ["test_a.*", "test_gone"]}]})")
                  .ok());
  std::vector<CaseResult> results = {Make("test_a1", Verdict::kNotSupported),
                                     Make("test_b", Verdict::kNotSupported)};
  results[1].status = "UNSUPPORTED_OPERATOR";
  results[1].sentence = "No.\n  at node 0";
  ASSERT_TRUE(WriteExpectations(path, "operators", results).ok());
  const auto operators = ReadExpectations(path, "operators");
  ASSERT_TRUE(operators.ok());
  ASSERT_EQ(operators->unsupported.size(), 2u);
  EXPECT_EQ(operators->unsupported[0].pattern, "test_a1");
  EXPECT_EQ(operators->unsupported[0].reason, "by hand");
  EXPECT_EQ(operators->unsupported[1].reason, "UNSUPPORTED_OPERATOR: No.");
  ASSERT_EQ(ReadExpectations(path, "models")->unsupported.size(), 1u);
  // What is no list of expectations is not written over.
  ASSERT_TRUE(onnx_file::WriteFile(path, "[]").ok());
  EXPECT_FALSE(WriteExpectations(path, "operators", results).ok());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace onnxifi::cases
