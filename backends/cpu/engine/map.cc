// SPDX-License-Identifier: Apache-2.0
//
// Map: one pass over memory for the whole expression. Every tile is on its own, so the order of
// axes is free: the first write's.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/reference/scratch.h"
#include "backends/cpu/engine/axis_tables.h"
#include "backends/cpu/engine/byte_function.h"
#include "backends/cpu/engine/frame.h"
#include "backends/cpu/engine/gathered_elements.h"
#include "backends/cpu/engine/recipe.h"
#include "backends/cpu/engine/row_loads.h"
#include "backends/cpu/engine/transposed_copy.h"
#include "backends/cpu/engine/weighted_points.h"
#include "backends/cpu/engine/weighted_rows.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::engine {
namespace {

struct MapCode {
  Code elements;
  // The same in parts, where rows can be loaded: what is computed once per row, what is computed
  // once for all rows, and elements to which their roots come as kAccumulator.
  struct ByRows {
    Code rows;
    Code columns;
    Code elements;
  };
  std::optional<ByRows> by_rows;
  int row_axis = 0;
  std::shared_ptr<const WeightedRows> weighted_rows = nullptr;
  std::shared_ptr<const Code> table_coordinates = nullptr;

  static MapCode Compile(const program::ExprPool& pool, const program::Step& step, LoopSet loops) {
    const program::ExprIds& roots = step.As<program::Map>()->roots;
    MapCode code{Code::Compile(pool, roots, loops), std::nullopt, 0};
    code.row_axis = RowAxis(step);
    code.weighted_rows = FindWeightedRows(pool, step, loops);
    code.table_coordinates = FindTableCoordinates(pool, step, loops);
    if (const std::optional<RowLoads> loads = FindRowLoads(pool, step, code.row_axis)) {
      code.by_rows = {Code::Compile(pool, loads->coordinates, loops),
                      Code::Compile(pool, loads->columns, loops),
                      Code::CompileByRows(pool, roots, loops, *loads, code.row_axis)};
    }
    return code;
  }
};

// Whether rows are long enough, and along the innermost axis that is written.
bool HasRows(const MapCode& code, const device::BoundStep& step) {
  constexpr int64_t kShortest = 8;
  if (!code.by_rows || step.domain[static_cast<size_t>(code.row_axis)] < kShortest) return false;
  const int rank = static_cast<int>(step.domain.size());
  const Writer writer(step.writes, rank);
  return Grid::SortedAxes(writer.first_form(), 0, rank).back() == code.row_axis;
}

// As many lanes as registers have room for, since every tile costs something. Constants fill none.
int64_t LanesOfTile(const Code& code, int64_t least) {
  constexpr int64_t kRegisterBytes = int64_t{1} << 15;
  constexpr int64_t kMaxFactor = 4;
  constexpr int64_t kNarrowBytes = 16;  // times `least`, of registers of narrow lanes
  std::vector<bool> is_counted(code.slots().size(), false);
  int64_t lane_bytes = 1;
  int64_t widest = 1;
  for (const Code::Instruction& instruction : code.varying()) {
    const int slot = code.values()[static_cast<size_t>(instruction.result)].slot;
    if (slot < 0 || is_counted[static_cast<size_t>(slot)]) continue;
    is_counted[static_cast<size_t>(slot)] = true;
    const int64_t bytes = code.slots()[static_cast<size_t>(slot)].lane_bytes;
    lane_bytes += bytes;
    widest = std::max(widest, bytes);
  }
  const int64_t most = std::max(kMaxFactor, kNarrowBytes / widest);
  const int64_t factor = std::clamp<int64_t>(kRegisterBytes / (least * lane_bytes), 1, most);
  return factor * least;
}

// How many lanes a tile may have: one row's, where an operand has one number per row, so that fused
// operations take it as a scalar. No limit where other loops need it spread, or rows are short.
int64_t LanesOfRow(const Grid& grid, const Code& code, std::span<const Access> accesses) {
  constexpr int64_t kShort = 512;
  const int last = grid.rank() - 1;
  const auto spreads = [](const Code::Instruction& instruction) {
    return instruction.kind == Code::Kind::kLoop && instruction.inputs.size() > 1 &&
           instruction.operations.empty();
  };
  if (last < 1 || grid.extent(last) < kShort || std::ranges::any_of(code.varying(), spreads)) {
    return std::numeric_limits<int64_t>::max();
  }
  const auto is_per_row = [&](const Access& access) {
    const auto is_moved = [&](int axis) {
      return access.form.steps[static_cast<size_t>(axis)] != 0;
    };
    if (access.type != tensor::ElementType::kFloat32 || !access.guards.empty() || is_moved(last)) {
      return false;
    }
    for (int axis = 0; axis < last; ++axis) {
      if (is_moved(axis) && grid.extent(axis) > 1) return true;
    }
    return false;
  };
  return std::any_of(accesses.begin(), accesses.end(), is_per_row)
             ? grid.extent(last)
             : std::numeric_limits<int64_t>::max();
}

class BoundMap final : public device::BoundKernel {
 public:
  BoundMap(std::shared_ptr<const MapCode> code, const device::BoundStep& step, Runtime& runtime)
      : code_(std::move(code)),
        by_rows_(HasRows(*code_, step) ? &*code_->by_rows : nullptr),
        bound_(by_rows_ != nullptr ? by_rows_->elements : code_->elements, step),
        writer_(step.writes, static_cast<int>(step.domain.size())),
        runtime_(runtime) {
    is_empty_ = tensor::ElementCount(step.domain) == 0;
    if (is_empty_) return;
    grid_ = Grid(step.domain);
    std::vector<LinearForm*> forms;
    bound_.AppendForms(forms);
    writer_.AppendForms(forms);
    if (by_rows_ != nullptr) {
      rows_.emplace(by_rows_->rows, step);
      rows_->AppendForms(forms);
      columns_.emplace(by_rows_->columns, step);
      columns_->AppendForms(forms);
    }
    grid_.Permute(Grid::SortedAxes(writer_.first_form(), 0, grid_.rank()), forms);
    int row_axis[] = {grid_.rank() - 1};
    grid_.Join(by_rows_ != nullptr ? std::span<int>(row_axis) : std::span<int>(), forms);
    const int64_t lanes = LanesOfTile(bound_.code(), runtime.settings().tile_lanes);
    const int transposed =
        by_rows_ != nullptr ? -1 : FindTransposedAxis(grid_, bound_.accesses(), lanes);
    if (transposed >= 0) {
      // Longer runs on both sides: every one of them begins on another page.
      constexpr int64_t kTilesOfTransposed = 8;
      grid_.TileTransposed(transposed, kTilesOfTransposed * lanes);
    } else {
      const int64_t most =
          by_rows_ != nullptr ? lanes : LanesOfRow(grid_, bound_.code(), bound_.accesses());
      grid_.Tile(0, grid_.rank(), std::min(lanes, most));
    }
    tile_lanes_ = grid_.TileLanes(0, grid_.rank());
    bound_.LayOut(grid_, tile_lanes_);
    writer_.LayOut(grid_, transposed >= 0 ? runtime.settings().streamed_transposed_bytes
                                          : runtime.settings().streamed_bytes);
    if (rows_) {
      Grid rows_grid = grid_;
      rows_grid.Tile(grid_.rank() - 1, grid_.rank(), 1);
      tile_rows_ = rows_grid.TileLanes(0, grid_.rank());
      rows_->LayOut(rows_grid, tile_rows_);
      Grid columns_grid = grid_;
      columns_grid.Tile(0, grid_.rank() - 1, 1);
      columns_->LayOut(columns_grid, grid_.tile_extent(grid_.rank() - 1));
    }
    if (columns_) KeepColumns();
    runtime.scratch().Reserve(bound_.scratch_bytes() + writer_.scratch_bytes() +
                              (rows_ ? rows_->scratch_bytes() + columns_->scratch_bytes() : 0));
  }

  std::string Detail() const override { return processor::VectorName(); }

  base::Status Run(device::Addresses addresses) const override {
    if (is_empty_) return base::Ok();
    const int64_t cost = tile_lanes_ * (bound_.code().cost() + 100);
    return runtime_.For(grid_.TileCount(0, grid_.rank()), cost,
                        [&](int64_t begin, int64_t end, std::byte* scratch) {
                          RunTiles(addresses, begin, end, scratch);
                        });
  }

 private:
  void RunTiles(device::Addresses addresses, int64_t begin, int64_t end, std::byte* scratch) const {
    Frame frame(bound_, addresses, scratch, tile_lanes_);
    scratch += bound_.scratch_bytes();
    std::optional<Frame> rows, columns;
    if (rows_) {
      rows.emplace(*rows_, addresses, scratch, tile_rows_);
      scratch += rows_->scratch_bytes();
      columns.emplace(*columns_, addresses, scratch, grid_.tile_extent(grid_.rank() - 1));
      scratch += columns_->scratch_bytes();
    }
    Box columns_box;
    std::byte* writer_scratch = scratch;
    Box box;
    grid_.MoveTo(0, grid_.rank(), begin, box);
    for (int64_t tile = begin; tile < end; ++tile) {
      if (rows) {
        if (kept_columns_.empty()) RunColumns(*columns, box, columns_box);
        RunRows(*rows, *columns, box, frame);
      }
      writer_.Run(frame, box, addresses, writer_scratch);
      grid_.MoveOn(0, grid_.rank(), box);
    }
    writer_.Finish();
  }

  // Coordinates along the rows that follow from nothing but their number are computed once.
  void KeepColumns() {
    constexpr int64_t kMaxBytes = 1 << 20;
    const int last = grid_.rank() - 1;
    const size_t count = columns_->code().roots().size();
    const int64_t extent = grid_.extent(last);
    if (count == 0 || columns_->ReadsMemory() ||
        extent > kMaxBytes / static_cast<int64_t>(count * sizeof(int64_t))) {
      return;
    }
    constexpr size_t kLine = 64;
    std::vector<std::byte> memory(static_cast<size_t>(columns_->scratch_bytes()) + kLine);
    auto* const scratch = reinterpret_cast<std::byte*>(
        (reinterpret_cast<uintptr_t>(memory.data()) + kLine - 1) / kLine * kLine);
    const int64_t part = grid_.tile_extent(last);
    Frame columns(*columns_, /*addresses=*/{}, scratch, part);
    kept_columns_.resize(count, std::vector<int64_t>(static_cast<size_t>(extent)));
    Box box;
    box.rank = grid_.rank();
    box.extents.fill(1);
    for (int64_t begin = 0; begin < extent; begin += part) {
      box.begin[static_cast<size_t>(last)] = begin;
      box.extents[static_cast<size_t>(last)] = box.lanes = std::min(part, extent - begin);
      columns.Run(box);
      for (size_t k = 0; k < count; ++k) {
        std::memcpy(&kept_columns_[k][static_cast<size_t>(begin)],
                    columns.root(static_cast<int>(k)),
                    static_cast<size_t>(box.lanes) * sizeof(int64_t));
      }
    }
  }

  const std::byte* ColumnOf(size_t k, const Frame& columns, const Box& box) const {
    if (kept_columns_.empty()) return columns.root(static_cast<int>(k));
    return reinterpret_cast<const std::byte*>(
        &kept_columns_[k][static_cast<size_t>(box.begin[static_cast<size_t>(box.rank - 1)])]);
  }

  // Computes the coordinates of the rows in a tile.
  void RunRows(Frame& rows, const Frame& columns, const Box& box, Frame& elements) const {
    const int last = box.rank - 1;
    Box row_box = box;
    row_box.begin[last] = 0;
    row_box.extents[last] = 1;
    row_box.lanes = box.lanes / box.extents[last];
    rows.Run(row_box);
    const size_t row_count = rows.root_count();
    const size_t column_count = columns.root_count();
    elements.Attach(program::ExprOp::kAccumulator, [&](uint64_t k) -> std::byte* {
      const std::byte* numbers = nullptr;  // of the coordinate along a row nothing is read
      if (k < row_count) {
        numbers = rows.root(static_cast<int>(k));
      } else if (k < row_count + column_count) {
        numbers = ColumnOf(k - row_count, columns, box);
      }
      return const_cast<std::byte*>(numbers);
    });
  }

  // Computes the coordinates along the rows of a tile, unless `done` was a tile of the same part of
  // them.
  static void RunColumns(Frame& columns, const Box& box, Box& done) {
    if (columns.root_count() == 0) return;
    const int last = box.rank - 1;
    if (done.rank == box.rank && done.begin[last] == box.begin[last] &&
        done.extents[last] == box.extents[last]) {
      return;
    }
    done = box;
    for (int axis = 0; axis < last; ++axis) {
      done.begin[axis] = 0;
      done.extents[axis] = 1;
    }
    done.lanes = box.extents[last];
    columns.Run(done);
  }

  // The axis along which a read is contiguous that is not so along the last one, or -1. None where
  // a tile of `lanes` holds all of both.
  static int FindTransposedAxis(const Grid& grid, std::span<const Access> accesses, int64_t lanes) {
    constexpr int64_t kShortest = 4;
    const int last = grid.rank() - 1;
    if (last < 1 || grid.extent(last) < kShortest) return -1;
    for (const Access& access : accesses) {
      const int64_t step = access.form.steps[last];
      if (access.buffer == program::kNoBuffer || step == 0 || step == 1 || step == -1) continue;
      for (int axis = last; axis-- > 0;) {
        if (access.form.steps[axis] == 1 && grid.extent(axis) >= kShortest) {
          if (grid.TileLanes(axis, grid.rank()) > lanes) return axis;
          break;
        }
      }
    }
    return -1;
  }

  const std::shared_ptr<const MapCode> code_;  // shared with the kernel
  const MapCode::ByRows* const by_rows_;       // null where elements are loaded one by one
  BoundCode bound_;
  std::optional<BoundCode> rows_, columns_;
  std::vector<std::vector<int64_t>> kept_columns_;  // by root of columns_; empty: none are kept
  Writer writer_;
  Grid grid_;
  int64_t tile_lanes_ = 0;
  int64_t tile_rows_ = 0;
  bool is_empty_;
  Runtime& runtime_;
};

class MapKernel final : public device::Kernel {
 public:
  MapKernel(std::shared_ptr<const MapCode> code, Runtime& runtime)
      : code_(std::move(code)), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    const auto run = [&](const device::BoundStep& of, device::Addresses addresses) {
      return BoundMap(code_, of, runtime_).Run(addresses);
    };
    std::unique_ptr<device::BoundKernel> bound;
    ONNXIFI_RETURN_IF_ERROR(reference::Guarded([&]() -> base::Status {
      ONNXIFI_ASSIGN_OR_RETURN(
          bound, BindByteFunction(step, constants, code_->elements.cost(), run, runtime_));
      if (bound == nullptr && code_->weighted_rows) {
        bound = BindWeightedRows(code_->weighted_rows, step, runtime_);
      }
      if (bound == nullptr && code_->weighted_rows) {
        bound = BindWeightedPoints(code_->weighted_rows, step, runtime_);
      }
      if (bound == nullptr) bound = BindGatheredElements(step, runtime_);
      const auto make = [&] { return std::make_unique<BoundMap>(code_, step, runtime_); };
      if (bound == nullptr && code_->table_coordinates) {
        bound = BindAxisTables(code_->table_coordinates, step, make, runtime_);
      }
      if (bound == nullptr) bound = BindTransposedCopy(code_->elements, step, runtime_);
      if (bound == nullptr) bound = make();
      return base::Ok();
    }));
    return bound;
  }

 private:
  const std::shared_ptr<const MapCode> code_;  // shared with what it bound
  Runtime& runtime_;
};

}  // namespace

std::unique_ptr<device::Kernel> BuildMap(const device::Facts& facts, Runtime& runtime) {
  return std::make_unique<MapKernel>(
      std::make_shared<const MapCode>(
          MapCode::Compile(facts.program.exprs, facts.step, runtime.settings().loops)),
      runtime);
}

}  // namespace onnxifi::engine
