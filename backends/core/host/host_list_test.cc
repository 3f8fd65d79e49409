// SPDX-License-Identifier: Apache-2.0
//
// The list of host functions, each with why no device computes it. A function that joins the list
// has to join this one, and one for none of these reasons is to become steps of other families.

#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "backends/core/program/host_function.h"

namespace onnxifi::program {
namespace {

enum class Reason {
  kNonTensorValue,  // sequences, maps and optionals exist in host memory only
  kText,            // of strings, whose elements in buffers are numbers of the string table
  kImageFile,       // a library of the system decodes it
};

// No overload for a type: its function has no reason, and the test does not compile.
struct ReasonOf {
  Reason operator()(const MakeSequence&) const { return Reason::kNonTensorValue; }
  Reason operator()(const InsertElement&) const { return Reason::kNonTensorValue; }
  Reason operator()(const EraseElement&) const { return Reason::kNonTensorValue; }
  Reason operator()(const TakeElement&) const { return Reason::kNonTensorValue; }
  Reason operator()(const CountElements&) const { return Reason::kNonTensorValue; }
  Reason operator()(const SplitTensor&) const { return Reason::kNonTensorValue; }
  Reason operator()(const JoinElements&) const { return Reason::kNonTensorValue; }
  Reason operator()(const TestPresence&) const { return Reason::kNonTensorValue; }
  Reason operator()(const PassValue&) const { return Reason::kNonTensorValue; }
  Reason operator()(const MakeMaps&) const { return Reason::kNonTensorValue; }
  Reason operator()(const ListMap&) const { return Reason::kNonTensorValue; }
  Reason operator()(const ConcatStrings&) const { return Reason::kText; }
  Reason operator()(const SplitStrings&) const { return Reason::kText; }
  Reason operator()(const TokenizeStrings&) const { return Reason::kText; }
  Reason operator()(const NormalizeStrings&) const { return Reason::kText; }
  Reason operator()(const MatchStrings&) const { return Reason::kText; }
  Reason operator()(const FormatNumbers&) const { return Reason::kText; }
  Reason operator()(const ParseNumbers&) const { return Reason::kText; }
  Reason operator()(const RankStrings&) const { return Reason::kText; }
  Reason operator()(const DecodeImage&) const { return Reason::kImageFile; }
};

template <size_t... kIndices>
void CheckList(std::index_sequence<kIndices...> /*all*/) {
  std::multiset<Reason> reasons;
  std::set<std::string_view> names;
  const auto add = [&](const HostFunction& function) {
    reasons.insert(std::visit(ReasonOf(), static_cast<const HostFunction::variant&>(function)));
    names.insert(Name(function));
  };
  (add(HostFunction(std::variant_alternative_t<kIndices, HostFunction::variant>())), ...);
  EXPECT_EQ(reasons.count(Reason::kNonTensorValue), 11U);
  EXPECT_EQ(reasons.count(Reason::kText), 8U);
  EXPECT_EQ(reasons.count(Reason::kImageFile), 1U);
  EXPECT_EQ(names.size(), sizeof...(kIndices));
}

TEST(HostList, EachFunctionHasAReason) {
  CheckList(std::make_index_sequence<std::variant_size_v<HostFunction::variant>>());
}

}  // namespace
}  // namespace onnxifi::program
