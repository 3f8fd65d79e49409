// SPDX-License-Identifier: Apache-2.0
//
// TransposedCopy: element by element against plain loops, for rows that begin anywhere in a line,
// with what lies between and around them untouched; and what it leaves to tiles.

#include "backends/cpu/engine/transposed_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/engine/testing/engine_device.h"

namespace onnxifi::engine {
namespace {

using tensor::ElementType;
using tensor::Extents;
using testing::HasSubstr;
using testing::Not;

// out[b, r, c] = in[b, c, r] for a window of `extents` = {batch, rows, columns} in buffers that are
// larger by `gap` elements in every row, and begin `gap` elements late.
struct Window {
  Extents extents;
  int64_t gap = 0;
};

class Transposition {
 public:
  Transposition(ElementType type, const Window& window)
      : type_(type), bytes_(tensor::BitWidth(type) / 8), window_(window) {
    const auto [batch, rows, columns] =
        std::array{window.extents[0], window.extents[1], window.extents[2]};
    const int64_t gap = window.gap;
    in_strides_ = {columns * (rows + gap), 1, rows + gap};
    out_strides_ = {rows * (columns + gap), columns + gap, 1};
    in_.resize(static_cast<size_t>((gap + batch * in_strides_[0]) * bytes_));
    out_.assign(static_cast<size_t>((gap + batch * out_strides_[0]) * bytes_), std::byte{0xA5});
    std::mt19937 random(7);
    for (std::byte& byte : in_) byte = static_cast<std::byte>(random());
    const program::BufferId in = AddBuffer(program::Buffer::Kind::kInput, in_.size());
    const program::BufferId out = AddBuffer(program::Buffer::Kind::kTemporary, out_.size());
    program::Step step;
    for (int64_t extent : window.extents) step.domain.push_back(extent);
    step.reads.push_back(MakeView(in, in_strides_));
    step.writes.push_back(MakeView(out, out_strides_));
    step.body = program::Map{{Load(program_.exprs, type, 0).id()}};
    program_.steps.push_back(std::move(step));
  }

  // What the kernel says of itself, after a run.
  std::string Run(device::Parallel& parallel, const Settings& settings) {
    EngineDevice device(parallel, settings);
    const program::Step& step = program_.steps[0];
    device::Selection selection = *device.Select({program_, step});
    std::unique_ptr<device::Kernel> kernel = *device.Build(*selection.recipe);
    std::byte* const addresses[] = {in_.data(), out_.data()};
    const std::vector<int64_t> dims;
    std::unique_ptr<device::BoundKernel> bound =
        *kernel->Bind(device::Bind(program_, step, dims), addresses);
    EXPECT_TRUE(bound->Run(addresses).ok());
    return bound->Detail();
  }

  void ExpectTransposed() const {
    std::vector<std::byte> expected(out_.size(), std::byte{0xA5});
    for (int64_t b = 0; b < window_.extents[0]; ++b) {
      for (int64_t r = 0; r < window_.extents[1]; ++r) {
        for (int64_t c = 0; c < window_.extents[2]; ++c) {
          std::memcpy(expected.data() + At(out_strides_, b, r, c),
                      in_.data() + At(in_strides_, b, r, c), static_cast<size_t>(bytes_));
          if (type_ == ElementType::kBool) {
            std::byte& truth = expected[At(out_strides_, b, r, c)];
            truth = std::byte(truth == std::byte(0) ? 0 : 1);
          }
        }
      }
    }
    EXPECT_EQ(out_, expected) << testing::PrintToString(window_.extents) << ", gap " << window_.gap
                              << ", " << bytes_ << " bytes";
  }

 private:
  program::BufferId AddBuffer(program::Buffer::Kind kind, size_t size_bytes) {
    program::Buffer buffer;
    buffer.kind = kind;
    buffer.type = type_;
    buffer.shape = {static_cast<int64_t>(size_bytes) / bytes_};
    return program_.AddBuffer(buffer);
  }
  program::View MakeView(program::BufferId buffer, const Extents& strides) const {
    program::View view;
    view.buffer = buffer;
    view.type = type_;
    view.offset = window_.gap;
    for (int64_t stride : strides) view.strides.push_back(stride);
    return view;
  }
  size_t At(const Extents& strides, int64_t b, int64_t r, int64_t c) const {
    return static_cast<size_t>((window_.gap + b * strides[0] + r * strides[1] + c * strides[2]) *
                               bytes_);
  }

  const ElementType type_;
  const int64_t bytes_;
  const Window window_;
  Extents in_strides_;
  Extents out_strides_;
  std::vector<std::byte> in_;
  std::vector<std::byte> out_;
  program::Program program_;
};

Settings Always() { return {.streamed_transposed_bytes = 1}; }

TEST(TransposedCopyTest, MovesEveryElementAndNothingElse) {
  for (const ElementType type : {ElementType::kBool, ElementType::kUint8, ElementType::kFloat16,
                                 ElementType::kFloat32, ElementType::kInt64}) {
    for (const Window& window : {Window{{1, 64, 128}},
                                 {{1, 65, 229}, 3},
                                 {{2, 1100, 240}, 1},
                                 {{3, 130, 1000}},
                                 {{1, 2050, 233}, 5},
                                 {{2, 64, 515}, 16}}) {
      // Through the caches, and past them.
      for (Settings settings : {Settings(), Always()}) {
        device::Serial serial;
        Transposition whole(type, window);
        EXPECT_THAT(whole.Run(serial, settings), HasSubstr("transposed copy"));
        whole.ExpectTransposed();

        // Every strip by itself, the last first.
        Shredder shredder;
        settings.worth_a_thread = 1;
        Transposition shredded(type, window);
        shredded.Run(shredder, settings);
        shredded.ExpectTransposed();
      }
    }
  }
}

TEST(TransposedCopyTest, LeavesShortRowsToTiles) {
  device::Serial serial;
  Transposition narrow(ElementType::kFloat32, {{1, 4000, 31}});
  EXPECT_THAT(narrow.Run(serial, Always()), Not(HasSubstr("transposed copy")));
  narrow.ExpectTransposed();
  Transposition few(ElementType::kFloat32, {{1, 15, 4000}});
  EXPECT_THAT(few.Run(serial, Always()), Not(HasSubstr("transposed copy")));
  few.ExpectTransposed();
  // A strip and one element.
  Transposition wide(ElementType::kInt64, {{1, 4000, 17}});
  EXPECT_THAT(wide.Run(serial, Always()), Not(HasSubstr("transposed copy")));
  wide.ExpectTransposed();
}

}  // namespace
}  // namespace onnxifi::engine
