// SPDX-License-Identifier: Apache-2.0
//
// What the tests of operators on sequences do not reach: strings in sequences, and tensors that
// are borrowed.

#include "backends/core/host/sequence.h"

#include <gtest/gtest.h>

namespace onnxifi::host {
namespace {

using base::Code;
using tensor::ElementType;
using tensor::Tensor;
using tensor::Value;
using tensor::ValueRef;

ValueRef Strings(tensor::Extents extents, std::vector<std::string> texts) {
  return std::make_shared<const Value>(Tensor::FromStrings(std::move(extents), std::move(texts)));
}

TEST(HostSequence, CopiesWhatItKeepsOfBorrowedTensors) {
  std::vector<float> memory = {1, 2};
  const ValueRef borrowed = std::make_shared<const Value>(
      Tensor::Borrow(ElementType::kFloat32, {2}, reinterpret_cast<const std::byte*>(memory.data()),
                     /*owner=*/nullptr));
  const Outputs made = host::Run(program::MakeSequence(), std::vector<ValueRef>{borrowed});
  ASSERT_TRUE(made.ok());
  memory = {8, 9};
  EXPECT_EQ((*made)[0]->elements()[0]->tensor.values<float>()[1], 2);
}

TEST(HostSequence, SplitsAndJoinsStrings) {
  const ValueRef given = Strings({2, 3}, {"a", "b", "c", "d", "e", ""});
  const Outputs parts = host::Run(program::SplitTensor{.axis = 1, .removes_axis = true},
                                  std::vector<ValueRef>{given});
  ASSERT_TRUE(parts.ok());
  ASSERT_EQ((*parts)[0]->elements().size(), 3U);
  EXPECT_EQ((*parts)[0]->elements()[1]->tensor.strings(), (std::vector<std::string>{"b", "e"}));
  EXPECT_EQ((*parts)[0]->elements()[1]->tensor.extents(), (tensor::Extents{2}));
  const Outputs joined = host::Run(program::JoinElements{.axis = -1, .is_new_axis = true}, *parts);
  ASSERT_TRUE(joined.ok()) << joined.status().Text();
  EXPECT_EQ((*joined)[0]->tensor.strings(), given->tensor.strings());
}

TEST(HostSequence, NamesTheInputThatIsOfAnotherKind) {
  const Outputs counted =
      host::Run(program::CountElements(), std::vector<ValueRef>{Strings({1}, {"a"})});
  ASSERT_FALSE(counted.ok());
  EXPECT_EQ(counted.status().code(), Code::kMismatchingDatatype);
  EXPECT_EQ(counted.status().Text(),
            "Input 0 is a tensor of string of shape [1]; a sequence is required.");
}

}  // namespace
}  // namespace onnxifi::host
