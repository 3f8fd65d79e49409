// SPDX-License-Identifier: Apache-2.0
//
// Counting: twins apart, everything that is neither pass nor not-supported as failed.

#include "conformance/report/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "conformance/report/html.h"
#include "conformance/report/junit.h"

namespace onnxifi::report {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

CaseResult Make(std::string name, Verdict verdict, bool is_expanded = false,
                std::string sentence = {}) {
  CaseResult result;
  result.name = std::move(name);
  result.group = "node";
  result.verdict = verdict;
  result.is_expanded = is_expanded;
  result.sentence = std::move(sentence);
  if (verdict == Verdict::kNotSupported) result.status = "UNSUPPORTED_OPERATOR";
  return result;
}

TEST(SummaryTest, CrashHangXfailXpassAndUnlistedRefusalsCountAsFailed) {
  const std::vector<CaseResult> results = {Make("a", Verdict::kPass),
                                           Make("b", Verdict::kFail),
                                           Make("c", Verdict::kCrash),
                                           Make("d", Verdict::kHang),
                                           Make("e", Verdict::kExpectedFailure),
                                           Make("f", Verdict::kUnexpectedPass),
                                           Make("g", Verdict::kUnlistedRefusal),
                                           Make("h", Verdict::kNotSupported)};
  EXPECT_EQ(CountAll(results, false).Text(), "1 passed, 6 failed, 1 not supported");
  EXPECT_THAT(MakeSummary(results, false),
              HasSubstr("\nRefusals that are not listed as unsupported: 1. "));
}

TEST(SummaryTest, TwinsHaveALineOfTheirOwnBeforeTheLast) {
  const std::vector<CaseResult> results = {Make("a", Verdict::kPass),
                                           Make("a_expanded", Verdict::kPass, true),
                                           Make("b_expanded", Verdict::kFail, true)};
  EXPECT_THAT(MakeSummary(results, false),
              EndsWith("Expanded twins: 1 passed, 1 failed, 0 not supported\n"
                       "1 passed, 0 failed, 0 not supported\n"));
}

TEST(SummaryTest, VariantsHaveLinesOfTheirOwnAndSayWhyTheyDoNotApply) {
  std::vector<CaseResult> results = {
      Make("a", Verdict::kPass), Make("a@tiled", Verdict::kPass), Make("b@tiled", Verdict::kFail),
      Make("c@tiled", Verdict::kNotApplicable, false, "No axis."), Make("a@rerun", Verdict::kPass)};
  for (size_t index = 1; index < results.size(); ++index) {
    results[index].variant = results[index].name.substr(2);
  }
  const std::string summary = MakeSummary(results, false);
  EXPECT_THAT(summary,
              EndsWith("Variant tiled: 1 passed, 1 failed, 0 not supported, 1 do not apply\n"
                       "Variant rerun: 1 passed, 0 failed, 0 not supported, 0 do not apply\n"
                       "1 passed, 0 failed, 0 not supported\n"));
  EXPECT_THAT(summary, HasSubstr("Variants that do not apply, by reason:\n     1  No axis.\n"));
  EXPECT_THAT(MakeJunit("operators", results), HasSubstr("failures=\"1\" skipped=\"1\""));
}

TEST(SummaryTest, WithoutTwinsThereIsNoSuchLine) {
  EXPECT_THAT(MakeSummary(std::vector<CaseResult>{Make("a", Verdict::kPass)}, false),
              Not(HasSubstr("twins")));
}

CaseResult MakePass(std::vector<std::string> types,
                    std::optional<std::vector<std::string>> families, bool is_expanded = false) {
  CaseResult result = Make("p", Verdict::kPass, is_expanded);
  result.element_types = std::move(types);
  result.step_families = std::move(families);
  return result;
}

TEST(SummaryTest, PassesAreCountedPerElementTypeAndStepFamily) {
  std::vector<CaseResult> results = {MakePass({"float", "bool"}, {{"Map"}}),
                                     MakePass({"float"}, {{"Map", "Contract"}}),
                                     MakePass({"string"}, {{"Map", "Host"}}),
                                     MakePass({"int64"}, std::vector<std::string>()),
                                     MakePass({"float"}, {{"Reduce"}}, /*is_expanded=*/true),
                                     Make("f", Verdict::kFail)};
  results.back().element_types = {"double"};
  results[2].operators = {"StringConcat"};
  EXPECT_THAT(MakeSummary(results, false),
              HasSubstr("\nPasses per element type: float 2, bool 1, int64 1, string 1\n"
                        "Passes per step family: Map 3, Contract 1, Host 1, none 1\n"
                        "Passes with steps on Host: 1 of 4 (25.0 %)\n"
                        "  operators of their graphs: StringConcat 1\n"));
  results.push_back(MakePass({"float"}, std::nullopt));
  EXPECT_THAT(MakeSummary(results, false), HasSubstr("  of 4 passes whose families"));
}

TEST(SummaryTest, SaysThatALibraryDoesNotTellItsFamilies) {
  const std::vector<CaseResult> results = {MakePass({"float"}, std::nullopt)};
  EXPECT_THAT(MakeSummary(results, false),
              HasSubstr("Passes per step family: the library does not tell"));
  const std::vector<CaseResult> untyped = {Make("a", Verdict::kPass)};
  EXPECT_THAT(MakeSummary(untyped, false), Not(HasSubstr("Passes per")));
}

TEST(SummaryTest, ReasonsAreCountedMostFrequentFirst) {
  const std::vector<CaseResult> results = {
      Make("a", Verdict::kNotSupported, false, "One."),
      Make("b", Verdict::kNotSupported, false, "Two."),
      Make("c", Verdict::kNotSupported, false, "Two.\nwhile importing node 'c'")};
  const std::vector<ReasonCount> reasons = CountReasons(results);
  ASSERT_EQ(reasons.size(), 2u);
  EXPECT_EQ(reasons[0].sentence, "Two.");
  EXPECT_EQ(reasons[0].count, 2);
}

TEST(SummaryTest, FailuresAreShownWithTheirSentence) {
  EXPECT_THAT(
      MakeSummary(std::vector<CaseResult>{Make("b", Verdict::kFail, false, "It is wrong.")}, false),
      HasSubstr("fail   node/b: It is wrong."));
}

TEST(JunitTest, EscapesWhatXmlReserves) {
  const std::vector<CaseResult> results = {Make("a<b", Verdict::kFail, false, "x & \"y\"\x01")};
  const std::string text = MakeJunit("s", results);
  EXPECT_THAT(text, HasSubstr("name=\"a&lt;b\""));
  EXPECT_THAT(text, HasSubstr("x &amp; &quot;y&quot; "));
  EXPECT_THAT(text, HasSubstr("failures=\"1\" skipped=\"0\""));
}

TEST(HtmlTest, HasARowPerOperatorAndReasonsOnHover) {
  CaseResult result = Make("test_conv", Verdict::kNotSupported, false, "Too <big>.");
  result.operators = {"Conv"};
  const std::string page = MakeHtml("heading", std::vector<CaseResult>{result});
  EXPECT_THAT(page, HasSubstr("<td>Conv<td"));
  EXPECT_THAT(page, HasSubstr("Too &lt;big&gt;."));
  EXPECT_THAT(page, Not(HasSubstr("http")));
}

}  // namespace
}  // namespace onnxifi::report
