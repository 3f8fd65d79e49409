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
#include "backends/cpu/engine/loop.h"

namespace onnxifi::engine {

inline constexpr int kMostLinks = 12;

enum class Link : uint8_t {
  // With an operand.
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
  // Of the value alone.
  kNeg,
  kAbs,
  kFloor,
  kCeil,
  kRoundEven,
  kTrunc,
  kSqrt,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kTanh,
  kErf,
};

constexpr bool HasOperand(Link link) { return link <= Link::kMaxWith; }

// The link for an operation on float32 whose first input (or second) is the value so far, if it is
// one; of several inputs `value_is_first` says which. With LoopSet::kReference no approximation is.
std::optional<Link> FindLink(program::ExprOp op, bool value_is_first, LoopSet loops);

struct ChainLink {
  Link link;
  bool is_uniform = false;  // the operand is one number, for all lanes
};

struct ChainOperands {
  std::byte* result;
  const std::byte* first;                 // the value to begin with
  const std::byte* operands[kMostLinks];  // per link that has one; one lane where it is uniform
  const ChainLink* links;
  int count;
  int64_t lanes;
};

// Every link rounds as its operation alone does. The result may be any input, or overlap none;
// reads and writes no lane beyond them.
void RunChain(const ChainOperands& chain);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_CHAIN_H_
