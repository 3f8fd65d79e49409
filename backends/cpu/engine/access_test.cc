// SPDX-License-Identifier: Apache-2.0
//
// Loads of constants that lie at any address, as in a model's own bytes: every form of a tile gives
// what it gives at an aligned address. Under UBSan an aligned load of them is a failure.

#include "backends/cpu/engine/access.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "backends/cpu/engine/computed_loads.h"

namespace onnxifi::engine {
namespace {

using tensor::ElementType;

constexpr int64_t kElements = 600;

// Bytes that begin `shift` behind an aligned address.
class Bytes {
 public:
  explicit Bytes(size_t shift) : memory_(kElements * 8 + 64), shift_(shift) {
    for (size_t k = 0; k < size_t{kElements} * 8; ++k) {
      memory_[shift + k] = static_cast<std::byte>(k * 37 % 251);
    }
  }
  const std::byte* data() const { return memory_.data() + shift_; }

 private:
  std::vector<std::byte> memory_;
  size_t shift_;
};

struct Form {
  const char* name;
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;
  int64_t offset = 0;
  std::vector<device::BoundGuard> guards = {};
};

const Form kForms[] = {
    {"Dense", {4, 30}, {30, 1}},
    {"Short", {20, 3}, {5, 1}},
    {"Repeated", {7, 9}, {3, 0}},
    {"ShortOfTables", {2, 9, 7}, {200, 11, 1}},
    {"RepeatedRuns", {2, 5, 12}, {100, 0, 4}},
    {"Strided", {11, 13}, {40, 3}},
    {"Transposed", {20, 24}, {1, 20}},
    {"Interleaved", {50, 3}, {1, 100}},
    {"InterleavedPairs", {2, 40, 2}, {100, 1, 50}},
    {"Backwards", {50}, {-2}, 120},
    {"Padded", {4, 16}, {20, 1}, -3, {{{0, 1}, -3, 12}}},
};

class AnyAddressTest : public testing::TestWithParam<ElementType> {
 protected:
  static device::BoundView View(const Form& form) {
    device::BoundView view{};
    view.buffer = 0;
    view.type = GetParam();
    view.offset = form.offset;
    view.strides.assign(form.strides.begin(), form.strides.end());
    view.guards.assign(form.guards.begin(), form.guards.end());
    return view;
  }
  static int64_t LaneBytes() { return tensor::BitWidth(GetParam()) / 8; }
};

TEST_P(AnyAddressTest, TilesAreThoseOfAnAlignedAddress) {
  const Bytes aligned(0);
  for (const Form& form : kForms) {
    const int rank = static_cast<int>(form.extents.size());
    Box box;
    box.rank = rank;
    box.lanes = 1;
    for (int axis = 0; axis < rank; ++axis) {
      box.extents[axis] = form.extents[axis];
      box.lanes *= form.extents[axis];
    }
    const Grid grid(form.extents);
    for (const bool is_laid_out : {false, true}) {
      Access access = MakeAccess(View(form), rank);
      if (is_laid_out) LayOut(access, grid);
      std::vector<uint64_t> expected(static_cast<size_t>(box.lanes)), found(expected);
      LoadBox(access, aligned.data(), box, reinterpret_cast<std::byte*>(expected.data()));
      for (const size_t shift : {1, 2, 3, 5}) {
        const Bytes shifted(shift);
        LoadBox(access, shifted.data(), box, reinterpret_cast<std::byte*>(found.data()));
        EXPECT_EQ(found, expected) << form.name << " behind " << shift << " bytes";
      }
    }
  }
}

TEST_P(AnyAddressTest, TilesAreWhatPlainLoopsLoad) {
  const Bytes source(1);
  const auto lane_bytes = static_cast<size_t>(LaneBytes());
  for (const Form& form : kForms) {
    if (!form.guards.empty()) continue;
    const auto rank = static_cast<int>(form.extents.size());
    Box box;
    box.rank = rank;
    box.lanes = tensor::ElementCount(form.extents);
    std::copy(form.extents.begin(), form.extents.end(), box.extents.begin());
    const Access access = MakeAccess(View(form), rank);
    std::vector<std::byte> lanes(static_cast<size_t>(box.lanes) * lane_bytes), expected(lanes);
    for (int64_t lane = 0; lane < box.lanes; ++lane) {
      int64_t element = form.offset, rest = lane;
      for (size_t axis = form.extents.size(); axis-- > 0;) {
        element += rest % form.extents[axis] * form.strides[axis];
        rest /= form.extents[axis];
      }
      std::memcpy(&expected[static_cast<size_t>(lane) * lane_bytes],
                  source.data() + static_cast<size_t>(element) * lane_bytes, lane_bytes);
    }
    LoadBox(access, source.data(), box, lanes.data());
    EXPECT_EQ(lanes, expected) << form.name;
  }
}

// Planes that are read and written as pixels, and planes that overlap, of which the last lane
// counts; with what is found once for all tiles, and without.
TEST_P(AnyAddressTest, PixelsComeFromPlanesAndGoToThem) {
  const auto lane_bytes = static_cast<size_t>(LaneBytes());
  for (const int64_t planes : {2, 3}) {
    for (const int64_t count : {1, 15, 16, 31, 64, 90}) {
      for (const int64_t plane_step : {100, 90, 7, -100}) {
        SCOPED_TRACE(testing::Message() << planes << " planes of " << count << ", " << plane_step
                                        << " elements apart");
        const Form form{"Planes", {count, planes}, {1, plane_step}, plane_step < 0 ? 250 : 0};
        Box box;
        box.rank = 2;
        box.extents[0] = count;
        box.extents[1] = planes;
        box.lanes = count * planes;
        const auto position = [&](int64_t lane) {
          return static_cast<size_t>(form.offset + lane / planes + lane % planes * plane_step) *
                 lane_bytes;
        };
        const int64_t image[] = {2 * count, planes};
        Grid grid(image);
        ASSERT_EQ(grid.Tile(0, 2, box.lanes), box.lanes);
        for (const bool is_laid_out : {false, true}) {
          Access access = MakeAccess(View(form), 2);
          if (is_laid_out) {
            LayOut(access, grid);
            EXPECT_EQ(access.has_fast_loads, count >= 16);
          }
          const Bytes source(1);
          std::vector<std::byte> lanes(static_cast<size_t>(box.lanes) * lane_bytes);
          LoadBox(access, source.data(), box, lanes.data());
          std::vector<std::byte> expected(kElements * lane_bytes), stored(expected);
          for (int64_t lane = 0; lane < box.lanes; ++lane) {
            std::byte* const at = lanes.data() + static_cast<size_t>(lane) * lane_bytes;
            ASSERT_EQ(std::memcmp(at, source.data() + position(lane), lane_bytes), 0) << lane;
            at[0] = static_cast<std::byte>(lane + 1);  // another number in each lane
            std::memcpy(expected.data() + position(lane), at, lane_bytes);
          }
          StoreBox(access, stored.data(), box, lanes.data());
          EXPECT_EQ(stored, expected);
        }
      }
    }
  }
}

TEST_P(AnyAddressTest, ComputedCoordinatesReadWhatLiesAtAnAlignedAddress) {
  const Bytes aligned(0);
  constexpr int64_t kCount = 200;
  std::vector<int64_t> rows(kCount), columns(kCount);
  std::iota(columns.begin(), columns.end(), 0);
  for (int64_t k = 0; k < kCount; ++k) {
    rows[static_cast<size_t>(k)] = k * 7 % 19;
    columns[static_cast<size_t>(k)] %= 23;
  }
  const std::byte* const coordinates[] = {reinterpret_cast<const std::byte*>(rows.data()),
                                          reinterpret_cast<const std::byte*>(columns.data())};
  const RowCoordinates by_rows{.numbers = coordinates, .along = 1, .rows = 20, .length = 23};
  for (const bool is_guarded : {false, true}) {
    Form form{"Gathered", {}, {25, 1}};
    if (is_guarded) form.guards = {{{1, 0}, 0, 15}};
    const device::BoundView view = View(form);
    std::vector<uint64_t> expected(kCount), found(kCount);
    LoadAt(view, aligned.data(), coordinates, kCount,
           reinterpret_cast<std::byte*>(expected.data()));
    std::vector<uint64_t> expected_rows(20 * 23), found_rows(20 * 23);
    LoadRowsAt(view, aligned.data(), by_rows, reinterpret_cast<std::byte*>(expected_rows.data()));
    for (const size_t shift : {1, 2, 3, 5}) {
      const Bytes shifted(shift);
      LoadAt(view, shifted.data(), coordinates, kCount, reinterpret_cast<std::byte*>(found.data()));
      EXPECT_EQ(found, expected) << shift;
      LoadRowsAt(view, shifted.data(), by_rows, reinterpret_cast<std::byte*>(found_rows.data()));
      EXPECT_EQ(found_rows, expected_rows) << shift;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, AnyAddressTest,
                         testing::Values(ElementType::kUint8, ElementType::kFloat16,
                                         ElementType::kFloat32, ElementType::kInt64),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace onnxifi::engine
