// SPDX-License-Identifier: Apache-2.0

#include "backends/core/plugin/answer_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace onnxifi::plugin {
namespace {

Question Ask(const std::string& model) { return Question(std::as_bytes(std::span(model))); }

std::string Model(int number) { return "model " + std::to_string(number); }

base::Status Refusal(int number) {
  return {base::Code::kUnsupportedShape, "Sentence " + std::to_string(number) + "."};
}

// Several times as many questions as are kept, so that lists are of several entries and each is
// taken out of the middle of one at some time.
TEST(AnswerCacheTest, KeepsExactlyTheNewestAnswers) {
  constexpr int kAsked = 3500;
  constexpr int kKept = static_cast<int>(AnswerCache::kMaxAnswers);
  AnswerCache answers;
  for (int number = 0; number < kAsked; ++number) {
    ASSERT_EQ(answers.Find(Ask(Model(number))), nullptr);
    answers.Add(Ask(Model(number)), Refusal(number));
    const int oldest = std::max(0, number + 1 - kKept);
    for (const int known : {oldest, (oldest + number) / 2, number}) {
      const base::Status* answer = answers.Find(Ask(Model(known)));
      ASSERT_NE(answer, nullptr) << known << " after " << number;
      ASSERT_EQ(answer->Text(), Refusal(known).Text());
    }
    if (oldest > 0) {
      ASSERT_EQ(answers.Find(Ask(Model(oldest - 1))), nullptr);
    }
  }
  for (int number = 0; number < kAsked; ++number) {
    EXPECT_EQ(answers.Find(Ask(Model(number))) != nullptr, number >= kAsked - kKept) << number;
  }
}

TEST(AnswerCacheTest, TellsModelsOfOneHashApart) {
  AnswerCache answers;
  const std::string yes = "yes";
  const std::string no = "no";
  Question first = Ask(yes);
  Question second = Ask(no);
  second.hash = first.hash;
  answers.Add(first, base::Ok());
  EXPECT_EQ(answers.Find(second), nullptr);
  answers.Add(second, Refusal(2));
  EXPECT_TRUE(answers.Find(first)->ok());
  EXPECT_EQ(answers.Find(second)->Text(), "Sentence 2.");
}

TEST(AnswerCacheTest, ComparesAllBytes) {
  AnswerCache answers;
  const std::string with_zero("a\0b", 3);
  answers.Add(Ask(with_zero), Refusal(1));
  EXPECT_EQ(answers.Find(Ask("a")), nullptr);
  EXPECT_EQ(answers.Find(Ask(std::string("a\0c", 3))), nullptr);
  EXPECT_NE(answers.Find(Ask(with_zero)), nullptr);
}

TEST(AnswerCacheTest, LeavesLargeModelsOut) {
  AnswerCache answers;
  const std::string largest(AnswerCache::kMaxModelBytes, 'm');
  const std::string larger(AnswerCache::kMaxModelBytes + 1, 'm');
  answers.Add(Ask(largest), Refusal(1));
  answers.Add(Ask(larger), Refusal(2));
  EXPECT_NE(answers.Find(Ask(largest)), nullptr);
  EXPECT_EQ(answers.Find(Ask(larger)), nullptr);
}

}  // namespace
}  // namespace onnxifi::plugin
