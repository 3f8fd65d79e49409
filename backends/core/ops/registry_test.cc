// SPDX-License-Identifier: Apache-2.0
//
// Registry: where its functions lie in memory.

#include "backends/core/ops/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || \
    __has_feature(thread_sanitizer)
#define ONNXIFI_HAS_SANITIZER
#endif
#endif

namespace onnxifi::ops {
namespace {

#ifdef __ELF__
// They are called one after the other when a library is used first: one page of its file, or two.
TEST(RegistryTest, TablesLieSideBySide) {
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    defined(ONNXIFI_HAS_SANITIZER)
  GTEST_SKIP()
      << "functions are larger, or lie elsewhere, without optimization or with a sanitizer";
#endif
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
