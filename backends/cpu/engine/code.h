// SPDX-License-Identifier: Apache-2.0
//
// Code: some roots of a program's scalar expressions as a flat list of instructions over tile
// registers. Made once per kernel, before extents are known; a Frame (frame.h) runs it tile by
// tile.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_CODE_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_CODE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/program/expr.h"
#include "backends/cpu/engine/fused_operations.h"
#include "backends/cpu/engine/loop.h"
#include "backends/cpu/engine/row_loads.h"
#include "backends/cpu/engine/tree_walk.h"

namespace onnxifi::engine {

// Immutable. Values are numbered in the order in which they are computed. A value lives in a slot,
// which values that are not needed at the same time share; those of one lane size only.
class Code {
 public:
  enum class Kind : uint8_t {
    kUniform,  // a leaf that is one number for the whole step: constant or Dim
    kLoad,     // a view at the coordinates of the domain
    kLoadAt,   // a view at computed coordinates
    kIndex,    // a coordinate of the domain
    kLoop,     // arithmetic
    kFused,    // several loops in one, or one with a number
    kWalk,     // ways down trees
  };
  struct Instruction {
    Kind kind;
    program::ExprOp op;
    tensor::ElementType type = tensor::ElementType::kUndefined;
    tensor::ElementType from_type = tensor::ElementType::kUndefined;
    uint64_t payload = 0;     // the node's
    Loop loop = nullptr;      // kLoop
    int result = -1;          // value
    std::vector<int> inputs;  // values; kLoadAt: the coordinates; kFused: the first, and the
                              // operations' operands; kWalk: rows and entries
    // kFused: in their order. kLoop: itself, where it is one; its first input is the value.
    std::vector<FusedOperation> operations;
    // kLoop: of a select by the sign of its second input, what it does to the first.
    std::optional<FusedOp> choice;
    // kFused: of the first input, and of the result.
    FusedLanes first_lanes = FusedLanes::kFloat32;
    FusedLanes result_lanes = FusedLanes::kFloat32;
    std::optional<TreeWalk> walk;  // kWalk
    tensor::Dim dim;               // kDim
    // kLoadAt by rows: the input that is the coordinate along the row, or -1; and, as bits, those
    // that have a number per element of a row.
    int along = -1;
    uint32_t columns = 0;
  };
  struct Value {
    tensor::ElementType type;
    bool is_uniform = false;
    int slot = -1;  // -1: provided from outside
  };
  struct Slot {
    int64_t lane_bytes;
  };
  // A value that comes from outside: state, merged state, row result, provided node.
  struct Outside {
    program::ExprOp op;
    uint64_t payload;
    int value;
  };

  // Refuses nothing that CheckExpressions took. A root may be kNoExpr; its value is -1. The nodes
  // in `provided` are not computed but come from outside, as kAccumulator with their position
  // there.
  static Code Compile(const program::ExprPool& pool, std::span<const program::ExprId> roots,
                      LoopSet loops, std::span<const program::ExprId> provided = {});
  // The same, where loads at computed coordinates are by rows along the domain's axis `row_axis`;
  // what `loads` names comes from outside, in the order of loads.Provided().
  static Code CompileByRows(const program::ExprPool& pool, std::span<const program::ExprId> roots,
                            LoopSet loops, const RowLoads& loads, int row_axis);

  // The instruction where the code is nothing else, else null.
  const Instruction* OnlyInstruction() const {
    return uniform_.empty() && varying_.size() == 1 ? &varying_[0] : nullptr;
  }

  std::span<const Instruction> uniform() const { return uniform_; }  // run once
  std::span<const Instruction> varying() const { return varying_; }  // run per tile
  std::span<const Value> values() const { return values_; }
  std::span<const Slot> slots() const { return slots_; }
  std::span<const Outside> outside() const { return outside_; }
  std::span<const int> roots() const { return roots_; }  // values
  bool loads_rows() const { return loads_rows_; }
  // Nanoseconds per thousand lanes, roughly: to decide what is worth another thread.
  int64_t cost() const { return cost_; }

 private:
  void SubtractAsFloats(LoopSet loops);
  void RoundAtOnce();
  void ChooseBySign();
  void FuseOperations(LoopSet loops);
  std::vector<int> CountUses() const;  // per value
  void AssignSlots();

  std::vector<Instruction> uniform_;
  std::vector<Instruction> varying_;
  std::vector<Value> values_;
  std::vector<Slot> slots_;
  std::vector<Outside> outside_;
  std::vector<int> roots_;
  int64_t cost_ = 0;
  bool loads_rows_ = false;
};

// Whether the engine computes these expressions, given the nodes in `provided`:
// UNSUPPORTED_DATATYPE for a type that has no lanes here. Allocates no more than the walk over the
// nodes needs.
base::Status CheckExpressions(const program::ExprPool& pool, std::span<const program::ExprId> roots,
                              std::span<const program::ExprId> provided = {});

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_CODE_H_
