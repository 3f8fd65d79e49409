// SPDX-License-Identifier: Apache-2.0
//
// AxisTables: per axis of the domain a table of element offsets, summed up for each row of the
// result. Along the row a table is one of a few kinds, which is found out when it is filled.

#include "backends/cpu/engine/axis_tables.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/reference/column.h"
#include "backends/cpu/engine/any_address.h"
#include "backends/cpu/engine/frame.h"
#include "backends/cpu/engine/gather.h"
#include "backends/cpu/engine/lane_types.h"
#include "backends/cpu/processor/processor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/axis_tables.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// to[2 k] = to[2 k + 1] = from[k] for k < count: each element is half of a wider lane.
template <typename T>
void DoubleTyped(const std::byte* source, int64_t count, std::byte* target) {
  const auto* from = reinterpret_cast<const T*>(source);
  auto* to = reinterpret_cast<T*>(target);
  int64_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) < sizeof(uint64_t)) {
    const hn::RepartitionToWide<hn::ScalableTag<T>> wide;
    const hn::Rebind<T, decltype(wide)> narrow;
    const auto lanes = static_cast<int64_t>(hn::Lanes(wide));
    if (count >= lanes) {
      // The last vector overlaps the one before.
      for (; k < count; k += lanes) {
        const int64_t at = std::min(k, count - lanes);
        const auto values = hn::PromoteTo(wide, hn::LoadU(narrow, from + at));
        const auto both = hn::Or(values, hn::ShiftLeft<8 * sizeof(T)>(values));
        hn::StoreU(both, wide, reinterpret_cast<hn::TFromD<decltype(wide)>*>(to + 2 * at));
      }
      return;
    }
  }
#endif
  for (; k < count; ++k) to[2 * k] = to[2 * k + 1] = from[k];
}

void DoubleElements(const std::byte* source, int64_t count, std::byte* target,
                    int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return DoubleTyped<uint8_t>(source, count, target);
    case 2:
      return DoubleTyped<uint16_t>(source, count, target);
    case 4:
      return DoubleTyped<uint32_t>(source, count, target);
    default:
      return DoubleTyped<uint64_t>(source, count, target);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(DoubleElements);

namespace {

using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using program::ExprPool;

constexpr int kNoAxis = -1;
constexpr int kManyAxes = -2;

// Of the coordinates, each in the order of the load's operands: the axis of the domain that it
// follows from.
std::optional<std::vector<int>> FindAxes(const ExprPool& pool, const device::BoundStep& step,
                                         std::span<const ExprId> coordinates) {
  const auto join = [](int a, int b) {
    if (a == kNoAxis || a == b) return b;
    return b == kNoAxis ? a : kManyAxes;
  };
  std::vector<std::pair<ExprId, int>> axis_of;
  const auto find = [&](ExprId id) {
    return std::ranges::find(axis_of, id, &std::pair<ExprId, int>::first)->second;
  };
  const auto along = [&](const std::vector<int64_t>& steps, int axis) {
    for (size_t k = 0; k < step.domain.size(); ++k) {
      if (steps[k] != 0 && step.domain[k] != 1) axis = join(axis, static_cast<int>(k));
    }
    return axis;
  };
  for (const ExprId id : program::Reachable(pool, coordinates)) {
    const ExprNode& node = pool[id];
    int axis = kNoAxis;
    if (node.op == ExprOp::kIndex) {
      axis = step.domain[node.payload] == 1 ? kNoAxis : static_cast<int>(node.payload);
    } else if (node.op == ExprOp::kLoad && node.operands.empty()) {
      const device::BoundView& view = step.reads[node.payload];
      axis = along({view.strides.begin(), view.strides.end()}, axis);
      for (const device::BoundGuard& guard : view.guards) {
        axis = along({guard.coefficients.begin(), guard.coefficients.end()}, axis);
      }
    }
    for (const ExprId operand : node.operands) axis = join(axis, find(operand));
    axis_of.emplace_back(id, axis);
  }
  std::vector<int> axes;
  for (const ExprId id : coordinates) axes.push_back(find(id));
  const bool has_many = std::ranges::find(axes, kManyAxes) != axes.end();
  return has_many ? std::nullopt : std::optional(axes);
}

const ExprNode* FindOnlyLoad(const ExprPool& pool, const program::Step& step) {
  const auto* map = step.As<program::Map>();
  if (map == nullptr || map->roots.size() != 1) return nullptr;
  const ExprNode& load = pool[map->roots[0]];
  return load.op == ExprOp::kLoad && !load.operands.empty() ? &load : nullptr;
}

class BoundAxisTables final : public device::BoundKernel {
 public:
  BoundAxisTables(std::shared_ptr<const Code> coordinates, std::vector<int> axes,
                  const device::BoundView& source, const device::BoundStep& step, Runtime& runtime)
      : code_(std::move(coordinates)),
        axes_(std::move(axes)),
        source_(source),
        target_(step.writes[0]),
        domain_(step.domain),
        element_bytes_(reference::LaneBytes(source.type)),
        runtime_(runtime) {
    for (size_t axis = 0; axis < domain_.size(); ++axis) {
      if (domain_[axis] != 1) order_.push_back(axis);
    }
    std::ranges::stable_sort(
        order_, [&](size_t a, size_t b) { return target_.strides[a] > target_.strides[b]; });
    for (int axis = kNoAxis; axis < static_cast<int>(domain_.size()); ++axis) {
      if (std::ranges::find(axes_, axis) == axes_.end()) continue;
      Grid grid(domain_);
      grid.Tile(0, grid.rank(), 1);
      if (axis != kNoAxis) grid.Tile(axis, axis + 1, kTableLanes);
      BoundCode& bound = tables_.emplace_back(axis, BoundCode(*code_, step)).second;
      bound.LayOut(grid, kTableLanes);
      code_bytes_ = std::max(code_bytes_, bound.scratch_bytes());
    }
    int64_t entries = 0;
    for (const int64_t extent : domain_) {
      table_begin_.push_back(entries);
      entries += extent;
    }
    FindRow(step);
    row_count_ = 1;
    for (size_t k = 0; k + row_axes_ < order_.size(); ++k) row_count_ *= domain_[order_[k]];
    table_bytes_ = entries * static_cast<int64_t>(sizeof(int64_t));
    if (is_copied_) return;
    positions_bytes_ = row_length_ * static_cast<int64_t>(sizeof(int32_t));
    // What many rows share may take longer to find.
    constexpr int64_t kMaxNear = 1 << 12;
    if (element_bytes_ == sizeof(int32_t) && row_length_ <= kMaxNear) {
      near_count_ = (row_length_ + NearGather::kMaxCount - 1) / NearGather::kMaxCount;
    }
  }

  // The last axes are one row as long as that is short, or stand in the source as in the result.
  void FindRow(const device::BoundStep& step) {
    constexpr int64_t kLongBytes = 1 << 16;  // enough rows are left for many threads
    row_axes_ = 1;
    row_length_ = domain_[order_.back()];
    is_copied_ = StepOf(step, order_.back()) == 1;
    while (row_axes_ < order_.size()) {
      const size_t axis = order_[order_.size() - 1 - row_axes_];
      const bool is_next = is_copied_ && StepOf(step, axis) == row_length_;
      const bool is_joined =
          target_.strides[axis] == row_length_ &&
          (row_length_ * element_bytes_ < kShortestRowBytes ||
           (is_next && row_length_ <= kLongBytes / element_bytes_ / domain_[axis]));
      if (!is_joined) break;
      is_copied_ = is_next;
      row_length_ *= domain_[axis];
      ++row_axes_;
    }
  }

  // In elements of the source, where an axis is itself a coordinate and part of no other.
  std::optional<int64_t> StepOf(const device::BoundStep& step, size_t axis) const {
    const ExprPool& pool = step.program->exprs;
    const auto& coordinates = FindOnlyLoad(pool, *step.step)->operands;
    std::optional<int64_t> found;
    for (size_t k = 0; k < axes_.size(); ++k) {
      if (axes_[k] != static_cast<int>(axis)) continue;
      if (found || pool[coordinates[k]].op != ExprOp::kIndex) return std::nullopt;
      found = source_.strides[k];
    }
    return found;
  }

  // Rows are long enough, enough of them to have tables for, and no longer than these may be. Short
  // rows that are only copied, and small results, are better off in tiles.
  bool IsWorthIt() const {
    constexpr int64_t kMaxRow = 1 << 20;
    constexpr int64_t kMinRows = 4;
    constexpr int64_t kMinBytes = 1 << 12;
    constexpr int64_t kShortestCopiedBytes = 256;
    const int64_t row_bytes = row_length_ * element_bytes_;
    return row_bytes >= (is_copied_ ? kShortestCopiedBytes : kShortestRowBytes) &&
           row_length_ <= kMaxRow && row_bytes >= kMinBytes / row_count_ &&
           (is_copied_ || row_count_ >= kMinRows);
  }
  void SetOtherwise(std::unique_ptr<device::BoundKernel> otherwise) {
    otherwise_ = std::move(otherwise);
  }

  std::string Detail() const override {
    return "tables of axes, " + std::string(processor::VectorName());
  }

  base::Status Run(device::Addresses addresses) const override {
    constexpr int64_t kLine = 64;
    const auto lines = [](int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; };
    ONNXIFI_ASSIGN_OR_RETURN(
        const runtime::WorkMemory::Lease lease,
        runtime_.scratch().Lend(lines(table_bytes_) + lines(positions_bytes_) +
                                lines(near_count_ * static_cast<int64_t>(sizeof(NearGather))) +
                                code_bytes_));
    Tables tables;
    std::byte* scratch = lease.data();
    const auto take = [&](int64_t bytes) { return std::exchange(scratch, scratch + lines(bytes)); };
    tables.offsets = reinterpret_cast<int64_t*>(take(table_bytes_));
    tables.positions = reinterpret_cast<int32_t*>(take(positions_bytes_));
    tables.near =
        reinterpret_cast<NearGather*>(take(near_count_ * static_cast<int64_t>(sizeof(NearGather))));
    // Constants may lie at any address.
    const bool is_fit = is_copied_ || IsAligned(addresses[source_.buffer], element_bytes_);
    if (!is_fit || !Fill(addresses, scratch, tables) || !FillRow(tables)) {
      return otherwise_->Run(addresses);
    }
    constexpr int64_t kCostOfByte = 60;  // picoseconds
    return runtime_.For(row_count_, 5000 + row_length_ * element_bytes_ * kCostOfByte,
                        [&](int64_t begin, int64_t end, std::byte* /*scratch*/) {
                          CopyRows(addresses, tables, begin, end);
                        });
  }

 private:
  static constexpr int64_t kTableLanes = 1024;
  static constexpr int64_t kMaxReach = std::numeric_limits<int32_t>::max();
  static constexpr int64_t kShortestRowBytes = 64;

  enum class Kind : uint8_t { kCopied, kDoubled, kNear, kGathered };
  struct Tables {
    int64_t* offsets = nullptr;    // by axis and coordinate, in elements
    int32_t* positions = nullptr;  // along a row, from the lowest of them
    NearGather* near = nullptr;    // by part of a row, where it is kNear
    int64_t lowest = 0;            // along a row
    Kind kind = Kind::kGathered;
  };

  // False where a place lies outside of what is read.
  bool Fill(device::Addresses addresses, std::byte* scratch, Tables& tables) const {
    std::fill_n(tables.offsets, table_bytes_ / static_cast<int64_t>(sizeof(int64_t)), int64_t{0});
    tables.lowest = source_.offset;
    for (const auto& [axis, bound] : tables_) {
      Frame frame(bound, addresses, scratch, kTableLanes);
      Box box;
      box.rank = static_cast<int>(domain_.size());
      box.extents.fill(1);
      int64_t* const table =
          axis == kNoAxis ? &tables.lowest : tables.offsets + table_begin_[At(axis)];
      const int64_t extent = axis == kNoAxis ? 1 : domain_[At(axis)];
      for (int64_t begin = 0; begin < extent; begin += kTableLanes) {
        box.lanes = std::min(kTableLanes, extent - begin);
        if (axis != kNoAxis) {
          box.begin[At(axis)] = begin;
          box.extents[At(axis)] = box.lanes;
        }
        frame.Run(box);
        for (size_t k = 0; k < axes_.size(); ++k) {
          if (axes_[k] != axis) continue;
          const auto* const numbers =
              reinterpret_cast<const int64_t*>(frame.root(static_cast<int>(k)));
          if (!AreInside(k, numbers, box.lanes)) return false;
          for (int64_t n = 0; n < box.lanes; ++n) {
            table[begin + n] = WrapMulAdd(table[begin + n], source_.strides[k], numbers[n]);
          }
        }
      }
    }
    return true;
  }

  static size_t At(int axis) { return static_cast<size_t>(axis); }

  bool AreInside(size_t k, const int64_t* numbers, int64_t count) const {
    return std::ranges::all_of(source_.guards, [&](const device::BoundGuard& guard) {
      if (guard.coefficients[k] == 0) return true;
      return std::all_of(numbers, numbers + count, [&](int64_t number) {
        const int64_t at = WrapMulAdd(guard.offset, guard.coefficients[k], number);
        return at >= 0 && at < guard.extent;
      });
    });
  }

  // Positions along a row, and what kind they are; false where they are not of 32 bits.
  bool FillRow(Tables& tables) const {
    if (is_copied_) {
      tables.kind = Kind::kCopied;
      return true;
    }
    std::array<int64_t, kMaxAxes> least{};
    int64_t reach = 0;
    for (size_t k = order_.size() - row_axes_; k < order_.size(); ++k) {
      const int64_t* const table = tables.offsets + table_begin_[order_[k]];
      const auto [low, high] = std::minmax_element(table, table + domain_[order_[k]]);
      least[k] = *low;
      tables.lowest += *low;
      if (*high - *low > kMaxReach - reach) return false;
      reach += *high - *low;
    }
    int64_t count = 1;
    tables.positions[0] = 0;
    // From the last axis on: what is there is repeated for each index of the next axis.
    for (size_t k = order_.size(); k-- > order_.size() - row_axes_;) {
      const int64_t* const table = tables.offsets + table_begin_[order_[k]];
      for (int64_t at = domain_[order_[k]]; at-- > 0;) {
        const auto further = static_cast<int32_t>(table[at] - least[k]);
        for (int64_t n = 0; n < count; ++n) {
          tables.positions[at * count + n] = tables.positions[n] + further;
        }
      }
      count *= domain_[order_[k]];
    }
    tables.kind = KindOf(tables.positions);
    if (tables.kind == Kind::kGathered && near_count_ > 0 && FindNear(tables)) {
      tables.kind = Kind::kNear;
    }
    return true;
  }

  Kind KindOf(const int32_t* positions) const {
    bool is_copied = true, is_doubled = row_length_ % 2 == 0;
    for (int64_t k = 0; k < row_length_ && (is_copied || is_doubled); ++k) {
      is_copied = is_copied && positions[k] == k;
      is_doubled = is_doubled && positions[k] == k / 2;
    }
    if (is_copied) return Kind::kCopied;
    return is_doubled ? Kind::kDoubled : Kind::kGathered;
  }

  bool FindNear(const Tables& tables) const {
    for (int64_t part = 0; part < near_count_; ++part) {
      const int64_t begin = part * NearGather::kMaxCount;
      const int64_t count = std::min(NearGather::kMaxCount, row_length_ - begin);
      NearGather* const near = new (tables.near + part) NearGather;
      if (!near->Find(tables.positions + begin, count, element_bytes_)) return false;
    }
    return true;
  }

  void CopyRows(device::Addresses addresses, const Tables& tables, int64_t begin,
                int64_t end) const {
    const std::byte* const source = addresses[source_.buffer];
    std::byte* const target = addresses[target_.buffer];
    const size_t outer = order_.size() - row_axes_;
    std::array<int64_t, kMaxAxes> at{};
    int64_t rest = begin;
    for (size_t k = outer; k-- > 0;) {
      at[k] = rest % domain_[order_[k]];
      rest /= domain_[order_[k]];
    }
    const std::byte* before = nullptr;  // where the row before came from
    const std::byte* row_before = nullptr;
    const int64_t row_bytes = row_length_ * element_bytes_;
    for (int64_t row = begin; row < end; ++row) {
      int64_t from = tables.lowest;
      int64_t to = target_.offset;
      for (size_t k = 0; k < outer; ++k) {
        from += tables.offsets[table_begin_[order_[k]] + at[k]];
        to += target_.strides[order_[k]] * at[k];
      }
      const std::byte* const first = source + from * element_bytes_;
      std::byte* const result = target + to * element_bytes_;
      if (first == before) {
        std::memcpy(result, row_before, static_cast<size_t>(row_bytes));
      } else {
        CopyRow(tables, first, result);
      }
      before = first;
      row_before = result;
      for (size_t k = outer; k-- > 0;) {
        if (++at[k] < domain_[order_[k]]) break;
        at[k] = 0;
      }
    }
  }

  void CopyRow(const Tables& tables, const std::byte* first, std::byte* result) const {
    switch (tables.kind) {
      case Kind::kCopied:
        std::memcpy(result, first, static_cast<size_t>(row_length_ * element_bytes_));
        return;
      case Kind::kDoubled:
        HWY_DYNAMIC_DISPATCH(DoubleElements)(first, row_length_ / 2, result, element_bytes_);
        return;
      case Kind::kNear:
        for (int64_t part = 0; part < near_count_; ++part) {
          tables.near[part].Run(first, result + part * NearGather::kMaxCount * element_bytes_);
        }
        return;
      case Kind::kGathered:
        Gather(first, tables.positions, row_length_, result, element_bytes_);
    }
  }

  const std::shared_ptr<const Code> code_;  // shared with the kernel
  const std::vector<int> axes_;             // by coordinate
  const device::BoundView source_, target_;
  const tensor::Extents domain_;
  const int64_t element_bytes_;
  std::vector<std::pair<int, BoundCode>> tables_;  // by axis that coordinates follow from
  std::unique_ptr<device::BoundKernel> otherwise_;
  std::vector<size_t> order_;  // axes of more than one element, as the result has them
  std::vector<int64_t> table_begin_;
  size_t row_axes_ = 0;  // the last of order_
  int64_t row_length_ = 0;
  int64_t row_count_ = 0;
  bool is_copied_ = false;  // rows stand in the source as in the result
  int64_t code_bytes_ = 0;
  int64_t near_count_ = 0;  // parts of a row; 0: its elements are never near enough
  int64_t table_bytes_ = 0;
  int64_t positions_bytes_ = 0;
  Runtime& runtime_;
};

}  // namespace

std::shared_ptr<const Code> FindTableCoordinates(const ExprPool& pool, const program::Step& step,
                                                 LoopSet loops) {
  const ExprNode* const load = FindOnlyLoad(pool, step);
  if (load == nullptr) return nullptr;
  // One that is read at computed coordinates itself has none of its own axis.
  for (const ExprId id : program::Reachable(pool, load->operands)) {
    if (pool[id].op == ExprOp::kLoad && !pool[id].operands.empty()) return nullptr;
  }
  return std::make_shared<const Code>(Code::Compile(pool, load->operands, loops));
}

std::unique_ptr<device::BoundKernel> BindAxisTables(std::shared_ptr<const Code> coordinates,
                                                    const device::BoundStep& step,
                                                    const MakeKernel& make_otherwise,
                                                    Runtime& runtime) {
  const ExprPool& pool = step.program->exprs;
  const ExprNode& load = *FindOnlyLoad(pool, *step.step);
  const device::BoundView& source = step.reads[load.payload];
  const device::BoundView& target = step.writes[0];
  const bool is_moved = step.writes.size() == 1 && source.type == target.type &&
                        !tensor::IsPacked(source.type) && !tensor::IsBool(source.type) &&
                        reference::LaneBytes(source.type) <= 8;
  if (!is_moved || tensor::ElementCount(step.domain) == 0) return nullptr;
  const bool are_plain = std::ranges::all_of(source.guards, [](const device::BoundGuard& guard) {
    return std::ranges::count_if(guard.coefficients, [](int64_t step) { return step != 0; }) == 1;
  });
  if (!are_plain) return nullptr;
  std::optional<std::vector<int>> axes = FindAxes(pool, step, load.operands);
  if (!axes) return nullptr;
  // The innermost axis of the result is a row.
  bool has_row = false;
  for (size_t axis = 0; axis < step.domain.size(); ++axis) {
    has_row = has_row || (step.domain[axis] > 1 && target.strides[axis] == 1);
  }
  if (!has_row) return nullptr;
  auto bound = std::make_unique<BoundAxisTables>(std::move(coordinates), *std::move(axes), source,
                                                 step, runtime);
  if (!bound->IsWorthIt()) return nullptr;
  bound->SetOtherwise(make_otherwise());
  return bound;
}

}  // namespace onnxifi::engine
#endif
