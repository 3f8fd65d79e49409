// SPDX-License-Identifier: Apache-2.0
//
// TopK: a row at a time, its keys and entries in working memory; very few elements of rows that lie
// side by side, a vector of rows at a time.

#include "backends/cpu/ranking/top_k.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/engine/any_address.h"
#include "backends/cpu/engine/lane_types.h"
#include "backends/cpu/ranking/column_ranking.h"
#include "backends/cpu/ranking/first_entries.h"
#include "backends/cpu/ranking/row.h"

namespace onnxifi::ranking {
namespace {

using engine::Access;
using engine::Box;

// How many rows are loaded together: where elements lie further apart than rows, as many as share
// the lines of a cache, and no more than it holds.
int64_t CountRowsOfBox(const Access& source, std::span<const int64_t> domain) {
  constexpr int64_t kLine = 64;
  constexpr int64_t kMaxBytes = int64_t{1} << 19;
  const int last = static_cast<int>(domain.size()) - 1;
  const int64_t element_step = std::abs(source.form.steps[last]);
  for (int axis = last; axis-- > 0;) {
    if (domain[axis] == 1) continue;
    const int64_t row_step = std::abs(source.form.steps[axis]);
    if (row_step == 0 || row_step >= element_step) return 1;
    const int64_t row_bytes = domain[last] * source.lane_bytes;
    return std::clamp<int64_t>(kMaxBytes / row_bytes, 1, kLine / source.lane_bytes);
  }
  return 1;
}

class BoundTopK final : public device::BoundKernel {
 public:
  BoundTopK(const device::BoundStep& step, engine::Runtime& runtime)
      : index_(*step.step->As<program::Index>()),
        source_(engine::MakeAccess(step.reads[0], static_cast<int>(step.domain.size()))),
        runtime_(runtime) {
    const int rank = static_cast<int>(step.domain.size());
    found_ = std::clamp<int64_t>(step.Number(index_.k), 0, step.domain.back());
    if (tensor::ElementCount(step.domain) == 0 || found_ == 0) return;
    rows_.emplace(step.domain, CountRowsOfBox(source_, step.domain));
    for (size_t k = 0; k < 2; ++k) {
      const bool is_written = k < step.writes.size() && step.writes[k].buffer != program::kNoBuffer;
      targets_[k] = is_written ? engine::MakeAccess(step.writes[k], rank) : Access();
    }
    // A bool in memory may be any byte.
    is_contiguous_ = rows_->rows_of_box() == 1 && source_.form.steps[rank - 1] == 1 &&
                     source_.guards.empty() && !tensor::IsBool(source_.type);
    is_wide_ = source_.lane_bytes == 8 || rows_->length() > INT64_C(1) << 32;
    entries_bytes_ = RoundUp(rows_->length() * (is_wide_ ? 16 : 8));
    keys_bytes_ = RoundUp(rows_->length() * source_.lane_bytes);
    spare_bytes_ = AreFew(found_, rows_->length()) ? 0 : entries_bytes_;
    runtime.scratch().Reserve(entries_bytes_ + spare_bytes_ +
                              keys_bytes_ * (1 + rows_->rows_of_box()));
  }

  base::Status Run(device::Addresses addresses) const override {
    if (!rows_) return base::Ok();
    constexpr int64_t kCostOfElement = 2'000;  // picoseconds
    return runtime_.For(rows_->box_count(), rows_->rows_of_box() * rows_->length() * kCostOfElement,
                        [&](int64_t begin, int64_t end, std::byte* scratch) {
                          for (int64_t box = begin; box < end; ++box) {
                            RunBox(addresses, rows_->BoxOf(box), scratch);
                          }
                        });
  }

 private:
  static int64_t RoundUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

  void RunBox(device::Addresses addresses, const Box& box, std::byte* scratch) const {
    const std::byte* base = addresses[source_.buffer];
    const std::byte* lanes = base + FirstElement(source_, box) * source_.lane_bytes;
    if (!is_contiguous_ || !engine::IsAligned(lanes, source_.lane_bytes)) {
      std::byte* loaded = scratch + entries_bytes_ + spare_bytes_ + keys_bytes_;
      engine::LoadBox(source_, base, box, loaded);
      lanes = loaded;
    }
    const int64_t length = rows_->length();
    engine::WithLaneType(source_.lane_bytes, [&](auto lane_type) {
      using Bits = decltype(lane_type);
      const auto make = KeyMaker<Bits>::For(source_.type);
      auto* keys = reinterpret_cast<Bits*>(scratch + entries_bytes_ + spare_bytes_);
      for (int64_t row = 0; row < box.lanes / length; ++row) {
        const auto* elements = reinterpret_cast<const Bits*>(lanes) + row * length;
        MakeKeys(make, index_.largest, elements, length, keys);
        const Box one = Rows::RowOf(box, row);
        if (is_wide_) {
          StoreFirst(RankedRow<Bits>{keys, length}, elements, reinterpret_cast<WideEntry*>(scratch),
                     addresses, one);
        } else if constexpr (sizeof(Bits) < 8) {
          StoreFirst(RankedRow<Bits>{keys, length}, elements,
                     reinterpret_cast<NarrowEntry*>(scratch), addresses, one);
        }
      }
    });
  }

  template <typename Entry, typename Bits>
  void StoreFirst(const RankedRow<Bits>& row, const Bits* elements, Entry* entries,
                  device::Addresses addresses, const Box& box) const {
    auto* spare = reinterpret_cast<Entry*>(reinterpret_cast<std::byte*>(entries) + entries_bytes_);
    FindFirst(row, found_, entries, spare);
    Store<Bits>(targets_[0], addresses, box,
                [&](int64_t rank) { return elements[PositionOf(entries[rank])]; });
    Store<int64_t>(targets_[1], addresses, box,
                   [&](int64_t rank) { return PositionOf(entries[rank]); });
  }

  template <typename T, typename At>
  void Store(const Access& target, device::Addresses addresses, const Box& box, At&& at) const {
    if (target.buffer == program::kNoBuffer) return;
    const int64_t step = target.form.steps[box.rank - 1];
    T* first = reinterpret_cast<T*>(addresses[target.buffer]) + FirstElement(target, box);
    for (int64_t rank = 0; rank < found_; ++rank) first[rank * step] = at(rank);
  }

  const program::Index& index_;
  const Access source_;
  Access targets_[2];
  std::optional<Rows> rows_;
  int64_t found_ = 0;
  bool is_contiguous_ = false;
  bool is_wide_ = false;
  int64_t entries_bytes_ = 0;
  int64_t spare_bytes_ = 0;
  int64_t keys_bytes_ = 0;
  engine::Runtime& runtime_;
};

// Of columns: elements of a row lie apart, those of neighbouring rows side by side.
class BoundColumns final : public device::BoundKernel {
 public:
  BoundColumns(const device::BoundStep& step, engine::Runtime& runtime)
      : index_(*step.step->As<program::Index>()),
        length_(step.domain.back()),
        found_(std::clamp<int64_t>(step.Number(index_.k), 0, length_)),
        runtime_(runtime) {
    const int rank = static_cast<int>(step.domain.size());
    source_ = engine::MakeAccess(step.reads[0], rank);
    if (tensor::ElementCount(step.domain) == 0 || found_ == 0 || rank < 2) return;
    std::vector<engine::LinearForm*> forms = {&source_.form};
    for (size_t k = 0; k < 2; ++k) {
      if (k >= step.writes.size() || step.writes[k].buffer == program::kNoBuffer) continue;
      targets_[k] = engine::MakeAccess(step.writes[k], rank);
      forms.push_back(&targets_[k].form);
    }
    for (size_t k = 0; k < forms.size(); ++k) element_steps_[k] = forms[k]->steps[rank - 1];
    grid_ = engine::Grid(std::span(step.domain).first(static_cast<size_t>(rank) - 1));
    grid_.Permute(engine::Grid::SortedAxes(source_.form, 0, rank - 1), forms);
    grid_.Join({}, forms);
    const int last = grid_.rank() - 1;
    can_run_ = last >= 0 && std::all_of(forms.begin(), forms.end(),
                                        [&](const auto* form) { return form->steps[last] == 1; });
    if (!can_run_) return;
    // As many as lie in some lines of a cache.
    constexpr int64_t kColumns = 256;
    grid_.Tile(0, last, 1);
    columns_ = grid_.Tile(last, last + 1, kColumns);
  }

  // Whether columns are faster than rows, if they can be taken at all.
  bool IsFor() const {
    constexpr int64_t kMinColumns = 4;
    return can_run_ && source_.guards.empty() && source_.lane_bytes >= 4 &&
           found_ <= kMaxRankedOfColumns && length_ < INT64_C(1) << 32 && columns_ >= kMinColumns;
  }

  std::string Detail() const override { return "vectors of rows"; }

  base::Status Run(device::Addresses addresses) const override {
    constexpr int64_t kCostOfElement = 500;  // picoseconds
    return runtime_.For(grid_.TileCount(0, grid_.rank()), columns_ * length_ * kCostOfElement,
                        [&](int64_t begin, int64_t end, std::byte*) {
                          for (int64_t tile = begin; tile < end; ++tile) {
                            Box box;
                            grid_.MoveTo(0, grid_.rank(), tile, box);
                            if (source_.lane_bytes == 4) {
                              RunBox<uint32_t>(addresses, box);
                            } else {
                              RunBox<uint64_t>(addresses, box);
                            }
                          }
                        });
  }

 private:
  template <typename Bits>
  void RunBox(device::Addresses addresses, const Box& box) const {
    Columns<Bits> columns = {};
    columns.elements =
        reinterpret_cast<const Bits*>(addresses[source_.buffer]) + FirstElement(source_, box);
    columns.element_step = element_steps_[0];
    columns.length = length_;
    columns.count = box.lanes;
    columns.found = found_;
    size_t target = 1;
    if (targets_[0].buffer != program::kNoBuffer) {
      columns.values =
          reinterpret_cast<Bits*>(addresses[targets_[0].buffer]) + FirstElement(targets_[0], box);
      columns.value_step = element_steps_[target++];
    }
    if (targets_[1].buffer != program::kNoBuffer) {
      columns.positions = reinterpret_cast<int64_t*>(addresses[targets_[1].buffer]) +
                          FirstElement(targets_[1], box);
      columns.position_step = element_steps_[target];
    }
    RankColumns(KeyMaker<Bits>::For(source_.type), index_.largest, columns);
  }

  const program::Index& index_;
  const int64_t length_;
  const int64_t found_;
  Access source_;
  Access targets_[2];
  int64_t element_steps_[3] = {};  // of the source and of those targets that there are
  engine::Grid grid_;              // of rows
  int64_t columns_ = 0;            // of a tile
  bool can_run_ = false;
  engine::Runtime& runtime_;
};

}  // namespace

std::unique_ptr<device::BoundKernel> BindTopK(const device::BoundStep& step,
                                              engine::Runtime& runtime) {
  auto columns = std::make_unique<BoundColumns>(step, runtime);
  if (columns->IsFor()) return columns;
  return std::make_unique<BoundTopK>(step, runtime);
}

}  // namespace onnxifi::ranking
