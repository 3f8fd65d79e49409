// SPDX-License-Identifier: Apache-2.0
//
// Chain: float32 operations of which each takes the result of the one before, as one loop: what
// lies between them stays in vector registers, and while some lanes are computed others come from
// memory.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_CHAIN_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_CHAIN_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backends/core/program/expr.h"

namespace onnxifi::engine {

inline constexpr int kMostLinks = 6;

enum class Link : uint8_t {
  kAdd,
  kSub,
  kSubFrom,  // operand - value
  kMul,
  kDiv,
  kDivInto,  // operand / value
  kMin,
  kMinWith,  // min(operand, value): zeros of both signs tell which is first
  kMax,
  kMaxWith,
};

// The link for an operation on float32 whose first input (or second) is the value so far, if it is
// one.
std::optional<Link> FindLink(program::ExprOp op, bool value_is_first);

struct ChainOperands {
  std::byte* result;
  const std::byte* first;                 // the value to begin with
  const std::byte* operands[kMostLinks];  // one per link
  const Link* links;
  int count;
  int64_t lanes;
};

// Every link rounds as its operation alone does. The result may be any input, or overlap none;
// reads and writes no lane beyond them.
void RunChain(const ChainOperands& chain);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_CHAIN_H_
