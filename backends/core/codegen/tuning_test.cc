// SPDX-License-Identifier: Apache-2.0
//
// The table of tiles: which rule counts, and what is no rule. Needs no device.

#include "backends/core/codegen/tuning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace onnxifi::codegen {
namespace {

constexpr int64_t kDeep = 1000;

TEST(TuningTest, ADeviceThatNobodyMeasuredGetsWhatItsLimitsSuggest) {
  const Tuning wide = DeriveTuning({.is_processor = true, .vector_bits = 512});
  EXPECT_EQ(wide.TileFor(1, kDeep, 32), (TileShape{1, 4, 16, 4}));
  EXPECT_EQ(wide.TileFor(3, kDeep, 32), (TileShape{4, 2, 16, 1}));
  EXPECT_EQ(wide.TileFor(5, kDeep, 32), (TileShape{8, 2, 16, 1}));
  EXPECT_EQ(wide.TileFor(5, kDeep, 64), (TileShape{8, 2, 8, 1}));
  for (const int bits : {128, 256}) {
    const Tuning narrow = DeriveTuning({.is_processor = true, .vector_bits = bits});
    // 12 sums, 2 vectors of columns and an element fit 16 registers; another row does not.
    EXPECT_EQ(narrow.TileFor(100, kDeep, 32), (TileShape{6, 2, bits / 32, 1}));
    EXPECT_EQ(narrow.run_length, 64);
  }
  const Tuning items = DeriveTuning({.vector_bits = 128, .most_group_items = 1024});
  EXPECT_EQ(items.run_length, 1);
}

TEST(TuningTest, OnlyProcessorsGetSmallGroupsAndPaddedArrays) {
  Capabilities capabilities;
  DeriveTuning({.is_processor = true, .vector_bits = 512}).Describe(capabilities);
  EXPECT_EQ(capabilities.run_length, 64);
  EXPECT_EQ(capabilities.run_group_size, 16);
  EXPECT_EQ(capabilities.row_parts, 16);
  EXPECT_EQ(capabilities.byte_array_padding, 1);
  EXPECT_EQ(capabilities.long_item_group_size, 4);
  DeriveTuning({.most_group_items = 1024}).Describe(capabilities);
  EXPECT_EQ(capabilities.run_length, 1);
  EXPECT_EQ(capabilities.run_group_size, 64);
  EXPECT_EQ(capabilities.byte_array_padding, 0);
  EXPECT_EQ(capabilities.long_item_group_size, 64);
  DeriveTuning({.most_group_items = 32}).Describe(capabilities);
  EXPECT_EQ(capabilities.long_item_group_size, 32);
}

// rows, columns, and items along both, of a block that a group sums; depth, parts.
TileShape Block(int rows, int columns, int item_rows, int item_columns, int depth, int parts) {
  return {.rows = rows,
          .vectors = columns,
          .group_size = item_rows * item_columns * parts,
          .are_items_lanes = true,
          .item_rows = item_rows,
          .item_columns = item_columns,
          .depth = depth,
          .parts = parts};
}

TEST(TuningTest, ItemsOfAGpuSumABlockTogether) {
  const Tuning tuning = DeriveTuning({.most_group_items = 1024});
  EXPECT_EQ(tuning.TileFor(1000, kDeep, 32), Block(8, 8, 8, 8, 8, 1));
  // Blocks have as many rows as leave few of them empty, and as many columns.
  EXPECT_EQ(tuning.TileFor(96, kDeep, 32), Block(8, 8, 4, 16, 8, 1));
  EXPECT_EQ(tuning.TileFor(32, 5, 32), Block(8, 8, 4, 16, 8, 1));
  EXPECT_EQ(tuning.TileFor(9, 5, 32), Block(8, 8, 2, 32, 8, 1));
  EXPECT_EQ(tuning.TileFor(9, 5, 32, /*columns=*/100), Block(4, 4, 4, 32, 16, 1));
  EXPECT_EQ(tuning.TileFor(1000, kDeep, 32, /*columns=*/20), Block(8, 4, 16, 4, 16, 1));
  // Elements twice as wide take as much shared memory of half the depth.
  EXPECT_EQ(tuning.TileFor(9, 5, 64), Block(8, 8, 2, 32, 4, 1));
  // Few rows: nothing is shared, and deep sums are shared out.
  EXPECT_EQ(tuning.TileFor(8, kDeep, 32), Block(8, 4, 1, 16, 0, 16));
  EXPECT_EQ(tuning.TileFor(1, kDeep, 32), Block(1, 4, 1, 16, 0, 16));
  EXPECT_EQ(tuning.TileFor(1, 9, 32), Block(1, 4, 1, 64, 0, 1));
}

TEST(TuningTest, WhereMultiprocessorsAreKnownAllOfThemAreBusy) {
  const Tuning tuning =
      DeriveTuning({.most_group_items = 1024, .shared_bytes = 200 << 10, .multiprocessors = 100});
  EXPECT_EQ(tuning.busy_items, 25'600);
  const auto tile = [&](int64_t rows, int64_t columns, int64_t inner, int64_t count = 1) {
    TileShape shape = tuning.TileFor(rows, inner, 32, columns, inner, count);
    // Items of 64 sums are as good as two, but each multiprocessor has a group.
    const bool has_many_sums = shape.depth > 0 && shape.rows * shape.columns() == 64;
    const int counted = has_many_sums
                            ? std::max(shape.group_size, std::min(2 * shape.group_size, 256))
                            : shape.group_size;
    EXPECT_EQ(shape.busy_groups, 25'600 / counted);
    shape.busy_groups = 0;
    return shape;
  };
  // Large blocks where that leaves enough of them, be it by shares of their depth.
  EXPECT_EQ(tile(4096, 4096, 64), Block(8, 8, 16, 16, 16, 1));
  EXPECT_EQ(tile(512, 512, 64), Block(4, 4, 16, 8, 16, 1));
  EXPECT_EQ(tile(512, 512, 4096), Block(8, 8, 16, 16, 16, 1));
  // Many products side by side are enough of them, too.
  EXPECT_EQ(tile(512, 512, 64, /*count=*/36), Block(8, 8, 16, 16, 16, 1));
  EXPECT_EQ(tile(64, 64, 64), Block(4, 4, 16, 8, 16, 1));
  EXPECT_EQ(tile(64, 64, 64, /*count=*/400), Block(8, 8, 8, 8, 16, 1));
  // Of few rows, more items for fewer columns.
  EXPECT_EQ(tile(1, 100'000, kDeep), Block(1, 4, 1, 16, 0, 32));
  EXPECT_EQ(tile(1, 1000, kDeep), Block(1, 4, 1, 4, 0, 128));
  EXPECT_EQ(tile(8, 1000, kDeep), Block(8, 4, 1, 4, 0, 64));
  EXPECT_EQ(tile(1, 1000, 9), Block(1, 4, 1, 64, 0, 1));
  // A rule of the device's own.
  Tuning measured = tuning;
  ASSERT_TRUE(AddRules("a, busy, 640\n", "a", measured).ok());
  EXPECT_EQ(measured.TileFor(512, 64, 32, 512, 64).busy_groups, 640 / 256);
}

// Convolutions of the layers of small networks, on a GPU of 16 multiprocessors.
TEST(TuningTest, ItemsOfManySumsAreBusySooner) {
  const Tuning tuning =
      DeriveTuning({.most_group_items = 1024, .shared_bytes = 48 << 10, .multiprocessors = 16});
  const auto tile = [&](int64_t rows, int64_t columns, int64_t inner, int64_t count = 1) {
    TileShape shape = tuning.TileFor(rows, 1, 32, columns, inner, count);
    shape.busy_groups = 0;
    return shape;
  };
  EXPECT_EQ(tile(32, 28 * 28, 288), Block(8, 8, 4, 16, 16, 1));
  EXPECT_EQ(tile(128, 14 * 14, 1152), Block(8, 8, 16, 16, 16, 1));
  EXPECT_EQ(tile(128, 7 * 7, 1152), Block(8, 8, 8, 8, 16, 1));
  // Depths that leave nothing to share out have smaller blocks still.
  EXPECT_EQ(tile(128, 7 * 7, 64), Block(4, 4, 16, 8, 16, 1));
  // Winograd's products of an image of 14 x 14 have 16 columns, and so have blocks.
  EXPECT_EQ(tile(256, 16, 64, /*count=*/36), Block(8, 4, 16, 4, 16, 1));
  EXPECT_EQ(tile(64, 16, 64, /*count=*/36), Block(4, 4, 16, 4, 16, 1));
}

TEST(TuningTest, BlocksFitWhatAGroupMayHave) {
  for (const int64_t most_items : {1, 2, 16, 100, 128, 1024}) {
    for (const int64_t shared_bytes : {4, 16, 32, 100}) {
      const Tuning tuning =
          DeriveTuning({.most_group_items = most_items, .shared_bytes = shared_bytes << 10});
      for (const int64_t rows : {1, 3, 8, 9, 17, 1000}) {
        for (const int bits : {32, 64}) {
          const TileShape tile = tuning.TileFor(rows, kDeep, bits);
          EXPECT_LE(tile.group_size, most_items);
          EXPECT_EQ(tile.group_size,
                    tile.is_of_group() ? tile.item_rows * tile.item_columns * tile.parts : 1);
          const int64_t sums =
              tile.parts == 1 ? 0 : tile.parts * tile.block_rows() * tile.block_columns();
          const int64_t pieces = 2 * tile.depth * (tile.block_rows() + tile.block_columns());
          EXPECT_LE((sums + pieces) * (bits / 8), std::min<int64_t>(shared_bytes, 32) << 10);
          EXPECT_EQ(tile.depth == 0 ? 0 : tile.group_size % tile.depth, 0);
        }
      }
    }
  }
}

TEST(TuningTest, TheFirstRuleThatFitsCounts) {
  Tuning tuning;
  ASSERT_TRUE(AddRules("# a comment\n\n"
                       "cpu, tile, 1, 1, 4, 512, 8\r\n"
                       "gpu, tile, 0, 5, 5, 32, 64\n"
                       "cpu,tile,4,4,2,256,1\n"
                       "cpu, block, 100, 64, 2, 3, 4, 8, 4, 1\n"
                       "cpu, tile, 0, 8, 3, 512, 2\n"
                       "cpu, run, 128, 32",
                       "cpu", tuning)
                  .ok());
  EXPECT_EQ(tuning.TileFor(1, kDeep, 32), (TileShape{1, 4, 16, 8}));
  EXPECT_EQ(tuning.TileFor(4, kDeep, 32), (TileShape{4, 2, 8, 1}));
  EXPECT_EQ(tuning.TileFor(5, kDeep, 64), (TileShape{8, 3, 8, 2}));
  TileShape block = Block(2, 3, 4, 8, 4, 1);
  block.are_items_lanes = false;
  EXPECT_EQ(tuning.TileFor(100, 64, 32), block);
  EXPECT_EQ(tuning.TileFor(100, 65, 32), (TileShape{8, 3, 16, 2}));
  EXPECT_EQ(tuning.run_length, 128);
  EXPECT_EQ(tuning.run_group_size, 32);
}

TEST(TuningTest, SumsAreSplitWhereARuleSaysSo) {
  Tuning tuning = DeriveTuning({.most_group_items = 1024});
  Capabilities capabilities;
  tuning.Describe(capabilities);
  EXPECT_EQ(capabilities.matrix_units.split_depth, 0);
  ASSERT_TRUE(AddRules("a, 3xtf32, 64\nb, 3xtf32, 32\n", "a", tuning).ok());
  tuning.Describe(capabilities);
  EXPECT_EQ(capabilities.matrix_units.split_depth, 64);
}

TEST(TuningTest, NamesOfDevicesHaveCommasToo) {
  Tuning tuning;
  ASSERT_TRUE(AddRules("llvmpipe, tile, 0, 5, 5, 32, 64\n"
                       "llvmpipe (LLVM 15, 256 bits), tile, 0, 8, 3, 512, 2\n"
                       "llvmpipe (LLVM 15, 256 bits) 2, tile, 0, 4, 4, 512, 2\n",
                       "llvmpipe (LLVM 15, 256 bits)", tuning)
                  .ok());
  ASSERT_EQ(tuning.tiles.size(), 1U);
  EXPECT_EQ(tuning.TileFor(5, kDeep, 32), (TileShape{8, 3, 16, 2}));
}

TEST(TuningTest, ALineThatSaysNothingIsNamed) {
  for (const std::string line :
       {"cpu, tile, 1, 1, 4, 512", "cpu, tile, 0, 8, 2, 500, 1", "cpu, tile, 0, 0, 2, 512, 1",
        "cpu, tile, 0, 8, 9, 512, 1", "cpu, run, 0, 1", "cpu, run, 8, x", "cpu, walk, 8, 8",
        "cpu, run, 8, 8, 8", "cpu, block, 0, 0, 4, 4, 8, 16, 16",
        "cpu, block, 0, 0, 4, 4, 8, 12, 16, 1", "cpu, block, 0, 0, 4, 4, 8, 16, 16, 2",
        "cpu, 3xtf32, 31", "cpu, 3xtf32", "cpu, block, 0, 0, 4, 4, 1, 8, 16, 1",
        "cpu, block, 0, 0, 4, 4, 64, 32, 16, 1"}) {
    Tuning tuning;
    const base::Status status = AddRules("gpu, nothing\n" + line, "cpu", tuning);
    ASSERT_FALSE(status.ok()) << line;
    EXPECT_EQ(status.sentence(), "A table of tiles has a line that says nothing: " + line);
    EXPECT_TRUE(tuning.tiles.empty());
  }
}

TEST(TuningTest, WhatWasMeasuredOnTheMachineComesFirst) {
  std::string name = (std::filesystem::temp_directory_path() / "tuning.XXXXXX").string();
  const std::filesystem::path folder = mkdtemp(name.data());
  const std::filesystem::path file = folder / "tiles.csv";
  constexpr std::string_view kTable = "a device, tile, 0, 5, 2, 256, 1\n";
  const DeviceLimits limits{.is_processor = true, .vector_bits = 256, .most_group_items = 64};
  const TileShape derived = FindTuning(limits, "unknown", kTable, file).TileFor(100, kDeep, 32);
  EXPECT_EQ(derived, DeriveTuning(limits).TileFor(100, kDeep, 32));
  const auto find = [&] { return FindTuning(limits, "a device", kTable, file); };
  EXPECT_EQ(find().TileFor(100, kDeep, 32), (TileShape{5, 2, 8, 1}));
  EXPECT_EQ(find().run_length, DeriveTuning(limits).run_length);
  std::ofstream(file) << "a device, tile, 0, 3, 3, 128, 1\nanother, tile, 0, 2, 2, 128, 1\n"
                         "a device, run, 7, 9\n";
  EXPECT_EQ(find().TileFor(100, kDeep, 32), (TileShape{3, 3, 4, 1}));
  EXPECT_EQ(find().run_length, 7);
  std::ofstream(file) << "a device, tile, none\n";
  EXPECT_EQ(find().TileFor(100, kDeep, 32), (TileShape{5, 2, 8, 1}));
  std::filesystem::remove_all(folder);
}

TEST(TuningTest, AProcessorMayBeTunedAsAGpu) {
  const DeviceLimits processor{.is_processor = true, .vector_bits = 512, .most_group_items = 256};
  ASSERT_EQ(setenv("ONNXIFI_TUNING", "gpu", 1), 0);
  const Tuning gpu = FindTuning(processor, "cpu", "cpu, run, 128, 32", {});
  ASSERT_EQ(setenv("ONNXIFI_TUNING", "processor", 1), 0);
  const Tuning same = FindTuning({.vector_bits = 512}, "gpu", "gpu, run, 7, 32", {});
  unsetenv("ONNXIFI_TUNING");
  EXPECT_EQ(gpu.run_length, 1);
  EXPECT_FALSE(gpu.is_float64_fast);
  EXPECT_TRUE(same.is_float64_fast);
  TileShape few = gpu.TileFor(5, kDeep, 32);
  EXPECT_EQ(few.busy_groups, 16);
  few.busy_groups = 0;
  EXPECT_EQ(few, Block(8, 4, 1, 16, 0, 16));
  EXPECT_EQ(same.run_length, 64);
  EXPECT_EQ(same.TileFor(5, kDeep, 32), (TileShape{8, 2, 16, 1}));
}

}  // namespace
}  // namespace onnxifi::codegen
