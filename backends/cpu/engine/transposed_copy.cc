// SPDX-License-Identifier: Apache-2.0
//
// TransposedCopy: strips of two lines of target columns, down a block of target rows. Of a result
// that is stored past the caches, what a strip leaves of a line, because rows need not begin at
// one, waits beside the block for the next strip.

#include "backends/cpu/engine/transposed_copy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "backends/core/reference/column.h"
#include "backends/cpu/engine/access.h"
#include "backends/cpu/engine/geometry.h"
#include "backends/cpu/engine/stream.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/transpose/transpose.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/transposed_copy.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_TRANSPOSED_COPY_CC_
#define ONNXIFI_BACKENDS_CPU_ENGINE_TRANSPOSED_COPY_CC_

namespace onnxifi::engine {

constexpr int64_t kLine = 64;
// Of a strip in a row of the target.
constexpr int64_t kStripBytes = 2 * kLine;
// A row of a strip as it lies in working memory: what the strip before it left, and the strip's
// own.
constexpr int64_t kPieceBytes = kLine + kStripBytes;

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_TRANSPOSED_COPY_CC_

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// For each of `rows` pieces: puts what is left from before in front of it, stores the two lines
// that are whole now, and leaves the rest. Rows of the target are `stride_bytes` apart.
void StoreStrip(std::byte* pieces, int64_t rows, std::byte* target, int64_t stride_bytes,
                std::byte* left) {
  const hn::CappedTag<uint8_t, kLine> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r) {
    auto* piece = reinterpret_cast<uint8_t*>(pieces + r * kPieceBytes);
    auto* rest = reinterpret_cast<uint8_t*>(left + r * kLine);
    const auto misaligned =
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(target + r * stride_bytes) % kLine);
    auto* to = reinterpret_cast<uint8_t*>(target + r * stride_bytes) - misaligned;
    for (int64_t k = 0; k < kLine; k += lanes) {
      hn::Store(hn::Load(d, rest + k), d, piece + k);
    }
    const uint8_t* from = piece + kLine - misaligned;
    for (int64_t k = 0; k < kStripBytes; k += lanes) {
      hn::Stream(hn::LoadU(d, from + k), d, to + k);
    }
    for (int64_t k = 0; k < kLine; k += lanes) {
      hn::Store(hn::Load(d, piece + kStripBytes + k), d, rest + k);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(StoreStrip);

namespace {

// Rows of the target that are transposed at a time, and for which lines are left: these stay in an
// L1, those in an L2 cache, and a source of 4-byte elements is read in runs of 4 KiB.
constexpr int64_t kRows = 64;
constexpr int64_t kRowsPerBlock = 1024;

class TransposedCopy final : public device::BoundKernel {
 public:
  // The grid's last axis is the one along which the write steps by 1; the read does so along
  // `axis`.
  TransposedCopy(const Grid& grid, int axis, const Access& read, const Access& write, bool is_bool,
                 bool is_streamed, Runtime& runtime)
      : grid_(grid),
        axis_(axis),
        last_(grid.rank() - 1),
        read_(read),
        write_(write),
        is_streamed_(is_streamed),
        bytes_(write.lane_bytes),
        is_bool_(is_bool),
        strips_(PartCount(grid.extent(last_) * bytes_, kStripBytes)),
        blocks_(PartCount(grid.extent(axis), kRowsPerBlock)),
        runtime_(runtime) {
    count_ = strips_ * blocks_;
    for (int other = 0; other < last_; ++other) {
      if (other != axis) count_ *= grid.extent(other);
    }
    runtime.scratch().Reserve(kRows * kPieceBytes + kRowsPerBlock * kLine);
  }

  std::string Detail() const override {
    return std::string(processor::VectorName()) + ", transposed copy";
  }

  base::Status Run(device::Addresses addresses) const override {
    // A byte takes about a tenth of a nanosecond to read and to write.
    constexpr int64_t kCostPerByte = 100;
    const int64_t cost = std::min(kRowsPerBlock, grid_.extent(axis_)) * kStripBytes * kCostPerByte;
    return runtime_.For(count_, cost, [&](int64_t begin, int64_t end, std::byte* scratch) {
      RunStrips(addresses, begin, end, scratch);
    });
  }

 private:
  static int64_t PartCount(int64_t extent, int64_t part) { return (extent + part - 1) / part; }

  // Strips are numbered along the target's rows, then by blocks of rows, then along other axes.
  void RunStrips(device::Addresses addresses, int64_t begin, int64_t end,
                 std::byte* scratch) const {
    for (int64_t number = begin; number < end; ++number) {
      const int64_t strip = number % strips_;
      const int64_t block = number / strips_ % blocks_;
      Box box;
      box.rank = grid_.rank();
      int64_t rest = number / strips_ / blocks_;
      for (int other = last_; other-- > 0;) {
        if (other == axis_) continue;
        box.begin[other] = rest % grid_.extent(other);
        rest /= grid_.extent(other);
      }
      box.begin[axis_] = block * kRowsPerBlock;
      box.begin[last_] = strip * (kStripBytes / bytes_);
      const std::byte* source = AddressOf(read_, box, addresses[read_.buffer]);
      std::byte* target = AddressOf(write_, box, addresses[write_.buffer]);
      const int64_t columns =
          std::min(kStripBytes / bytes_, grid_.extent(last_) - box.begin[last_]);
      const int64_t rows = std::min(kRowsPerBlock, grid_.extent(axis_) - box.begin[axis_]);
      if (!is_streamed_) {
        for (int64_t row = 0; row < rows; row += kRows) {
          Transpose(source + row * bytes_, target + row * stride_bytes(), stride_bytes(),
                    std::min(kRows, rows - row), columns);
        }
        continue;
      }
      const bool is_first = strip == 0 || number == begin;
      const bool is_last = strip == strips_ - 1 || number == end - 1;
      std::byte* left = scratch + kRows * kPieceBytes;
      for (int64_t row = 0; row < rows; row += kRows) {
        const int64_t count = std::min(kRows, rows - row);
        Transpose(source + row * bytes_, scratch + kLine, kPieceBytes, count, columns);
        std::byte* to = target + row * stride_bytes();
        if (is_first || is_last) {
          StoreEnds(scratch, count, columns * bytes_, to, left + row * kLine, is_first, is_last);
        } else {
          HWY_DYNAMIC_DISPATCH(StoreStrip)
          (scratch, count, to, stride_bytes(), left + row * kLine);
        }
      }
    }
    if (is_streamed_) FinishStreams();
  }

  // Rows of `target` are `target_bytes` apart.
  void Transpose(const std::byte* source, std::byte* target, int64_t target_bytes, int64_t rows,
                 int64_t columns) const {
    transpose::Transpose(source, read_.form.steps[last_], target, target_bytes / bytes_, rows,
                         columns, bytes_);
    if (!is_bool_) return;
    // A bool is read as 0 or 1, whatever its byte.
    for (int64_t r = 0; r < rows; ++r) {
      std::byte* const row = target + r * target_bytes;
      for (int64_t c = 0; c < columns; ++c) row[c] = std::byte(row[c] != std::byte(0) ? 1 : 0);
    }
  }

  // The first strip of a row has nothing before it, and the last leaves nothing.
  void StoreEnds(std::byte* pieces, int64_t rows, int64_t size_bytes, std::byte* target,
                 std::byte* left, bool is_first, bool is_last) const {
    for (int64_t r = 0; r < rows; ++r) {
      std::byte* piece = pieces + r * kPieceBytes;
      std::byte* to = target + r * stride_bytes();
      const auto misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kLine);
      const int64_t before = is_first ? 0 : misaligned;
      const int64_t after = is_last ? 0 : misaligned;
      if (!is_first) std::memcpy(piece, left + r * kLine, kLine);
      StreamBytes(piece + kLine - before, before + size_bytes - after, to - before);
      if (!is_last) std::memcpy(left + r * kLine, piece + kStripBytes, kLine);
    }
  }

  int64_t stride_bytes() const { return write_.form.steps[axis_] * bytes_; }

  const Grid grid_;
  const int axis_;
  const int last_;
  const Access read_;
  const Access write_;
  const bool is_streamed_;
  const int64_t bytes_;  // of an element
  const bool is_bool_;
  const int64_t strips_;
  const int64_t blocks_;
  int64_t count_;  // of strips in all blocks
  Runtime& runtime_;
};

}  // namespace

std::unique_ptr<device::BoundKernel> BindTransposedCopy(const Code& code,
                                                        const device::BoundStep& step,
                                                        Runtime& runtime) {
  const Code::Instruction* load = code.OnlyInstruction();
  if (load == nullptr || load->kind != Code::Kind::kLoad || step.writes.size() != 1) return nullptr;
  const device::BoundView& source = step.reads[load->payload];
  const device::BoundView& target = step.writes[0];
  const bool is_moved =
      source.type == target.type && source.guards.empty() && !tensor::IsPacked(source.type);
  if (!is_moved || reference::LaneBytes(source.type) > 8) return nullptr;
  const int rank = static_cast<int>(step.domain.size());
  Access read = MakeAccess(source, rank);
  Access write = MakeAccess(target, rank);
  const int64_t size_bytes = tensor::ElementCount(step.domain) * write.lane_bytes;
  if (size_bytes == 0) return nullptr;
  const bool is_streamed = size_bytes >= runtime.settings().streamed_transposed_bytes;
  Grid grid(step.domain);
  LinearForm* forms[] = {&read.form, &write.form};
  grid.Permute(Grid::SortedAxes(write.form, 0, rank), forms);
  grid.Join({}, forms);
  const int last = grid.rank() - 1;
  if (last < 1 || write.form.steps[last] != 1) return nullptr;
  // An element that is repeated along a row of the target is no column of the source.
  if (read.form.steps[last] == 0 || read.form.steps[last] == 1) return nullptr;
  // Shorter runs on either side are better off in tiles of several axes, and so are those that
  // leave a large part of their last strip empty.
  const int64_t row_bytes = grid.extent(last) * write.lane_bytes;
  const int64_t strip_bytes = (row_bytes + kStripBytes - 1) / kStripBytes * kStripBytes;
  if (row_bytes < kStripBytes || 4 * row_bytes < 3 * strip_bytes) return nullptr;
  for (int axis = last; axis-- > 0;) {
    if (read.form.steps[axis] != 1 || grid.extent(axis) * read.lane_bytes < kLine) continue;
    return std::make_unique<TransposedCopy>(grid, axis, read, write, tensor::IsBool(source.type),
                                            is_streamed, runtime);
  }
  return nullptr;
}

}  // namespace onnxifi::engine
#endif
