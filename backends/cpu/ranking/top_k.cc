// SPDX-License-Identifier: Apache-2.0
//
// TopK: a row at a time, its entries in working memory.

#include "backends/cpu/ranking/top_k.h"

#include <algorithm>
#include <optional>

#include "backends/cpu/engine/lane_types.h"
#include "backends/cpu/ranking/first_entries.h"
#include "backends/cpu/ranking/row.h"

namespace onnxifi::ranking {
namespace {

using engine::Access;
using engine::Box;

class BoundTopK final : public device::BoundKernel {
 public:
  BoundTopK(const device::BoundStep& step, engine::Runtime& runtime)
      : index_(*step.step->As<program::Index>()),
        source_(engine::MakeAccess(step.reads[0], static_cast<int>(step.domain.size()))),
        runtime_(runtime) {
    const int rank = static_cast<int>(step.domain.size());
    found_ = std::clamp<int64_t>(step.Number(index_.k), 0, step.domain.back());
    if (tensor::ElementCount(step.domain) == 0 || found_ == 0) return;
    rows_.emplace(step.domain);
    for (size_t k = 0; k < 2; ++k) {
      const bool is_written = k < step.writes.size() && step.writes[k].buffer != program::kNoBuffer;
      targets_[k] = is_written ? engine::MakeAccess(step.writes[k], rank) : Access();
    }
    is_wide_ = source_.lane_bytes == 8 || rows_->length() > INT64_C(1) << 32;
    entries_bytes_ = rows_->length() * (is_wide_ ? 16 : 8);
    runtime.scratch().Reserve(entries_bytes_ + rows_->length() * source_.lane_bytes + 64);
  }

  base::Status Run(device::Addresses addresses) const override {
    if (!rows_) return base::Ok();
    constexpr int64_t kCostOfElement = 20'000;  // picoseconds
    return runtime_.For(rows_->count(), rows_->length() * kCostOfElement,
                        [&](int64_t begin, int64_t end, std::byte* scratch) {
                          for (int64_t row = begin; row < end; ++row) {
                            RunRow(addresses, rows_->BoxOf(row), scratch);
                          }
                        });
  }

 private:
  void RunRow(device::Addresses addresses, const Box& box, std::byte* scratch) const {
    std::byte* lanes = scratch + entries_bytes_;
    engine::LoadBox(source_, addresses[source_.buffer], box, lanes);
    engine::WithLaneType(source_.lane_bytes, [&](auto lane_type) {
      using Bits = decltype(lane_type);
      const RankedRow<Bits> row{reinterpret_cast<const Bits*>(lanes), rows_->length(),
                                KeyMaker<Bits>::For(source_.type), index_.largest};
      if (is_wide_) {
        StoreFirst(row, reinterpret_cast<WideEntry*>(scratch), addresses, box);
      } else if constexpr (sizeof(Bits) < 8) {
        StoreFirst(row, reinterpret_cast<NarrowEntry*>(scratch), addresses, box);
      }
    });
  }

  template <typename Entry, typename Bits>
  void StoreFirst(const RankedRow<Bits>& row, Entry* entries, device::Addresses addresses,
                  const Box& box) const {
    FindFirst(row, found_, entries);
    Store<Bits>(targets_[0], addresses, box,
                [&](int64_t rank) { return row.elements[PositionOf(entries[rank])]; });
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
  bool is_wide_ = false;
  int64_t entries_bytes_ = 0;
  engine::Runtime& runtime_;
};

}  // namespace

std::unique_ptr<device::BoundKernel> BindTopK(const device::BoundStep& step,
                                              engine::Runtime& runtime) {
  return std::make_unique<BoundTopK>(step, runtime);
}

}  // namespace onnxifi::ranking
