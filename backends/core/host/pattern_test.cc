// SPDX-License-Identifier: Apache-2.0

#include "backends/core/host/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onnxifi::host {
namespace {

using base::Code;
using ::testing::HasSubstr;

TEST(PatternTest, MatchesTheWholeTextOnly) {
  struct Case {
    std::string pattern, text;
    bool matches;
  };
  const Case cases[] = {
      {"www.[\\w.-]+\\.[a-z]+", "www.google.com", true},
      {"www.[\\w.-]+\\.[a-z]+", "www.google.com/", false},
      {"", "", true},
      {"", "a", false},
      {"a|ab", "ab", true},
      {"a*?", "aaa", true},
      {"(a+)(b?)", "aab", true},
      {".", "\n", false},
      {"a$", "a\n", false},
      {"(?i)straße", "STRAßE", true},
      {"(?P<name>x)[^]y]", "xz", true},
      {"[]\\\\]", "]", true},
      {"x{2,3}", "xxxx", false},
      {"\\pL+", "äöΩ", true},
      {"a.c", "aäc", true},
      {"..", "ä", false},
      {"a.c", std::string("a\0c", 3), true},
      {"a+", "a\xFF", false},
      {"\\Q(?=\\E", "(?=", true},
  };
  for (const Case& one : cases) {
    const auto pattern = Pattern::Compile(one.pattern);
    ASSERT_TRUE(pattern.ok()) << pattern.status().Text();
    const auto result = pattern->MatchesWhole(one.text);
    ASSERT_TRUE(result.ok()) << result.status().Text();
    EXPECT_EQ(*result, one.matches) << one.pattern << " on '" << one.text << "'";
  }
}

TEST(PatternTest, FindsTheLongestOfTheLeftmost) {
  using Ends = std::pair<size_t, size_t>;
  constexpr Ends kNone = {99, 99};
  struct Case {
    std::string pattern, text;
    size_t start;
    Ends match;
  };
  const Case cases[] = {
      {"a|ab|abc", "xxabcd", 0, {2, 5}},
      {"a|ab|abc", "xxabcd", 3, kNone},
      {"[a-z]+", "ab cde", 2, {3, 6}},
      {"[a-z]+", "ab cde", 4, {4, 6}},
      {"\\bb", "ab b", 1, {3, 4}},  // what lies in front counts
      {"^b", "ab", 1, kNone},
      {"b$", "b b", 0, {2, 3}},
      {"x*", "ab", 0, {0, 0}},
      {"x*", "ab", 2, {2, 2}},
      {"x*", "", 0, {0, 0}},
      {"[^a]", "a\u00E4", 0, {1, 3}},
  };
  for (const Case& one : cases) {
    const auto pattern = Pattern::Compile(one.pattern);
    ASSERT_TRUE(pattern.ok()) << pattern.status().Text();
    const auto found = pattern->Find(one.text, one.start);
    ASSERT_TRUE(found.ok()) << found.status().Text();
    EXPECT_EQ(*found ? Ends((*found)->begin, (*found)->end) : kNone, one.match)
        << one.pattern << " in '" << one.text << "' from " << one.start;
  }
}

TEST(PatternTest, TakesNoTimeThatGrowsExponentially) {
  const auto pattern = Pattern::Compile("(a*)*(a|aa)+(a?){20}b");
  ASSERT_TRUE(pattern.ok()) << pattern.status().Text();
  const auto result = pattern->MatchesWhole(std::string(5000, 'a'));
  ASSERT_TRUE(result.ok()) << result.status().Text();
  EXPECT_FALSE(*result);
}

TEST(PatternTest, RefusesWhatRe2HasNot) {
  for (const char* text : {"(a)\\1", "(?=a)a", "(?<!a)b", "a++", "(?>a)", "(?R)", "(?1)", "(*FAIL)",
                           "(", "[", "\\C"}) {
    const auto pattern = Pattern::Compile(text);
    ASSERT_FALSE(pattern.ok()) << text;
    EXPECT_EQ(pattern.status().code(), Code::kInvalidModel);
    EXPECT_THAT(pattern.status().Text(), HasSubstr("Pattern '" + std::string(text) + "'"));
  }
}

}  // namespace
}  // namespace onnxifi::host
