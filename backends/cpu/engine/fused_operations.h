// SPDX-License-Identifier: Apache-2.0
//
// Fused operations: float32 operations of which each takes the result of the one before, as one
// loop: what lies between them stays in vector registers, and while some lanes are computed others
// come from memory. Casts before, between and behind them are those of cast_chain.h.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_FUSED_OPERATIONS_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_FUSED_OPERATIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "backends/core/program/expr.h"
#include "backends/core/tensor/element_type.h"
#include "backends/cpu/engine/loop.h"

namespace onnxifi::engine {

inline constexpr int kMaxFusedOperations = 24;

enum class FusedOp : uint8_t {
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
  kPow,    // value ^ operand
  kPowOf,  // operand ^ value
  // Choices between the two by the sign of one of them, as activations make them.
  kIfNegative,          // operand < 0 ? value : operand
  kWithIfNegative,      // value < 0 ? operand : value
  kUnlessPositive,      // operand > 0 ? operand : value
  kWithUnlessPositive,  // value > 0 ? value : operand
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
  kWrapInt8,  // cast to int8 and back
  kWrapUint8,
};

constexpr bool HasOperand(FusedOp op) { return op <= FusedOp::kWithUnlessPositive; }

// The operation with operand and value exchanged; `op` has an operand.
FusedOp ExchangeOperands(FusedOp op);

// The FusedOp of an operation on float32, if it has one. The value so far is its first input or its
// second; of several inputs `value_is_first` says which. With LoopSet::kReference no approximation
// has one.
std::optional<FusedOp> FindFusedOp(program::ExprOp op, bool value_is_first, LoopSet loops);

// Operations that follow one another and are done at once where their operands allow it.
enum class FusedPattern : uint8_t {
  kNone,
  kQuantize,  // a quotient, rounded, a number added to it, and bounds: what QuantizeLinear does
  kLogistic,  // number / (number + exp(-value)), done at once where both numbers are 1
};
inline constexpr int kQuantizeLength = 5;
inline constexpr int kLogisticLength = 4;

struct FusedOperation {
  FusedOp op;
  bool is_uniform = false;  // the operand is one number, for all lanes
  FusedPattern begins = FusedPattern::kNone;
};

// Finds the patterns among operations that follow one another.
void MarkPatterns(std::span<FusedOperation> operations);

// What the lanes of a value are in memory.
enum class FusedLanes : uint8_t { kFloat32, kInt32, kUint8, kInt8 };

constexpr int64_t LaneBytesOf(FusedLanes lanes) {
  return lanes == FusedLanes::kFloat32 || lanes == FusedLanes::kInt32 ? 4 : 1;
}
struct FusedOperands {
  std::byte* result;
  const std::byte* first;  // the value to begin with
  // Per operation that has one; one lane where it is uniform.
  const std::byte* operands[kMaxFusedOperations];
  const FusedOperation* operations;
  int count;
  int64_t lanes;
  FusedLanes first_lanes = FusedLanes::kFloat32;
  FusedLanes result_lanes = FusedLanes::kFloat32;  // or bytes
};

// Where first and result are float32; casts to bytes and back are operations. Every operation
// rounds as it does alone, but for powers whose exponent is one number and logistic functions,
// which stay within the bounds of vector_math. The result may be any input, or overlap none; reads
// and writes no lane beyond them.
void RunFloatChain(const FusedOperands& fused);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_FUSED_OPERATIONS_H_
