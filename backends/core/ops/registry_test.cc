// SPDX-License-Identifier: Apache-2.0
//
// Registry: where its functions lie in memory.

#include "backends/core/ops/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace onnxifi::ops {
namespace {

#ifdef __ELF__
// They are called one after the other when a library is used first: one page of its file, or two.
TEST(RegistryTest, TablesLieSideBySide) {
  constexpr std::span<const Operator> (*kTables[])() = {
      ActivationOperators, ConcatOperators,    ConvOperators,         GatherOperators,
      LoopOperators,       MatMulOperators,    RecurrentOperators,    ResizeOperators,
      SoftmaxOperators,    TokenizerOperators, TreeEnsembleOperators, WindowFunctionOperators};
  const auto [first, last] =
      std::ranges::minmax(kTables, {}, [](auto* table) { return std::bit_cast<uintptr_t>(table); });
  constexpr uintptr_t kTwoPages = 8192;
  EXPECT_LT(std::bit_cast<uintptr_t>(last) - std::bit_cast<uintptr_t>(first), kTwoPages);
}
#endif

}  // namespace
}  // namespace onnxifi::ops
