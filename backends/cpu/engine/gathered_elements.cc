// SPDX-License-Identifier: Apache-2.0
//
// GatheredElements: a plain loop over each row of the result, which the compiler makes vectors of,
// per target. What is found at a position outside of the axis is the fill, for which the first
// element of the axis is read.

#include "backends/cpu/engine/gathered_elements.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/gathered_elements.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "backends/cpu/engine/any_address.h"
#include "backends/cpu/engine/lane_types.h"

#ifndef ONNXIFI_ENGINE_GATHERED_ELEMENTS_ROW_
#define ONNXIFI_ENGINE_GATHERED_ELEMENTS_ROW_
namespace onnxifi::engine {

// A row of results, which lie side by side.
struct GatheredRow {
  const std::byte* source;     // what position 0 is at, for the row's first result
  const std::byte* positions;  // of the first result
  std::byte* result;
  int64_t count;
  int64_t extent;          // of the axis; at least 1
  int64_t along;           // in elements, from one position to the next
  int64_t source_step;     // from one result to the next, beside the position
  int64_t positions_step;  // likewise
  uint64_t fill;           // its bits
  bool wraps;              // negative positions count from the end
};

}  // namespace onnxifi::engine
#endif

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

template <typename T, typename Position, bool are_dense>
void GatherRow(const GatheredRow& row) {
  const auto* const source = reinterpret_cast<const AnyAddress<T>*>(row.source);
  const auto* const positions = reinterpret_cast<const AnyAddress<Position>*>(row.positions);
  auto* const result = reinterpret_cast<T*>(row.result);
  const auto fill = static_cast<T>(row.fill);
  const int64_t step = are_dense ? 1 : row.positions_step;
  const int64_t wrap = row.wraps ? row.extent : 0;
  const auto extent = static_cast<uint64_t>(row.extent);
  const int64_t along = row.along, source_step = row.source_step;
  // Results may lie where their own positions do, never where others' are.
#pragma GCC ivdep
  for (int64_t k = 0; k < row.count; ++k) {
    const auto given = static_cast<int64_t>(positions[k * step].value);
    const uint64_t position = static_cast<uint64_t>(given + (given < 0 ? wrap : 0));
    const bool is_inside = position < extent;
    const auto at = static_cast<int64_t>(is_inside ? position : 0);
    const T value = source[at * along + k * source_step].value;
    result[k] = is_inside ? value : fill;
  }
}

void GatherElementRow(const GatheredRow& row, int64_t element_bytes, bool are_wide) {
  const bool are_dense = row.positions_step == 1;
  WithLaneType(element_bytes, [&](auto element) {
    using T = decltype(element);
    if (are_wide) {
      are_dense ? GatherRow<T, int64_t, true>(row) : GatherRow<T, int64_t, false>(row);
    } else {
      are_dense ? GatherRow<T, int32_t, true>(row) : GatherRow<T, int32_t, false>(row);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <optional>
#include <string>

#include "backends/core/reference/column.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::engine {
namespace {

HWY_EXPORT(GatherElementRow);

using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using program::ExprPool;
using tensor::ElementType;

// Which read says where along which axis of which other read.
struct Pattern {
  uint64_t source = 0;
  uint64_t positions = 0;
  size_t axis = 0;
  std::optional<ExprId> wrap;  // what is added to a negative position
};

// A position as it is read, cast to int64 or not.
std::optional<uint64_t> FindPositions(const ExprPool& pool, ExprId id) {
  const ExprNode* node = &pool[id];
  if (node->op == ExprOp::kCast && node->type == ElementType::kInt64) {
    node = &pool[node->operands[0]];
  }
  const bool is_read = node->op == ExprOp::kLoad && node->operands.empty() &&
                       (node->type == ElementType::kInt32 || node->type == ElementType::kInt64);
  return is_read ? std::optional(node->payload) : std::nullopt;
}

// Select(position < 0, position + extent, position), as operators wrap positions; or the position.
bool FindCoordinate(const ExprPool& pool, ExprId id, Pattern& found) {
  const ExprNode& node = pool[id];
  ExprId position = id;
  if (node.op == ExprOp::kSelect) {
    position = node.operands[2];
    const ExprNode& is_negative = pool[node.operands[0]];
    const ExprNode& sum = pool[node.operands[1]];
    if (is_negative.op != ExprOp::kLess || is_negative.operands[0] != position ||
        sum.op != ExprOp::kAdd || sum.operands[0] != position) {
      return false;
    }
    const ExprNode& zero = pool[is_negative.operands[1]];
    const bool is_zero = (zero.op == ExprOp::kConstant && zero.payload == 0) ||
                         (zero.op == ExprOp::kDim && zero.dim == program::Dim(0));
    if (!is_zero) return false;
    found.wrap = sum.operands[1];
  }
  const std::optional<uint64_t> positions = FindPositions(pool, position);
  if (positions) found.positions = *positions;
  return positions.has_value();
}

std::optional<Pattern> FindPattern(const device::BoundStep& step) {
  const auto* map = step.step->As<program::Map>();
  if (map == nullptr || map->roots.size() != 1) return std::nullopt;
  const ExprPool& pool = step.program->exprs;
  const ExprNode& load = pool[map->roots[0]];
  if (load.op != ExprOp::kLoad || load.operands.size() != step.domain.size()) return std::nullopt;
  Pattern found;
  found.source = load.payload;
  bool has_axis = false;
  for (size_t axis = 0; axis < load.operands.size(); ++axis) {
    const ExprNode& coordinate = pool[load.operands[axis]];
    if (coordinate.op == ExprOp::kIndex && coordinate.payload == axis) continue;
    if (has_axis || !FindCoordinate(pool, load.operands[axis], found)) return std::nullopt;
    has_axis = true;
    found.axis = axis;
  }
  return has_axis ? std::optional(found) : std::nullopt;
}

// The number of what is added to negative positions; nothing where only data tell.
std::optional<int64_t> NumberOf(const device::BoundStep& step, ExprId id) {
  const ExprNode& node = step.program->exprs[id];
  if (node.op == ExprOp::kConstant) return tensor::Scalar{.u = node.payload}.i;
  if (node.op == ExprOp::kDim) return step.Number(node.dim);
  return std::nullopt;
}

class BoundGatheredElements final : public device::BoundKernel {
 public:
  BoundGatheredElements(const Pattern& pattern, int64_t extent, const device::BoundStep& step,
                        Runtime& runtime)
      : pattern_(pattern),
        extent_(extent),
        domain_(step.domain),
        source_(step.reads[pattern.source]),
        positions_(step.reads[pattern.positions]),
        result_(step.writes[0]),
        element_bytes_(reference::LaneBytes(source_.type)),
        position_bytes_(reference::LaneBytes(positions_.type)),
        rows_(tensor::ElementCount(std::span(step.domain).first(step.domain.size() - 1))),
        runtime_(runtime) {
    std::byte bytes[sizeof(fill_)] = {};
    tensor::StoreScalar(source_.type, bytes, 0, source_.fill);
    std::copy_n(bytes, sizeof(fill_), reinterpret_cast<std::byte*>(&fill_));
  }

  std::string Detail() const override {
    return "gathered elements, " + std::string(processor::VectorName());
  }

  base::Status Run(device::Addresses addresses) const override {
    constexpr int64_t kCostOfElement = 1000;  // picoseconds
    constexpr int64_t kMaxPiece = 1 << 14;    // of a row, so that a few long ones are divided, too
    const int64_t count = domain_.back();
    const int64_t piece = std::min(count, kMaxPiece);
    const int64_t pieces = (count + piece - 1) / piece;
    const auto run = [&](int64_t begin, int64_t end, std::byte* /*scratch*/) {
      for (int64_t number = begin; number < end; ++number) {
        const int64_t first = number % pieces * piece;
        RunRow(addresses, number / pieces, first, std::min(piece, count - first));
      }
    };
    return runtime_.For(rows_ * pieces, piece * kCostOfElement, run);
  }

 private:
  // The `count` results of a row from `first` on.
  void RunRow(device::Addresses addresses, int64_t number, int64_t first, int64_t count) const {
    const size_t last = domain_.size() - 1;
    const int64_t source_step = last == pattern_.axis ? 0 : source_.strides[last];
    int64_t from = source_.offset + first * source_step;
    int64_t at = positions_.offset + first * positions_.strides[last];
    int64_t to = result_.offset + first;
    for (size_t axis = last; axis-- > 0;) {
      const int64_t coordinate = number % domain_[axis];
      number /= domain_[axis];
      if (axis != pattern_.axis) from += coordinate * source_.strides[axis];
      at += coordinate * positions_.strides[axis];
      to += coordinate * result_.strides[axis];
    }
    GatheredRow row{};
    row.source = addresses[source_.buffer] + from * element_bytes_;
    row.positions = addresses[positions_.buffer] + at * position_bytes_;
    row.result = addresses[result_.buffer] + to * element_bytes_;
    row.count = count;
    row.extent = extent_;
    row.along = source_.strides[pattern_.axis];
    row.source_step = source_step;
    row.positions_step = positions_.strides[last];
    row.fill = fill_;
    row.wraps = pattern_.wrap.has_value();
    HWY_DYNAMIC_DISPATCH(GatherElementRow)
    (row, element_bytes_, positions_.type == ElementType::kInt64);
    if (tensor::IsBool(source_.type)) MakeBool(reinterpret_cast<uint8_t*>(row.result), row.count);
  }

  const Pattern pattern_;
  const int64_t extent_;
  const tensor::Extents domain_;
  const device::BoundView source_, positions_, result_;
  const int64_t element_bytes_, position_bytes_;
  const int64_t rows_;
  uint64_t fill_ = 0;
  Runtime& runtime_;
};

}  // namespace

std::unique_ptr<device::BoundKernel> BindGatheredElements(const device::BoundStep& step,
                                                          Runtime& runtime) {
  // Shorter rows are better off in tiles.
  constexpr int64_t kShortest = 8;
  const std::optional<Pattern> pattern = FindPattern(step);
  if (!pattern || step.writes.size() != 1 || step.domain.back() < kShortest) return nullptr;
  const device::BoundView& source = step.reads[pattern->source];
  const device::BoundView& positions = step.reads[pattern->positions];
  const device::BoundView& result = step.writes[0];
  if (source.type != result.type || result.strides.back() != 1 || !positions.guards.empty() ||
      tensor::IsPacked(source.type) || reference::LaneBytes(source.type) > 8) {
    return nullptr;
  }
  // Positions that are those of a whole row, or of every row, as Gather has them, are better off
  // there, too.
  if (positions.strides.back() == 0) return nullptr;
  bool differ_by_row = step.domain.size() == 1;
  for (size_t axis = 0; axis + 1 < step.domain.size(); ++axis) {
    differ_by_row = differ_by_row || (positions.strides[axis] != 0 && step.domain[axis] > 1);
  }
  if (!differ_by_row) return nullptr;
  // Guarded along the axis, and nowhere else.
  if (source.guards.size() != 1 || source.guards[0].offset != 0) return nullptr;
  for (size_t axis = 0; axis < source.strides.size(); ++axis) {
    if (source.guards[0].coefficients[axis] != (axis == pattern->axis ? 1 : 0)) return nullptr;
  }
  const int64_t extent = source.guards[0].extent;
  if (extent < 1) return nullptr;
  if (pattern->wrap && NumberOf(step, *pattern->wrap) != extent) return nullptr;
  if (tensor::ElementCount(step.domain) == 0) return nullptr;
  return std::make_unique<BoundGatheredElements>(*pattern, extent, step, runtime);
}

}  // namespace onnxifi::engine
#endif
