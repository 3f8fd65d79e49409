// SPDX-License-Identifier: Apache-2.0
//
// TreeWalk: sixteen lanes go down side by side, so that the loads of each wait for none of another;
// lanes that have come to leaves, which lead to themselves, end a group of them early.

#include "backends/cpu/engine/tree_walk.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <type_traits>
#include <vector>

#include "backends/core/reference/scratch.h"
#include "backends/cpu/engine/computed_loads.h"

namespace onnxifi::engine {
namespace {

using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using program::ExprPool;
using tensor::ElementType;

bool IsLoadAt(const ExprNode& node, size_t rank) {
  return node.op == ExprOp::kLoad && node.operands.size() == rank;
}
bool IsCastTo(const ExprNode& node, ElementType type) {
  return node.op == ExprOp::kCast && node.type == type;
}

// The load of one element of a table at `entry`: its read, or -1.
int TableRead(const ExprNode& node, ElementType type, ExprId entry) {
  const bool is_it = IsLoadAt(node, 1) && node.type == type && node.operands[0] == entry;
  return is_it ? static_cast<int>(node.payload) : -1;
}

// One comparison.
std::optional<TreeWalk> FindLevel(const ExprPool& pool, ExprId id) {
  if (!IsCastTo(pool[id], ElementType::kInt64)) return std::nullopt;
  const ExprNode& child = pool[pool[id].operands[0]];
  if (!IsLoadAt(child, 2) || child.type != ElementType::kInt32) return std::nullopt;
  TreeWalk walk;
  walk.levels = 1;
  walk.children = static_cast<int>(child.payload);
  walk.entry = child.operands[0];
  const ExprNode& place = pool[child.operands[1]];
  if (!IsCastTo(place, ElementType::kInt64)) return std::nullopt;
  ExprId condition = place.operands[0];
  if (pool[condition].type != ElementType::kBool) return std::nullopt;
  ExprId missing = program::kNoExpr;
  if (pool[condition].op == ExprOp::kOr) {
    missing = pool[condition].operands[1];
    condition = pool[condition].operands[0];
  }
  const ExprNode& comparison = pool[condition];
  if (comparison.op != ExprOp::kLess && comparison.op != ExprOp::kLessEqual) return std::nullopt;
  walk.is_strict = comparison.op == ExprOp::kLess;
  const ExprNode& feature = pool[comparison.operands[0]];
  walk.type = feature.type;
  if (!IsLoadAt(feature, 2) ||
      (walk.type != ElementType::kFloat32 && walk.type != ElementType::kFloat64)) {
    return std::nullopt;
  }
  walk.rows = static_cast<int>(feature.payload);
  walk.row = feature.operands[0];
  const ExprNode& number = pool[feature.operands[1]];
  if (!IsCastTo(number, ElementType::kInt64)) return std::nullopt;
  walk.features = TableRead(pool[number.operands[0]], ElementType::kInt32, walk.entry);
  walk.splits = TableRead(pool[comparison.operands[1]], walk.type, walk.entry);
  if (walk.features < 0 || walk.splits < 0) return std::nullopt;
  if (missing == program::kNoExpr) return walk;
  const ExprNode& both = pool[missing];
  if (both.op != ExprOp::kAnd) return std::nullopt;
  const ExprNode& is_nan = pool[both.operands[0]];
  if (is_nan.op != ExprOp::kIsNan || is_nan.operands[0] != comparison.operands[0]) {
    return std::nullopt;
  }
  walk.nan_is_first = TableRead(pool[both.operands[1]], ElementType::kBool, walk.entry);
  return walk.nan_is_first < 0 ? std::nullopt : std::optional(walk);
}

bool GoesOn(const TreeWalk& last, const TreeWalk& before) {
  return before.rows == last.rows && before.features == last.features &&
         before.splits == last.splits && before.children == last.children &&
         before.nan_is_first == last.nan_is_first && before.is_strict == last.is_strict &&
         before.type == last.type && before.row == last.row;
}

// Loads as the engine does any others.
class PlainWalk final : public BoundTreeWalk {
 public:
  PlainWalk(const TreeWalk& walk, const device::BoundStep& step) : walk_(walk) {
    const auto read = [&](int number) { return step.reads[static_cast<size_t>(number)]; };
    rows_ = read(walk.rows);
    features_ = read(walk.features);
    splits_ = read(walk.splits);
    children_ = read(walk.children);
    if (walk.nan_is_first >= 0) nan_is_first_ = read(walk.nan_is_first);
  }

  void Run(device::Addresses addresses, const Lanes& lanes) const override {
    for (int64_t begin = 0; begin < lanes.count; begin += kBlock) {
      const int64_t count = std::min(kBlock, lanes.count - begin);
      const int64_t* const rows = lanes.rows + begin;
      int64_t* const result = lanes.result + begin;
      std::copy_n(lanes.entries + begin, count, result);
      for (int64_t level = 0; level < walk_.levels; ++level) {
        walk_.type == ElementType::kFloat32 ? Step<float>(addresses, rows, count, result)
                                            : Step<double>(addresses, rows, count, result);
      }
    }
  }

 private:
  static constexpr int64_t kBlock = 256;

  template <typename T>
  void Step(device::Addresses addresses, const int64_t* rows, int64_t count,
            int64_t* entries) const {
    alignas(64) int32_t narrow[kBlock];
    alignas(64) int64_t wide[kBlock];
    alignas(64) T features[kBlock];
    alignas(64) T splits[kBlock];
    alignas(64) uint8_t nan_is_first[kBlock] = {};
    const auto load = [&](const device::BoundView& view,
                          std::initializer_list<const int64_t*> coordinates, void* lanes) {
      const std::byte* at[2] = {};
      std::transform(coordinates.begin(), coordinates.end(), at, [](const int64_t* numbers) {
        return reinterpret_cast<const std::byte*>(numbers);
      });
      LoadAt(view, addresses[view.buffer], {at, coordinates.size()}, count,
             static_cast<std::byte*>(lanes));
    };
    load(features_, {entries}, narrow);
    std::copy_n(narrow, count, wide);
    load(rows_, {rows, wide}, features);
    load(splits_, {entries}, splits);
    if (walk_.nan_is_first >= 0) load(nan_is_first_, {entries}, nan_is_first);
    for (int64_t k = 0; k < count; ++k) {
      const bool is_first = walk_.is_strict ? features[k] < splits[k] : features[k] <= splits[k];
      wide[k] = is_first || (std::isnan(features[k]) && nan_is_first[k] != 0) ? 1 : 0;
    }
    load(children_, {entries, wide}, narrow);
    std::copy_n(narrow, count, entries);
  }

  const TreeWalk walk_;
  device::BoundView rows_, features_, splits_, children_, nan_is_first_;
};

template <typename T>
class NodeWalk final : public BoundTreeWalk {
 public:
  NodeWalk(const TreeWalk& walk, const device::BoundStep& step, int64_t entries)
      : walk_(walk), step_reads_(step.reads), entry_count_(entries) {
    const device::BoundView& rows = step.reads[static_cast<size_t>(walk.rows)];
    offset_ = rows.offset;
    row_stride_ = rows.strides[0];
    buffer_ = rows.buffer;
  }

  void Run(device::Addresses addresses, const Lanes& lanes) const override {
    std::call_once(is_made_, [&] { MakeNodes(addresses); });
    const T* const first = reinterpret_cast<const T*>(addresses[buffer_]) + offset_;
    if (has_nan_) {
      walk_.is_strict ? Go<true, true>(first, lanes) : Go<false, true>(first, lanes);
    } else {
      walk_.is_strict ? Go<true, false>(first, lanes) : Go<false, false>(first, lanes);
    }
  }

 private:
  // Whether NaN goes to the first child is the sign of the feature.
  static constexpr int32_t kNanIsFirst = INT32_MIN;
  struct Node {
    T split;
    int32_t feature;
    int32_t children[2];
  };

  void MakeNodes(device::Addresses addresses) const {
    const auto table = [&]<typename Element>(int read, Element) {
      const device::BoundView& view = step_reads_[static_cast<size_t>(read)];
      return reinterpret_cast<const Element*>(addresses[view.buffer]);
    };
    const int32_t* const features = table(walk_.features, int32_t{});
    const T* const splits = table(walk_.splits, T{});
    const int32_t* const children = table(walk_.children, int32_t{});
    const uint8_t* const nan_is_first =
        walk_.nan_is_first < 0 ? nullptr : table(walk_.nan_is_first, uint8_t{});
    nodes_.resize(static_cast<size_t>(entry_count_));
    for (size_t k = 0; k < nodes_.size(); ++k) {
      const bool is_first = nan_is_first != nullptr && nan_is_first[k] != 0;
      has_nan_ = has_nan_ || is_first;
      nodes_[k] = {splits[k],
                   features[k] | (is_first ? kNanIsFirst : 0),
                   {children[2 * k], children[2 * k + 1]}};
    }
  }

  template <bool is_strict, bool has_nan>
  void Go(const T* first, const Lanes& lanes) const {
    // Lanes a period apart are the same tree for other rows, and come one after the other: its
    // nodes stay in the L1 cache.
    const int64_t rows = lanes.count % lanes.period == 0 ? lanes.count / lanes.period : 1;
    const int64_t step = rows == 1 ? 1 : lanes.period;
    int64_t row = 0, lane = 0;
    const auto next = [&] {
      const int64_t now = lane;
      lane += step;
      if (++row == rows && rows > 1) {
        row = 0;
        lane = lane - rows * step + 1;
      }
      return now;
    };
    int64_t left = lanes.count;
    for (; left >= kMany; left -= kMany) GoGroup<is_strict, has_nan, kMany>(first, lanes, next);
    for (; left >= kFew; left -= kFew) GoGroup<is_strict, has_nan, kFew>(first, lanes, next);
    for (; left > 0; --left) GoGroup<is_strict, has_nan, 1>(first, lanes, next);
  }

  static constexpr int64_t kMany = 16;
  static constexpr int64_t kFew = 4;

  template <bool is_strict, bool has_nan, int64_t kLanes, typename Next>
  void GoGroup(const T* first, const Lanes& lanes, Next& next) const {
    const Node* const nodes = nodes_.data();
    const T* of_row[kLanes];
    int64_t lane[kLanes], at[kLanes];
    for (int64_t k = 0; k < kLanes; ++k) {
      lane[k] = next();
      of_row[k] = first + lanes.rows[lane[k]] * row_stride_;
      at[k] = lanes.entries[lane[k]];
    }
    for (int64_t level = 0; level < walk_.levels; ++level) {
      int64_t moved = 0;
#pragma GCC unroll 16
      for (int64_t k = 0; k < kLanes; ++k) {
        const Node& node = nodes[at[k]];
        const T feature = of_row[k][has_nan ? node.feature & ~kNanIsFirst : node.feature];
        int is_first = is_strict ? feature < node.split : feature <= node.split;
        if constexpr (has_nan) {
          is_first |= static_cast<int>(node.feature < 0) & static_cast<int>(feature != feature);
        }
        const int64_t child = node.children[is_first];
        moved |= child ^ at[k];
        at[k] = child;
      }
      if (moved == 0) break;
    }
    for (int64_t k = 0; k < kLanes; ++k) lanes.result[lane[k]] = at[k];
  }

  const TreeWalk walk_;
  const std::vector<device::BoundView> step_reads_;
  const int64_t entry_count_;
  int64_t offset_, row_stride_;
  program::BufferId buffer_;
  mutable std::once_flag is_made_;
  mutable std::vector<Node> nodes_;
  mutable bool has_nan_ = false;
};

// How many entries a table of constants has, of `size` bytes each, or -1 where it does not lie
// densely from its buffer's begin.
int64_t EntryCount(const device::BoundStep& step, int read, int64_t size) {
  const device::BoundView& view = step.reads[static_cast<size_t>(read)];
  const bool is_constant = step.program->buffers[static_cast<size_t>(view.buffer)].kind ==
                           program::Buffer::Kind::kConstant;
  const bool is_dense = view.offset == 0 && view.guards.empty() && view.strides.back() == 1 &&
                        (view.strides.size() == 1 || view.strides[0] == 2);
  return is_constant && is_dense && view.buffer_bytes >= 0 ? view.buffer_bytes / size : -1;
}

}  // namespace

std::optional<TreeWalk> FindTreeWalk(const ExprPool& pool, ExprId id) {
  std::optional<TreeWalk> walk = FindLevel(pool, id);
  if (!walk) return std::nullopt;
  for (std::optional<TreeWalk> before = FindLevel(pool, walk->entry);
       before && GoesOn(*walk, *before); before = FindLevel(pool, walk->entry)) {
    walk->entry = before->entry;
    ++walk->levels;
  }
  return walk->levels > 1 ? walk : std::nullopt;
}

std::shared_ptr<const BoundTreeWalk> BoundTreeWalk::Create(const TreeWalk& walk,
                                                           const device::BoundStep& step) {
  const bool is_narrow = walk.type == ElementType::kFloat32;
  const int64_t entries = EntryCount(step, walk.features, sizeof(int32_t));
  const device::BoundView& rows = step.reads[static_cast<size_t>(walk.rows)];
  const bool has_tables =
      entries > 0 && rows.strides[1] == 1 && rows.guards.empty() &&
      EntryCount(step, walk.splits, is_narrow ? sizeof(float) : sizeof(double)) == entries &&
      EntryCount(step, walk.children, 2 * sizeof(int32_t)) == entries &&
      (walk.nan_is_first < 0 || EntryCount(step, walk.nan_is_first, 1) == entries);
  if (!has_tables) return std::make_shared<PlainWalk>(walk, step);
  if (is_narrow) return std::make_shared<NodeWalk<float>>(walk, step, entries);
  return std::make_shared<NodeWalk<double>>(walk, step, entries);
}

}  // namespace onnxifi::engine
