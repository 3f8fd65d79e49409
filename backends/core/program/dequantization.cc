// SPDX-License-Identifier: Apache-2.0
//
// Dequantization: the forms of Maps that dequantize, as lowering leaves them.

#include "backends/core/program/dequantization.h"

#include <algorithm>

#include "backends/core/program/body_exprs.h"
#include "backends/core/tensor/convert.h"

namespace onnxifi::program {
namespace {

constexpr ElementType kReal = ElementType::kFloat32;

bool IsNarrowInteger(ElementType type) {
  return tensor::IsInteger(type) && tensor::BitWidth(type) <= 8;
}

// Whether the step is a Map of known extents that computes the same in every run.
bool IsFixedMap(const Program& program, const Step& step) {
  const Map* map = step.As<Map>();
  if (map == nullptr || step.reads.empty()) return false;
  const auto is_open = [&](ExprId id) {
    const ExprOp op = program.exprs[id].op;
    return op == ExprOp::kDim || op == ExprOp::kRandom;
  };
  return std::ranges::all_of(step.domain, [](const Dim& dim) { return dim.is_constant(); }) &&
         std::ranges::none_of(Reachable(program.exprs, map->roots), is_open);
}

}  // namespace

std::vector<bool> FindConstants(const Program& program) {
  std::vector<bool> is_constant(program.buffers.size());
  for (size_t k = 0; k < program.buffers.size(); ++k) {
    is_constant[k] = program.buffers[k].kind != Buffer::Kind::kInput &&
                     program.buffers[k].kind != Buffer::Kind::kDynamic &&
                     program.buffers[k].kind != Buffer::Kind::kDraws;
  }
  for (const Port& port : program.outputs) is_constant[port.buffer] = false;
  // In the order of the steps; a buffer may be written in parts.
  for (const Step& step : program.steps) {
    const bool is_fixed =
        IsFixedMap(program, step) && std::ranges::all_of(step.reads, [&](const View& read) {
          return read.buffer != kNoBuffer && is_constant[read.buffer];
        });
    if (is_fixed) continue;
    for (const View& write : step.writes) {
      if (write.buffer != kNoBuffer) is_constant[write.buffer] = false;
    }
  }
  return is_constant;
}

std::optional<Dequantization> FindDequantization(const Program& program, const BufferUses& uses,
                                                 const std::vector<bool>& is_constant,
                                                 BufferId buffer) {
  const int number = uses.OnlyWriter(buffer);
  if (number == BufferUses::kNoStep) return std::nullopt;
  const Step& step = program.steps[number];
  const Map* map = step.As<Map>();
  const Buffer& made = program.buffers[buffer];
  if (map == nullptr || map->roots.size() != 1 || made.type != kReal || made.shape != step.domain ||
      !IsDense({step.writes[0], step.domain}) || uses.ReadsWhatIsWrittenAfter(number, step) ||
      !std::ranges::all_of(step.reads,
                           [&](const View& read) { return is_constant[read.buffer]; })) {
    return std::nullopt;
  }
  const ExprPool& pool = program.exprs;
  const ExprNode& product = pool[map->roots[0]];
  if (product.op != ExprOp::kMul || product.type != kReal) return std::nullopt;
  // Under casts and the subtraction of a zero point; which ones is the device's to see.
  ExprId id = product.operands[0];
  while (pool[id].op == ExprOp::kCast || pool[id].op == ExprOp::kSub) id = pool[id].operands[0];
  const ExprNode& load = pool[id];
  if (load.op != ExprOp::kLoad || !load.operands.empty()) return std::nullopt;
  const auto quantized = static_cast<int>(load.payload);
  const View& view = step.reads[static_cast<size_t>(quantized)];
  if (!IsNarrowInteger(view.type) || !view.guards.empty()) return std::nullopt;
  return Dequantization{&step, quantized};
}

namespace {

// The number that a constant view has everywhere over `shape`; nothing where it varies.
std::optional<uint64_t> FindNumber(const Program& program, const View& view, const Shape& shape) {
  for (int axis = 0; axis < view.rank(); ++axis) {
    if (!(view.strides[axis] == Dim(0)) && !(shape[static_cast<size_t>(axis)] == Dim(1))) {
      return std::nullopt;
    }
  }
  const Buffer& buffer = program.buffers[view.buffer];
  if (buffer.kind != Buffer::Kind::kConstant || !view.guards.empty() ||
      !view.offset.is_constant()) {
    return std::nullopt;
  }
  return tensor::LoadScalar(view.type, program.constants[static_cast<size_t>(buffer.index)].data(),
                            view.offset.constant())
      .u;
}

// The Map that alone makes a temporary of uint8, dense, of one result; null for anything else.
const Step* FindByteMap(const Program& program, const BufferUses& uses, BufferId buffer) {
  const int number = uses.OnlyWriter(buffer);
  if (number == BufferUses::kNoStep) return nullptr;
  const Step& step = program.steps[number];
  const Map* map = step.As<Map>();
  const bool is_whole =
      map != nullptr && map->roots.size() == 1 && step.writes[0].type == ElementType::kUint8 &&
      program.buffers[buffer].type == ElementType::kUint8 && IsDense({step.writes[0], step.domain});
  return is_whole ? &step : nullptr;
}

// The read that `id` loads over the domain; -1 for anything else.
int LoadedRead(const Program& program, ExprId id) {
  const ExprNode& node = program.exprs[id];
  return node.op == ExprOp::kLoad && node.operands.empty() ? static_cast<int>(node.payload) : -1;
}

// Bytes that `step` shifts down by 0 and by 4, along a last axis of two: the read that they are. As
// BitShift is lowered: a select around a shift by an amount that another select bounds.
int FindShifted(const Program& program, const Step& step) {
  const ExprPool& pool = program.exprs;
  const ExprNode& bounded = pool[step.As<Map>()->roots[0]];
  if (bounded.op != ExprOp::kSelect || step.domain.empty() || !(step.domain.back() == Dim(2))) {
    return -1;
  }
  const ExprNode& shift = pool[bounded.operands[2]];
  if (shift.op != ExprOp::kShr || pool[shift.operands[1]].op != ExprOp::kSelect) return -1;
  const int bytes = LoadedRead(program, shift.operands[0]);
  const int amount = LoadedRead(program, pool[shift.operands[1]].operands[2]);
  if (bytes < 0 || amount < 0) return -1;
  View by = step.reads[static_cast<size_t>(amount)];
  const Dim step_by = by.strides.back();
  by.strides.back() = Dim(0);
  const std::optional<uint64_t> first = FindNumber(program, by, step.domain);
  by.offset = by.offset + step_by;
  const std::optional<uint64_t> second = FindNumber(program, by, step.domain);
  return first == 0U && second == 4U ? bytes : -1;
}

}  // namespace

std::optional<BufferId> FindHalvedBytes(const Program& program, const BufferUses& uses,
                                        BufferId buffer) {
  const Step* masked = FindByteMap(program, uses, buffer);
  if (masked == nullptr) return std::nullopt;
  const ExprNode& root = program.exprs[masked->As<Map>()->roots[0]];
  if (root.op != ExprOp::kAnd) return std::nullopt;
  for (const int side : {0, 1}) {
    const int mask = LoadedRead(program, root.operands[side]);
    const int shifted = LoadedRead(program, root.operands[1 - side]);
    if (mask < 0 || shifted < 0) continue;
    const View& numbers = masked->reads[static_cast<size_t>(shifted)];
    if (FindNumber(program, masked->reads[static_cast<size_t>(mask)], masked->domain) != 15U ||
        !IsDense({numbers, masked->domain})) {
      continue;
    }
    const Step* shift = FindByteMap(program, uses, numbers.buffer);
    const int bytes = shift == nullptr ? -1 : FindShifted(program, *shift);
    if (bytes < 0) continue;
    View packed = shift->reads[static_cast<size_t>(bytes)];
    const Buffer& constant = program.buffers[packed.buffer];
    const Shape leading(shift->domain.begin(), shift->domain.end() - 1);
    if (constant.kind != Buffer::Kind::kConstant || !(packed.strides.back() == Dim(0))) continue;
    const BufferId source = packed.buffer;
    packed.strides.pop_back();
    if (packed.guards.empty() && IsDense({packed, leading})) return source;
  }
  return std::nullopt;
}

BufferId AddHalves(Program& program, BufferId bytes) {
  const tensor::Tensor& whole =
      program.constants[static_cast<size_t>(program.buffers[bytes].index)];
  const tensor::Extents extents = {2 * whole.element_count()};
  const auto index = static_cast<int>(program.constants.size());
  program.constants.push_back(tensor::Tensor::Borrow(ElementType::kUint4, extents, whole.data(),
                                                     whole.owner(), whole.backing()));
  return program.AddBuffer(
      {Buffer::Kind::kConstant, ElementType::kUint4, {Dim(extents[0])}, index});
}

}  // namespace onnxifi::program
