// SPDX-License-Identifier: Apache-2.0
//
// StoreBytes: an epilogue that quantizes its sums and dequantizes them again ends in the bytes. The
// Maps that read the result dequantize it, each for itself. A maximum is that of the bytes, where
// larger bytes are larger numbers, and is dequantized then.

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/passes.h"

namespace onnxifi::program {
namespace {

bool IsByte(ElementType type) { return type == ElementType::kInt8 || type == ElementType::kUint8; }

// Whether a view over `domain` is of one element.
bool IsNumber(const View& view, const Shape& domain) {
  if (!view.guards.empty()) return false;
  for (int axis = 0; axis < view.rank(); ++axis) {
    const bool is_still =
        view.strides[axis] == Dim(0) || domain[static_cast<size_t>(axis)] == Dim(1);
    if (!is_still) return false;
  }
  return true;
}

// The node of bytes from which alone `root` is computed, by casts, differences and products with
// numbers; kNoExpr if there is none.
ExprId FindBytes(const Program& program, const Step& step, ExprId root) {
  const ExprPool& pool = program.exprs;
  ExprId bytes = kNoExpr;
  std::vector<ExprId> pending{root};
  while (!pending.empty()) {
    const ExprId id = pending.back();
    pending.pop_back();
    const ExprNode& node = pool[id];
    switch (node.op) {
      case ExprOp::kConstant:
        continue;
      case ExprOp::kLoad:
        if (!node.operands.empty() || !IsNumber(step.reads[node.payload], step.domain)) {
          return kNoExpr;
        }
        continue;
      case ExprOp::kCast:
      case ExprOp::kSub:
      case ExprOp::kMul:
        break;
      default:
        return kNoExpr;
    }
    if (node.op == ExprOp::kCast && IsByte(node.type)) {
      if (bytes != kNoExpr && bytes != id) return kNoExpr;
      bytes = id;
      continue;
    }
    for (const ExprId operand : node.operands) pending.push_back(operand);
  }
  return bytes;
}

// Whether it is a number above 0 that is known, and finite: 0 times infinity is NaN.
bool IsPositive(const Program& program, const Step& step, ExprId id) {
  const ExprNode& node = program.exprs[id];
  const auto is_positive = [](double number) { return number > 0 && std::isfinite(number); };
  if (node.op == ExprOp::kConstant) return is_positive(std::bit_cast<double>(node.payload));
  if (node.op != ExprOp::kLoad) return false;
  const Buffer& buffer = program.buffers[step.reads[node.payload].buffer];
  if (buffer.kind != Buffer::Kind::kConstant) return false;
  const tensor::Tensor& value = program.constants[buffer.index];
  return value.element_count() == 1 && is_positive(value.AsDouble(0));
}

// Whether `id`, which is computed from `bytes` as FindBytes says, grows with them.
bool GrowsWith(const Program& program, const Step& step, ExprId id, ExprId bytes) {
  while (id != bytes) {
    const ExprNode& node = program.exprs[id];
    if (node.op == ExprOp::kMul && IsPositive(program, step, node.operands[0])) {
      id = node.operands[1];
    } else if (node.op == ExprOp::kCast || node.op == ExprOp::kSub ||
               (node.op == ExprOp::kMul && IsPositive(program, step, node.operands[1]))) {
      id = node.operands[0];
    } else {
      return false;
    }
  }
  return true;
}

// Whether the step is a maximum of float32 whose windows all have elements.
bool IsMaximum(const Step& reader, BufferId floats) {
  const Window* window = reader.As<Window>();
  if (window == nullptr || window->kind != Window::Kind::kMax || reader.writes.size() != 1 ||
      window->roots.size() != 1 || window->accumulator != ElementType::kFloat32 ||
      reader.reads[0].type != ElementType::kFloat32) {
    return false;
  }
  for (size_t read = 1; read < reader.reads.size(); ++read) {
    if (reader.reads[read].buffer == floats) return false;
  }
  for (size_t axis = 0; axis < window->kernel.size(); ++axis) {
    // Its first and its last window.
    const Dim& before = window->pads_begin[axis];
    const Dim last = (reader.domain[axis + 2] - 1) * window->strides[axis] - before;
    if (window->dilations[axis] != 1 || (window->kernel[axis] - before).LowerBound() < 1 ||
        (window->in_spatial[axis] - last).LowerBound() < 1) {
      return false;
    }
  }
  return reader.reads[0].guards.empty();
}

// Whether the step is a Map that reads each element of `floats` at most once, at its coordinates.
bool ReadsOncePerElement(const Program& program, const Step& reader, BufferId floats) {
  const Map* map = reader.As<Map>();
  if (map == nullptr) return false;
  for (const ExprId id : Reachable(program.exprs, map->roots)) {
    const ExprNode& node = program.exprs[id];
    if (node.op != ExprOp::kLoad || reader.reads[node.payload].buffer != floats) continue;
    const View& view = reader.reads[node.payload];
    if (!node.operands.empty() || !view.guards.empty() || view.type != ElementType::kFloat32) {
      return false;
    }
    for (int axis = 0; axis < view.rank(); ++axis) {
      const bool is_still = view.strides[axis] == Dim(0);
      if (is_still && !(reader.domain[static_cast<size_t>(axis)] == Dim(1))) return false;
    }
  }
  return true;
}

Step WithoutBody(const Step& step) {
  Step copy;
  copy.domain = step.domain;
  copy.reads = step.reads;
  copy.writes = step.writes;
  copy.node = step.node;
  return copy;
}

// A Map or a maximum that computes `root` of `producer`, of its node `bytes`, where it reads
// `floats`, or of the largest of a window: what it reads there is `stored` now.
Step Reading(Program& program, const Step& reader, const Step& producer, ExprId root, ExprId bytes,
             BufferId floats, BufferId stored) {
  ExprPool& pool = program.exprs;
  const ElementType type = pool[bytes].type;
  Step replaced = WithoutBody(reader);
  std::vector<bool> is_replaced;
  for (View& read : replaced.reads) {
    is_replaced.push_back(read.buffer == floats);
    if (read.buffer != floats) continue;
    read.buffer = stored;
    read.type = type;
  }
  // The producer's numbers, by its reads.
  std::unordered_map<uint64_t, uint64_t> numbers;
  const auto number = [&](uint64_t read) {
    const auto [at, is_new] = numbers.try_emplace(read, replaced.reads.size());
    if (is_new) {
      View view = producer.reads[read];
      view.strides = Dims(reader.domain.size(), Dim(0));
      replaced.reads.push_back(std::move(view));
    }
    return at->second;
  };
  const auto dequantized = [&](ExprId load) {
    std::unordered_map<ExprId, ExprId> done;
    return Rewrite(
        pool, root,
        [&](ExprId id) -> ExprId {
          if (id == bytes) return load;
          ExprNode node = pool[id];
          if (node.op != ExprOp::kLoad) return kNoExpr;
          node.payload = number(node.payload);
          return pool.Add(std::move(node));
        },
        done);
  };
  std::unordered_map<ExprId, ExprId> done;
  if (const Window* window = reader.As<Window>()) {
    Window body = *window;
    body.accumulator = type;
    const ExprId largest = dequantized(Accumulator(pool, type).id());
    const auto replace = [&](ExprId id) {
      return pool[id].op == ExprOp::kAccumulator ? largest : kNoExpr;
    };
    body.roots[0] = Rewrite(pool, body.roots[0], replace, done);
    replaced.body = std::move(body);
    return replaced;
  }
  Map body = *reader.As<Map>();
  std::function<ExprId(ExprId)> replace = [&](ExprId id) -> ExprId {
    ExprNode node = pool[id];
    if (node.op != ExprOp::kLoad || !is_replaced[node.payload]) return kNoExpr;
    for (ExprId& operand : node.operands) operand = Rewrite(pool, operand, replace, done);
    node.type = type;
    return dequantized(pool.Add(std::move(node)));
  };
  for (ExprId& mapped : body.roots) mapped = Rewrite(pool, mapped, replace, done);
  replaced.body = std::move(body);
  return replaced;
}

// What comes in the place of step `number` and of those that read its result, by their numbers.
std::optional<std::vector<std::pair<int, Step>>> Replacements(Program& program,
                                                              const BufferUses& uses, int number,
                                                              const Accepts& accepts) {
  const Step& step = program.steps[number];
  const Contract* contract = step.As<Contract>();
  if (contract == nullptr || contract->roots.size() != 1) return std::nullopt;
  const View& result = step.writes[0];
  const Buffer& buffer = program.buffers[result.buffer];
  if (result.type != ElementType::kFloat32 || buffer.type != ElementType::kFloat32 ||
      buffer.kind != Buffer::Kind::kTemporary || uses.IsOutput(result.buffer) ||
      uses.OnlyWriter(result.buffer) != number) {
    return std::nullopt;
  }
  const ExprId root = contract->roots[0];
  const ExprId bytes = FindBytes(program, step, root);
  if (bytes == kNoExpr) return std::nullopt;
  const BufferId floats = result.buffer;
  std::set<int> readers = uses.StepsWith(floats);
  readers.erase(number);
  if (readers.empty()) return std::nullopt;
  for (const int reader_number : readers) {
    const Step& reader = program.steps[reader_number];
    const bool is_of_bytes = ReadsOncePerElement(program, reader, floats) ||
                             (IsMaximum(reader, floats) && GrowsWith(program, step, root, bytes));
    if (!is_of_bytes) return std::nullopt;
  }
  const ElementType type = program.exprs[bytes].type;
  const BufferId stored =
      program.AddBuffer({Buffer::Kind::kTemporary, type, program.buffers[floats].shape});
  std::vector<std::pair<int, Step>> replacements;
  Step product = WithoutBody(step);
  product.writes[0].buffer = stored;
  product.writes[0].type = type;
  Contract body = *contract;
  body.roots = {bytes};
  product.body = std::move(body);
  if (!accepts(program, step, product)) return std::nullopt;
  for (const int reader_number : readers) {
    const Step& reader = program.steps[reader_number];
    Step replaced = Reading(program, reader, step, root, bytes, floats, stored);
    if (!accepts(program, reader, replaced)) return std::nullopt;
    replacements.emplace_back(reader_number, std::move(replaced));
  }
  replacements.emplace_back(number, std::move(product));
  return replacements;
}

}  // namespace

void StoreBytes(Program& program, const Accepts& accepts) {
  BufferUses uses(program);
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    auto replacements = Replacements(program, uses, s, accepts);
    if (!replacements) continue;
    for (auto& [number, step] : *replacements) {
      uses.Remove(number, program.steps[number]);
      program.steps[number] = std::move(step);
      uses.Add(number, program.steps[number]);
    }
  }
}

}  // namespace onnxifi::program
