// SPDX-License-Identifier: Apache-2.0
//
// Tuning: how kernels are cut for a device, from a table: tuning.csv, embedded at build, and what
// was measured on this machine. The first rule that fits counts.

#ifndef ONNXIFI_BACKENDS_OPENCL_TUNING_H_
#define ONNXIFI_BACKENDS_OPENCL_TUNING_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/codegen/tiled_product.h"

namespace onnxifi::opencl {

struct Tuning {
  struct Tile {
    int64_t most_rows = 0;  // 0: any
    int rows = 1;
    int vectors = 1;
    int vector_bits = 32;
    int group_size = 1;
  };
  std::vector<Tile> tiles;
  int run_length = 1;
  int run_group_size = 64;

  // The tile for so many rows of sums of so many bits.
  codegen::TileShape TileFor(int64_t rows, int sum_bits) const;
};

// The rules of `table` for `device_class`, in front of those that `tuning` has. Lines of other
// classes, comments and empty lines are skipped; INVALID_PROPERTY with the line that says nothing.
base::Status AddRules(std::string_view table, std::string_view device_class, Tuning& tuning);

// The embedded rules for "cpu" or "gpu", and before them those in `folder` (may be empty) for the
// device `name`. A file that cannot be read or says nothing is as good as absent.
Tuning FindTuning(std::string_view device_class, std::string_view name,
                  const std::filesystem::path& folder);

// In a cache folder.
inline constexpr const char kTuningFile[] = "opencl-tuning.csv";

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_TUNING_H_
