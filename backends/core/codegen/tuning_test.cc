// SPDX-License-Identifier: Apache-2.0
//
// The table of tiles: which rule counts, and what is no rule. Needs no device.

#include "backends/core/codegen/tuning.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace onnxifi::codegen {
namespace {

TEST(TuningTest, ADeviceThatNobodyMeasuredGetsWhatItsLimitsSuggest) {
  const Tuning wide = DeriveTuning({.is_processor = true, .vector_bits = 512});
  EXPECT_EQ(wide.TileFor(1, 32), (TileShape{1, 4, 16, 4}));
  EXPECT_EQ(wide.TileFor(3, 32), (TileShape{4, 2, 16, 1}));
  EXPECT_EQ(wide.TileFor(5, 32), (TileShape{8, 2, 16, 1}));
  EXPECT_EQ(wide.TileFor(5, 64), (TileShape{8, 2, 8, 1}));
  for (const int bits : {128, 256}) {
    const Tuning narrow = DeriveTuning({.is_processor = true, .vector_bits = bits});
    // 12 sums, 2 vectors of columns and an element fit 16 registers; another row does not.
    EXPECT_EQ(narrow.TileFor(100, 32), (TileShape{6, 2, bits / 32, 1}));
    EXPECT_EQ(narrow.run_length, 64);
  }
  const Tuning items = DeriveTuning({.vector_bits = 128, .most_group_items = 1024});
  EXPECT_EQ(items.TileFor(1, 32), (TileShape{1, 4, 1, 64, true}));
  EXPECT_EQ(items.TileFor(2, 32), (TileShape{4, 4, 1, 64, true}));
  EXPECT_EQ(items.run_length, 1);
  EXPECT_EQ(DeriveTuning({.most_group_items = 16}).TileFor(2, 32), (TileShape{4, 4, 1, 16, true}));
}

TEST(TuningTest, TheFirstRuleThatFitsCounts) {
  Tuning tuning;
  ASSERT_TRUE(AddRules("# a comment\n\n"
                       "cpu, tile, 1, 1, 4, 512, 8\r\n"
                       "gpu, tile, 0, 5, 5, 32, 64\n"
                       "cpu,tile,4,4,2,256,1\n"
                       "cpu, tile, 0, 8, 3, 512, 2\n"
                       "cpu, run, 128, 32",
                       "cpu", tuning)
                  .ok());
  EXPECT_EQ(tuning.TileFor(1, 32), (TileShape{1, 4, 16, 8}));
  EXPECT_EQ(tuning.TileFor(4, 32), (TileShape{4, 2, 8, 1}));
  EXPECT_EQ(tuning.TileFor(5, 64), (TileShape{8, 3, 8, 2}));
  EXPECT_EQ(tuning.run_length, 128);
  EXPECT_EQ(tuning.run_group_size, 32);
}

TEST(TuningTest, ALineThatSaysNothingIsNamed) {
  for (const std::string line :
       {"cpu, tile, 1, 1, 4, 512", "cpu, tile, 0, 8, 2, 500, 1", "cpu, tile, 0, 0, 2, 512, 1",
        "cpu, tile, 0, 8, 9, 512, 1", "cpu, run, 0, 1", "cpu, run, 8, x", "cpu, walk, 8, 8",
        "cpu, run, 8, 8, 8"}) {
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
  const TileShape derived = FindTuning(limits, "unknown", kTable, file).TileFor(100, 32);
  EXPECT_EQ(derived, DeriveTuning(limits).TileFor(100, 32));
  const auto find = [&] { return FindTuning(limits, "a device", kTable, file); };
  EXPECT_EQ(find().TileFor(100, 32), (TileShape{5, 2, 8, 1}));
  EXPECT_EQ(find().run_length, DeriveTuning(limits).run_length);
  std::ofstream(file) << "a device, tile, 0, 3, 3, 128, 1\nanother, tile, 0, 2, 2, 128, 1\n"
                         "a device, run, 7, 9\n";
  EXPECT_EQ(find().TileFor(100, 32), (TileShape{3, 3, 4, 1}));
  EXPECT_EQ(find().run_length, 7);
  std::ofstream(file) << "a device, tile, none\n";
  EXPECT_EQ(find().TileFor(100, 32), (TileShape{5, 2, 8, 1}));
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
  EXPECT_EQ(gpu.TileFor(5, 32), (TileShape{4, 4, 1, 64, true}));
  EXPECT_EQ(same.run_length, 64);
  EXPECT_EQ(same.TileFor(5, 32), (TileShape{8, 2, 16, 1}));
}

}  // namespace
}  // namespace onnxifi::codegen
