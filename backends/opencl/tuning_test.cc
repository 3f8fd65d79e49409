// SPDX-License-Identifier: Apache-2.0
//
// The table of tiles: which rule counts, and what is no rule. Needs no device.

#include "backends/opencl/tuning.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "backends/opencl/kernels.h"

namespace onnxifi::opencl {
namespace {

using codegen::TileShape;

TEST(TuningTest, TheEmbeddedTableHasATileForEveryRowCountOfEveryClass) {
  for (const char* device_class : {"cpu", "gpu"}) {
    Tuning tuning;
    ASSERT_TRUE(AddRules(kTuningTable, device_class, tuning).ok());
    ASSERT_FALSE(tuning.tiles.empty());
    EXPECT_EQ(tuning.tiles.back().most_rows, 0) << "More rows than any rule has fit none.";
  }
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
  const Tuning embedded = FindTuning("cpu", "a device", folder);
  std::ofstream(folder / kTuningFile) << "a device, tile, 0, 3, 3, 128, 1\nanother, tile, 0, 2, 2, "
                                         "128, 1\na device, run, 7, 9\n";
  const Tuning measured = FindTuning("cpu", "a device", folder);
  EXPECT_EQ(measured.TileFor(100, 32), (TileShape{3, 3, 4, 1}));
  EXPECT_EQ(measured.run_length, 7);
  EXPECT_EQ(measured.tiles.size(), embedded.tiles.size() + 1);
  std::ofstream(folder / kTuningFile) << "a device, tile, none\n";
  EXPECT_EQ(FindTuning("cpu", "a device", folder).TileFor(100, 32), embedded.TileFor(100, 32));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace onnxifi::opencl
