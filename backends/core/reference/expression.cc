// SPDX-License-Identifier: Apache-2.0
//
// Expression: compilation in ascending order of node ids, which is an evaluation order, and the
// loop over instructions. A column per node and no reuse: blocks are small enough for all of them
// to stay in cache.

#include "backends/core/reference/expression.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace onnxifi::reference {
namespace {

using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;

bool IsOutside(ExprOp op) {
  return op == ExprOp::kState || op == ExprOp::kOther || op == ExprOp::kRow ||
         op == ExprOp::kAccumulator;
}

void RunCopy(const Operands& operands) {
  std::memcpy(operands.result, operands.inputs[0],
              static_cast<size_t>(operands.lanes * LaneBytes(operands.type)));
}

// Writes the value that a node's `payload` holds into every lane of a column.
void FillConstant(ElementType type, uint64_t payload, std::byte* column) {
  std::byte lane[16] = {};
  const tensor::Scalar scalar{.u = payload};
  if (type == ElementType::kComplex64) {
    const auto real = static_cast<float>(scalar.f);
    std::memcpy(lane, &real, sizeof(real));
  } else if (type == ElementType::kComplex128) {
    std::memcpy(lane, &scalar.f, sizeof(double));
  } else {
    tensor::StoreScalar(type, lane, 0, scalar);
  }
  const int64_t lane_bytes = LaneBytes(type);
  for (int64_t i = 0; i < kBlock; ++i) std::memcpy(column + i * lane_bytes, lane, lane_bytes);
}

}  // namespace

base::Result<Expression> Expression::Compile(const program::ExprPool& pool,
                                             program::ExprIds roots) {
  Expression expression;
  // The register of a node is its place among all of them.
  const std::vector<ExprId> ids = program::Reachable(pool, roots);
  auto register_of = [&ids](ExprId id) {
    return static_cast<int>(std::lower_bound(ids.begin(), ids.end(), id) - ids.begin());
  };
  std::vector<char> is_uniform;
  auto new_register = [&](ElementType type, bool uniform) {
    expression.registers_.push_back(type);
    is_uniform.push_back(uniform);
    return static_cast<int>(expression.registers_.size()) - 1;
  };
  is_uniform.reserve(ids.size() + roots.size());
  expression.registers_.reserve(ids.size() + roots.size());
  expression.operands_.reserve(2 * ids.size());
  expression.varying_.reserve(ids.size());
  for (ExprId id : ids) {
    const ExprNode& node = pool[id];
    Instruction instruction{node.op};
    instruction.payload = node.payload;
    instruction.dim = node.dim;
    instruction.first_operand = static_cast<int>(expression.operands_.size());
    instruction.operand_count = static_cast<int>(node.operands.size());
    bool uniform = node.op != ExprOp::kIndex && node.op != ExprOp::kLoad && !IsOutside(node.op);
    for (ExprId operand : node.operands) {
      expression.operands_.push_back(register_of(operand));
      uniform = uniform && is_uniform[static_cast<size_t>(expression.operands_.back())] != 0;
    }
    if (node.type == ElementType::kString || node.type == ElementType::kUndefined) {
      return base::Status(
          base::Code::kUnsupportedDatatype,
          "Elements of type " + std::string(tensor::Name(node.type)) + " cannot be computed with.");
    }
    if (!program::IsLeaf(node.op)) {
      instruction.from_type = pool[node.operands[0]].type;
      instruction.operation = FindOperation(node.op, node.type, instruction.from_type);
      if (instruction.operation == nullptr) {
        return base::Status(base::Code::kUnsupportedDatatype,
                            "The operation " + std::string(program::Name(node.op)) +
                                " is not defined on " +
                                std::string(tensor::Name(instruction.from_type)) + ".");
      }
    }
    instruction.result = new_register(node.type, uniform);
    if (IsOutside(node.op)) {
      expression.outside_.push_back({node.op, node.payload, instruction.result});
      continue;
    }
    (uniform ? expression.uniform_ : expression.varying_).push_back(instruction);
  }
  expression.roots_.reserve(roots.size());
  for (ExprId root : roots) {
    if (root == program::kNoExpr) {
      expression.roots_.push_back(-1);
      continue;
    }
    int source = register_of(root);
    if (IsOutside(pool[root].op)) {
      // The loops write a root into the column that another root may still read, so it needs one of
      // its own.
      Instruction copy{ExprOp::kSelect};
      copy.from_type = pool[root].type;
      copy.operation = RunCopy;
      copy.first_operand = static_cast<int>(expression.operands_.size());
      copy.operand_count = 1;
      expression.operands_.push_back(source);
      copy.result = new_register(pool[root].type, false);
      source = copy.result;
      expression.varying_.push_back(copy);
    }
    expression.roots_.push_back(source);
  }
  return expression;
}

std::vector<int64_t> Expression::BindDims(std::span<const int64_t> dims) const {
  std::vector<int64_t> bound;
  for (const Instruction& instruction : uniform_) {
    if (instruction.op == ExprOp::kDim) bound.push_back(tensor::ValueOf(instruction.dim, dims));
  }
  return bound;
}

bool Expression::VariesAlong(int axis, std::span<const device::BoundView> reads) const {
  for (const Outside& outside : outside_) {
    if (outside.op == ExprOp::kAccumulator) return true;
  }
  for (const Instruction& instruction : varying_) {
    if (instruction.op == ExprOp::kIndex && static_cast<int>(instruction.payload) == axis) {
      return true;
    }
    if (instruction.op != ExprOp::kLoad || instruction.operand_count != 0) continue;
    const device::BoundView& view = reads[instruction.payload];
    if (axis >= static_cast<int>(view.strides.size())) continue;
    if (view.strides[axis] != 0) return true;
    for (const device::BoundGuard& guard : view.guards) {
      if (guard.coefficients[axis] != 0) return true;
    }
  }
  return false;
}

Frame::Frame(const Expression& expression, std::span<const int64_t> bound_dims,
             std::span<const device::BoundView> reads, device::Addresses addresses)
    : expression_(expression), reads_(reads), addresses_(addresses) {
  int64_t size_bytes = 0;
  std::vector<int64_t> offsets;
  for (ElementType type : expression.registers_) {
    offsets.push_back(size_bytes);
    size_bytes += kBlock * LaneBytes(type);
  }
  memory_ = Scratch(size_bytes);
  for (int64_t offset : offsets) columns_.push_back(memory_.data() + offset);
  size_t next_dim = 0;
  for (const Expression::Instruction& instruction : expression.uniform_) {
    std::byte* column = columns_[instruction.result];
    if (instruction.op == ExprOp::kConstant) {
      FillConstant(expression.registers_[instruction.result], instruction.payload, column);
    } else if (instruction.op == ExprOp::kDim) {
      std::fill_n(reinterpret_cast<int64_t*>(column), kBlock, bound_dims[next_dim++]);
    } else {
      Execute(instruction, kBlock);
    }
  }
}

void Frame::Attach(ExprOp op, std::span<std::byte* const> columns) {
  for (const Expression::Outside& outside : expression_.outside_) {
    if (outside.op == op) columns_[outside.column] = columns[outside.payload];
  }
}

void Frame::AttachRows(std::span<const std::vector<std::byte*>> columns) {
  for (const Expression::Outside& outside : expression_.outside_) {
    if (outside.op == ExprOp::kRow) {
      columns_[outside.column] = columns[outside.payload / 256][outside.payload % 256];
    }
  }
}

void Frame::Execute(const Expression::Instruction& instruction, int64_t lanes) {
  Operands operands{columns_[instruction.result],
                    {},
                    lanes,
                    instruction.payload,
                    expression_.registers_[instruction.result],
                    instruction.from_type};
  size_t input = 0;
  for (const int operand : expression_.OperandsOf(instruction)) {
    operands.inputs[input++] = columns_[static_cast<size_t>(operand)];
  }
  instruction.operation(operands);
}

void Frame::FillIndex(int axis, const Sweep& sweep, std::byte* column) const {
  auto* indices = reinterpret_cast<int64_t*>(column);
  const int64_t step = axis == sweep.last_axis() - 1 ? 1 : 0;
  const int merged = sweep.last_axis() > sweep.first_axis() ? 1 : 0;
  ForEachRun(sweep, merged, [&](std::span<const int64_t> coordinates, int64_t lane, int64_t count) {
    for (int64_t i = 0; i < count; ++i) indices[lane + i] = coordinates[axis] + step * i;
  });
}

void Frame::Run(const Sweep& sweep) {
  for (const Expression::Instruction& instruction : expression_.varying_) {
    std::byte* column = columns_[instruction.result];
    if (instruction.operation != nullptr) {
      Execute(instruction, sweep.lanes());
    } else if (instruction.op == ExprOp::kIndex) {
      FillIndex(static_cast<int>(instruction.payload), sweep, column);
    } else {
      const device::BoundView& view = reads_[instruction.payload];
      const std::byte* base = addresses_[view.buffer];
      if (instruction.operand_count == 0) {
        LoadColumn(view, base, sweep, column);
      } else {
        std::vector<const std::byte*> coordinates;
        for (const int operand : expression_.OperandsOf(instruction)) {
          coordinates.push_back(columns_[static_cast<size_t>(operand)]);
        }
        LoadColumnAt(view, base, coordinates, sweep.lanes(), column);
      }
    }
  }
}

}  // namespace onnxifi::reference
