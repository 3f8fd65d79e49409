// SPDX-License-Identifier: Apache-2.0
//
// Unique against a sorted set of the slices, with extents given and symbolic, and of strings.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using tensor::Tensor;
using ::testing::ElementsAre;
using Doubles = std::vector<double>;
using Strings = std::vector<std::string>;

struct SlicesCase {
  std::string name;
  int64_t slices, elements;
  int64_t numbers;  // that elements are drawn from
  bool is_symbolic = false;
  bool is_sorted = true;
};

class UniqueSlicesTest : public ::testing::TestWithParam<SlicesCase> {};

TEST_P(UniqueSlicesTest, EqualsASetOfThem) {
  const SlicesCase& c = GetParam();
  Doubles x;
  uint32_t state = 1;
  for (int64_t k = 0; k < c.slices * c.elements; ++k) {
    state = state * 1664525U + 1013904223U;
    x.push_back(static_cast<double>(state >> 8) * 0.5 - 1e6);
    if (c.numbers != 0) x.back() = static_cast<double>((state >> 8) % c.numbers) - 1;
  }
  struct Group {
    int64_t first, count = 0, number = 0;
  };
  std::map<Doubles, Group> groups;
  const auto slice = [&](int64_t at) {
    const auto begin = x.begin() + at * c.elements;
    return Doubles(begin, begin + c.elements);
  };
  for (int64_t at = 0; at < c.slices; ++at) {
    ++groups.try_emplace(slice(at), Group{.first = at}).first->second.count;
  }
  std::vector<std::pair<const Doubles, Group>*> order;
  for (auto& group : groups) order.push_back(&group);
  if (!c.is_sorted) {
    std::ranges::sort(order, {}, [](const auto* group) { return group->second.first; });
  }
  Doubles expected[4];
  for (auto* group : order) {
    group->second.number = static_cast<int64_t>(expected[1].size());
    expected[0].insert(expected[0].end(), group->first.begin(), group->first.end());
    expected[1].push_back(static_cast<double>(group->second.first));
    expected[3].push_back(static_cast<double>(group->second.count));
  }
  for (int64_t at = 0; at < c.slices; ++at) {
    expected[2].push_back(static_cast<double>(groups.at(slice(at)).number));
  }

  OneNode node{"Unique", 11, {{"axis", int64_t{0}}, {"sorted", int64_t{c.is_sorted ? 1 : 0}}}};
  node.inputs = {c.is_symbolic ? Symbolic({c.slices, c.elements}, x)
                               : Given({c.slices, c.elements}, x)};
  node.wanted = {true, true, true, true};
  const auto out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  for (size_t k = 0; k < 4; ++k) EXPECT_EQ(Numbers((*out)[k]), expected[k]) << "output " << k;
}

const SlicesCase kCases[] = {
    {"many", 20'000, 3, 12},
    {"all_different", 300, 2, 0},
    {"many_elements", 40, 21, 2},
    {"symbolic", 200, 5, 3, true},
    {"symbolic_unsorted", 200, 4, 3, true, false},
    {"one_element", 50, 1, 7},
    {"no_elements", 3, 0, 2},
    {"symbolic_no_elements", 3, 0, 2, true},
    {"no_slices", 0, 3, 2},
};

INSTANTIATE_TEST_SUITE_P(Cases, UniqueSlicesTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

base::Result<std::vector<Tensor>> UniqueStrings(
    tensor::Extents extents, Strings strings,
    std::map<std::string, graph::Attribute, std::less<>> attributes) {
  OneNode node{"Unique", 11, std::move(attributes)};
  node.inputs = {{Tensor::FromStrings(std::move(extents), std::move(strings))}};
  node.wanted = {true, true, true, true};
  return RunOperator(node);
}

TEST(UniqueTest, StringsAreOrderedByTheirBytes) {
  const auto out = UniqueStrings({6}, {"b", "", "Z", "b", "ba", "\xc3\xa4"}, {});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT((*out)[0].strings(), ElementsAre("", "Z", "b", "ba", "\xc3\xa4"));
  EXPECT_THAT(Numbers((*out)[1]), ElementsAre(1, 2, 0, 4, 5));
  EXPECT_THAT(Numbers((*out)[2]), ElementsAre(2, 0, 1, 2, 3, 4));
  EXPECT_THAT(Numbers((*out)[3]), ElementsAre(1, 1, 2, 1, 1));
}

TEST(UniqueTest, SlicesOfStringsKeepTheOrderInWhichTheyCome) {
  const auto out = UniqueStrings({2, 3}, {"b", "a", "b", "x", "y", "x"},
                                 {{"axis", int64_t{1}}, {"sorted", int64_t{0}}});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT((*out)[0].strings(), ElementsAre("b", "a", "x", "y"));
  EXPECT_THAT(Numbers((*out)[2]), ElementsAre(0, 1, 0));
}

}  // namespace
}  // namespace onnxifi::ops
