// SPDX-License-Identifier: Apache-2.0

#include "backends/core/tensor/string_table.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace onnxifi::tensor {
namespace {

TEST(StringTable, GivesTheEmptyStringNumberZero) {
  StringTable table;
  EXPECT_EQ(table.NumberOf(""), 0U);
  StringTable over(&table);
  EXPECT_EQ(over.NumberOf(""), 0U);
}

TEST(StringTable, GivesEqualStringsEqualNumbersAcrossItsBase) {
  StringTable base;
  std::mt19937 random(11);
  std::unordered_map<std::string, uint64_t> numbers;
  const auto draw = [&] {
    std::string text;
    for (unsigned length = random() % 4; length > 0; --length) {
      text += static_cast<char>(random() % 3);  // NUL is a character like others
    }
    return text;
  };
  for (int k = 0; k < 40; ++k) {
    const std::string text = draw();
    const auto [known, is_new] = numbers.emplace(text, base.NumberOf(text));
    EXPECT_EQ(base.NumberOf(text), known->second);
  }
  StringTable over(&base);
  for (int k = 0; k < 400; ++k) {
    const std::string text = draw() + draw();
    const auto [known, is_new] = numbers.emplace(text, over.NumberOf(text));
    EXPECT_EQ(over.NumberOf(text), known->second);
  }
  std::unordered_map<uint64_t, std::string> texts;
  for (const auto& [text, number] : numbers) {
    EXPECT_TRUE(texts.emplace(number, text).second) << "two strings have number " << number;
    EXPECT_EQ(over.Text(number), text);
  }
}

TEST(StringTable, ReadsAsEmptyWhatWasNeverNumbered) {
  const StringTable table;
  EXPECT_EQ(table.Text(7), "");
}

TEST(StringTable, TurnsTensorsIntoNumbersAndBack) {
  StringTable table;
  const Tensor strings = Tensor::FromStrings({2, 2}, {"a", "", "b", "a"});
  const Tensor numbers = *table.NumbersOf(strings);
  EXPECT_EQ(numbers.extents(), strings.extents());
  EXPECT_EQ(numbers.values<uint64_t>()[0], numbers.values<uint64_t>()[3]);
  const Tensor back = table.StringsOf(numbers.values<uint64_t>().data(), {2, 2});
  EXPECT_EQ(back.strings(), strings.strings());
  EXPECT_EQ(table.NumbersOf(Tensor::FromStrings({0, 3}, {}))->element_count(), 0);
}

}  // namespace
}  // namespace onnxifi::tensor
