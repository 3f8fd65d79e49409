// SPDX-License-Identifier: Apache-2.0
//
// Tuning: how kernels are cut for a device: as a table of measured devices says (a backend's own,
// and what was measured on this machine), else as what the device reports of itself suggests. The
// first rule that fits counts. A line per rule, its fields between commas:
//
//   device, tile, rows up to (0: any), rows, vectors, bits of a vector, items of a group
//       the block of outputs that one item sums, for products of that many rows
//   device, block, rows up to, depth up to (0: any), rows, columns, items along rows, along
//   columns,
//       depth, parts
//       the same of an item of a group that sums a block together; depth and parts are TileShape's
//   device, run, neighbours that one item computes in a row, items of a group
//   device, busy, items
//       that sum blocks of few outputs at once where the device is busy (items of 64 outputs count
//       twice); with fewer, the depth of blocks is cut
//   device, 3xtf32, depth from
//       sums of float32 that deep are three products of TF32, on matrix units of fragments; not
//       below kMinSplitDepth

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_TUNING_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_TUNING_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/codegen/tiled_product.h"

namespace onnxifi::codegen {

struct Tuning {
  struct Tile {
    int64_t most_rows = 0;  // 0: any
    int rows = 1;
    int vectors = 1;
    int vector_bits = 32;
    int group_size = 1;
    // Of a group that sums together, as TileShape has them; `depth` for sums of 32 bits.
    int64_t most_depth = 0;  // 0: any
    int item_rows = 0;
    int item_columns = 0;
    int depth = 0;
    int parts = 1;
    // One of several that would do: the one counts that computes least beside the outputs.
    bool is_alternative = false;
  };
  std::vector<Tile> tiles;
  bool are_items_lanes = false;  // of every tile
  // Of few sums, that sum blocks at once; 0: nobody knows. Items of many sums count twice.
  int64_t busy_items = 0;
  int64_t shared_bytes = int64_t{32} << 10;  // that a group may have
  // As Capabilities has them.
  int run_length = 1;
  int run_group_size = 64;
  int row_parts = 16;
  int byte_array_padding = 0;
  int row_group_size = 64;
  int64_t row_shared_bytes = int64_t{16} << 10;
  int long_item_group_size = 64;
  bool is_float64_fast = false;
  int64_t split_depth = 0;  // as MatrixUnits has it

  // In shorter sums the parts' errors are more than twice those of plain multiply-adds.
  static constexpr int kMinSplitDepth = 32;
  static constexpr int64_t kManyColumns = int64_t{1} << 20;  // where nobody knows how many
  // A shorter part of the depth is not worth a group of its own.
  static constexpr int64_t kMinBusyDepth = 64;

  // The tile for so many rows of so deep sums of so many bits, `inner` deep if they are shared out,
  // where there are `count` such products side by side.
  TileShape TileFor(int64_t rows, int64_t depth, int sum_bits, int64_t columns = kManyColumns,
                    int64_t inner = 1, int64_t count = 1) const;
  // How many such groups keep the device busy; 0: nobody knows.
  int64_t BusyGroups(const TileShape& tile) const;
  double Busy(const TileShape& tile, int64_t rows, int64_t columns, int64_t inner,
              int64_t count) const;
  // Tells the generators how items are cut.
  void Describe(Capabilities& capabilities) const;
};

// What a device reports of itself.
struct DeviceLimits {
  // Its compiler makes vectors of an item's loops; elsewhere items themselves are the lanes.
  bool is_processor = false;
  int vector_bits = 32;  // of the vectors that it computes floats in
  int64_t most_group_items = 1;
  int64_t shared_bytes = int64_t{32} << 10;  // of a group
  bool is_float64_fast = false;              // at half the rate of float32 or more
  int64_t multiprocessors = 0;               // each runs several groups at once; 0: unknown
};

// For a device that nobody measured. On a processor a block has two vectors of columns, and so many
// rows, at most 8, that its sums, a row of columns and one element of a row fit the registers: 32
// of 512 bits, 16 of fewer. Elsewhere a group of 64 items sums 64 x 64 outputs from shared memory,
// of which it takes up to 32 KiB, 8 x 8 an item; as many in blocks of 32 or 16 rows, or 4 x 4 an
// item, or in blocks of 16 columns, 8 x 4 or 4 x 4 an item, where fewer of them are none; and up to
// 8 rows without shared memory, 4 columns an item. On a device of smaller groups blocks are
// smaller. Where the number of multiprocessors is known, blocks share out their depth until all are
// busy, take up to 48 KiB, and are as large as 128 x 128 where that leaves enough of them; and of
// few rows groups are larger the fewer columns there are.
Tuning DeriveTuning(const DeviceLimits& limits);

// The rules of `table` for the device `name`, in front of those that `tuning` has. Lines of other
// devices, comments and empty lines are skipped; INVALID_PROPERTY with the line that says nothing.
base::Status AddRules(std::string_view table, std::string_view name, Tuning& tuning);

// ONNXIFI_TUNING, "gpu" or "processor", makes every device one of that kind, and no table counts:
// so the kernels of a GPU are tested where there is none. Such a GPU is slow in float64.
//
// The derived rules, before them those of `table` for the device `name`, and before those the ones
// of `file`, which may be absent; one that says nothing is as good as absent.
Tuning FindTuning(const DeviceLimits& limits, std::string_view name, std::string_view table,
                  const std::filesystem::path& file);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_TUNING_H_
