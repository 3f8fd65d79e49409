// SPDX-License-Identifier: Apache-2.0
//
// Suppress: rows without candidates are not looked at, and the edges of kept boxes lie together.

#include "backends/cpu/ranking/suppress.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "backends/cpu/ranking/row.h"

namespace onnxifi::ranking {
namespace {

using engine::Access;
using engine::Box;

// Kept boxes of a row: edges y1, x1, y2, x2 and areas, a column each.
struct Kept {
  float* edges[4];
  float* areas;
  int64_t count = 0;
};

bool OverlapsKept(const Kept& kept, const float (&box)[4], float area, float threshold) {
  bool overlaps = false;
  for (int64_t k = 0; k < kept.count; ++k) {
    const float height = std::min(box[2], kept.edges[2][k]) - std::max(box[0], kept.edges[0][k]);
    const float width = std::min(box[3], kept.edges[3][k]) - std::max(box[1], kept.edges[1][k]);
    const float shared = height * width;
    const float joined = area + kept.areas[k] - shared;
    // No branch, so that vectors do several.
    overlaps |= (height > 0) & (width > 0) & (joined > 0) & (shared / joined > threshold);
  }
  return overlaps;
}

class BoundSuppress final : public device::BoundKernel {
 public:
  BoundSuppress(const device::BoundStep& step, engine::Runtime& runtime) : runtime_(runtime) {
    if (tensor::ElementCount(step.domain) == 0) return;
    const int rank = static_cast<int>(step.domain.size());
    rows_.emplace(step.domain);
    for (const device::BoundView& view : step.reads) {
      reads_.push_back(engine::MakeAccess(view, rank));
    }
    target_ = engine::MakeAccess(step.writes[0], rank);
    const int64_t length = rows_->length();
    // Edges and, of kept boxes, edges and areas; candidates and what is kept of them.
    runtime.scratch().Reserve(length * (9 * 4 + 2) + 16);
  }

  base::Status Run(device::Addresses addresses) const override {
    if (!rows_) return base::Ok();
    constexpr int64_t kCostOfElement = 2'000;  // picoseconds
    return runtime_.For(rows_->box_count(), rows_->length() * kCostOfElement,
                        [&](int64_t begin, int64_t end, std::byte* scratch) {
                          for (int64_t row = begin; row < end; ++row) {
                            RunRow(addresses, rows_->BoxOf(row), scratch);
                          }
                        });
  }

 private:
  template <typename T>
  T LoadFirst(size_t read, device::Addresses addresses, Box box) const {
    box.extents[box.rank - 1] = 1;
    box.lanes = 1;
    T value;
    Load(read, addresses, box, reinterpret_cast<std::byte*>(&value));
    return value;
  }

  void Load(size_t read, device::Addresses addresses, const Box& box, std::byte* lanes) const {
    engine::LoadBox(reads_[read], addresses[reads_[read].buffer], box, lanes);
  }

  void RunRow(device::Addresses addresses, const Box& box, std::byte* scratch) const {
    const int64_t length = rows_->length();
    auto* columns = reinterpret_cast<float*>(scratch);
    auto* is_candidate = reinterpret_cast<uint8_t*>(columns + 9 * length);
    uint8_t* is_kept = is_candidate + length;
    std::memset(is_kept, 0, static_cast<size_t>(length));
    Load(0, addresses, box, reinterpret_cast<std::byte*>(is_candidate));
    const int64_t limit = LoadFirst<int64_t>(6, addresses, box);
    if (limit > 0 && std::memchr(is_candidate, 1, static_cast<size_t>(length)) != nullptr) {
      for (size_t k = 0; k < 4; ++k) {
        Load(k + 1, addresses, box, reinterpret_cast<std::byte*>(columns + k * length));
      }
      Keep(columns, length, LoadFirst<float>(5, addresses, box), limit, is_candidate, is_kept);
    }
    engine::StoreBox(target_, addresses[target_.buffer], box,
                     reinterpret_cast<const std::byte*>(is_kept));
  }

  static void Keep(float* columns, int64_t length, float threshold, int64_t limit,
                   const uint8_t* is_candidate, uint8_t* is_kept) {
    Kept kept;
    for (int k = 0; k < 4; ++k) kept.edges[k] = columns + (4 + k) * length;
    kept.areas = columns + 8 * length;
    for (int64_t k = 0; k < length && kept.count < limit; ++k) {
      if (is_candidate[k] == 0) continue;
      const float box[4] = {columns[k], columns[length + k], columns[2 * length + k],
                            columns[3 * length + k]};
      const float area = (box[2] - box[0]) * (box[3] - box[1]);
      if (OverlapsKept(kept, box, area, threshold)) continue;
      for (int edge = 0; edge < 4; ++edge) kept.edges[edge][kept.count] = box[edge];
      kept.areas[kept.count++] = area;
      is_kept[k] = 1;
    }
  }

  std::vector<Access> reads_;
  Access target_;
  std::optional<Rows> rows_;
  engine::Runtime& runtime_;
};

}  // namespace

std::unique_ptr<device::BoundKernel> BindSuppress(const device::BoundStep& step,
                                                  engine::Runtime& runtime) {
  return std::make_unique<BoundSuppress>(step, runtime);
}

}  // namespace onnxifi::ranking
