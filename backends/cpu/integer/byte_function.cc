// SPDX-License-Identifier: Apache-2.0
//
// FindByteFunction: looks for the last bytes on the way to the result, and lets the reference
// evaluate what follows for all of them.

#include "backends/cpu/integer/byte_function.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "backends/core/reference/expression.h"
#include "backends/cpu/integer/number_epilogue.h"

namespace onnxifi::integer {
namespace {

using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;

bool IsByte(ElementType type) { return type == ElementType::kInt8 || type == ElementType::kUint8; }

// The expression `root` in `own`, with `argument` as the accumulator and constants of one element
// as numbers; kNoExpr where something else is left that differs between elements.
ExprId CopyFrom(ExprId argument, ExprId root, const device::BoundStep& step,
                device::Addresses constants, program::ExprPool& own) {
  const program::ExprPool& pool = step.program->exprs;
  std::unordered_map<ExprId, ExprId> copies;
  copies[argument] = program::Accumulator(own, pool[argument].type).id();
  const ExprId roots[] = {root};
  for (const ExprId id : program::Reachable(pool, roots)) {
    if (copies.contains(id)) continue;
    ExprNode node = pool[id];
    if (node.operands.empty() && node.op != ExprOp::kConstant) {
      // What `argument` alone is made of is not met by the root.
      if (const std::optional<program::ExprId> number = CopyNumber(node, step, constants, own)) {
        copies[id] = *number;
      }
      continue;
    }
    const bool is_known = std::all_of(node.operands.begin(), node.operands.end(),
                                      [&](ExprId operand) { return copies.contains(operand); });
    if (!is_known) continue;
    for (ExprId& operand : node.operands) operand = copies.at(operand);
    copies[id] = own.Add(std::move(node));
  }
  const auto copy = copies.find(root);
  return copy == copies.end() ? program::kNoExpr : copy->second;
}

}  // namespace

std::optional<ByteFunction> FindByteFunction(const device::BoundStep& step,
                                             device::Addresses constants) {
  const program::ExprPool& pool = step.program->exprs;
  const program::ExprIds& roots = step.step->As<program::Contract>()->roots;
  if (roots.size() != 1) return std::nullopt;
  const bool is_real = pool[roots[0]].type == ElementType::kFloat32;
  if (!is_real && !IsByte(pool[roots[0]].type)) return std::nullopt;
  std::vector<ExprId> nodes = program::Reachable(pool, roots);
  std::reverse(nodes.begin(), nodes.end());
  for (const ExprId id : nodes) {
    const bool is_quantized = id != roots[0] && IsByte(pool[id].type) &&
                              pool[id].op == ExprOp::kCast &&
                              pool[pool[id].operands[0]].type == ElementType::kFloat32;
    if (!is_quantized) continue;
    program::ExprPool own;
    const ExprId root = CopyFrom(id, roots[0], step, constants, own);
    if (root == program::kNoExpr) continue;
    auto expression = reference::Expression::Compile(own, {root});
    if (!expression.ok()) return std::nullopt;
    ByteFunction function{id, is_real};
    auto* const results = reinterpret_cast<std::byte*>(
        is_real ? static_cast<void*>(function.reals.data()) : function.bytes.data());
    const size_t result_bytes = is_real ? sizeof(float) : 1;
    std::array<uint8_t, 256> bytes;
    std::iota(bytes.begin(), bytes.end(), uint8_t{0});
    const tensor::Extents domain = {256};
    reference::Frame frame(*expression, {}, {}, {});
    reference::Sweep sweep(domain);
    for (int64_t begin = 0; begin < 256; begin += reference::kBlock) {
      std::byte* const column[] = {reinterpret_cast<std::byte*>(bytes.data() + begin)};
      frame.Attach(ExprOp::kAccumulator, column);
      sweep.Move(begin, std::min<int64_t>(reference::kBlock, 256 - begin));
      frame.Run(sweep);
      std::memcpy(results + static_cast<size_t>(begin) * result_bytes, frame.root(0),
                  static_cast<size_t>(sweep.lanes()) * result_bytes);
    }
    return function;
  }
  return std::nullopt;
}

}  // namespace onnxifi::integer
