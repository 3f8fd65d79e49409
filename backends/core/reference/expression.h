// SPDX-License-Identifier: Apache-2.0
//
// Expression: some roots of a program's scalar expressions compiled to a flat list of operations,
// and Frame: the columns in which one thread evaluates it, block by block. Every family's loops
// call this for what they compute per element.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_EXPRESSION_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_EXPRESSION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/core/program/expr.h"
#include "backends/core/reference/column.h"
#include "backends/core/reference/operation.h"
#include "backends/core/reference/scratch.h"

namespace onnxifi::reference {

// Immutable. Independent of extents: the numbers of its Dims come in by BindDims.
class Expression {
 public:
  // UNSUPPORTED_DATATYPE for an operation on a type that has none. A root may be kNoExpr; it has no
  // column.
  static base::Result<Expression> Compile(const program::ExprPool& pool, program::ExprIds roots);

  // The numbers that a frame needs, from those of all Dims of the program.
  std::vector<int64_t> BindDims(std::span<const int64_t> dims) const;

  // Whether the roots can differ between coordinates along `axis`, the numbers of `reads` given.
  bool VariesAlong(int axis, std::span<const device::BoundView> reads) const;

  int root_count() const { return static_cast<int>(roots_.size()); }
  tensor::ElementType root_type(int k) const { return registers_[roots_[k]]; }

 private:
  friend class Frame;
  struct Instruction {
    program::ExprOp op;
    tensor::ElementType from_type = tensor::ElementType::kUndefined;
    Operation operation = nullptr;  // null for leaves
    uint64_t payload = 0;
    int result = -1;        // register
    int first_operand = 0;  // in `operands_`
    int operand_count = 0;
    program::Dim dim;  // kDim
  };
  // A register whose column the loops provide: state, row result or accumulator.
  struct Outside {
    program::ExprOp op;
    uint64_t payload;
    int column;
  };

  std::span<const int> OperandsOf(const Instruction& instruction) const {
    return std::span(operands_).subspan(static_cast<size_t>(instruction.first_operand),
                                        static_cast<size_t>(instruction.operand_count));
  }

  std::vector<tensor::ElementType> registers_;
  std::vector<int> operands_;         // registers, of all instructions
  std::vector<Instruction> uniform_;  // the same for every lane: run once per frame
  std::vector<Instruction> varying_;
  std::vector<Outside> outside_;
  std::vector<int> roots_;  // registers; -1 for kNoExpr
};

// Columns for one expression. For one thread; `expression` and what it is given outlive it.
class Frame {
 public:
  Frame(const Expression& expression, std::span<const int64_t> bound_dims,
        std::span<const device::BoundView> reads, device::Addresses addresses);

  // Makes the leaves of kind `op` (kState, kOther, kRow, kAccumulator) read from columns[payload];
  // kRow: from columns[pass][result].
  void Attach(program::ExprOp op, std::span<std::byte* const> columns);
  void AttachRows(std::span<const std::vector<std::byte*>> columns);

  // Evaluates all roots for the lanes of `sweep`.
  void Run(const Sweep& sweep);
  const std::byte* root(int k) const { return columns_[expression_.roots_[k]]; }

 private:
  void Execute(const Expression::Instruction& instruction, int64_t lanes);
  void FillIndex(int axis, const Sweep& sweep, std::byte* column) const;

  const Expression& expression_;
  std::span<const device::BoundView> reads_;
  device::Addresses addresses_;
  Scratch memory_;
  std::vector<std::byte*> columns_;  // per register
};

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_EXPRESSION_H_
