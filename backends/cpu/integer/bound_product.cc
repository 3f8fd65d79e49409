// SPDX-License-Identifier: Apache-2.0
//
// BindProduct: threads take chunks of rows, or parts of columns where rows are few. Of a chunk, the
// rows are gathered once. Tile by tile of columns, all sums of the chunk are computed and then go
// through the epilogue while they are in the L2 cache. Where that requantizes them and the result
// has columns side by side, blocks of sums go through it in the L1 cache.

#include "backends/cpu/integer/bound_product.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "backends/core/reference/column.h"
#include "backends/cpu/engine/frame.h"
#include "backends/cpu/engine/runtime.h"
#include "backends/cpu/integer/byte_packing.h"
#include "backends/cpu/integer/depthwise.h"
#include "backends/cpu/integer/grouped.h"
#include "backends/cpu/integer/requantize.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/transpose/transpose.h"

namespace onnxifi::integer {
namespace {

using base::Status;
using engine::Box;
using engine::Grid;

constexpr auto kInt = static_cast<int64_t>(sizeof(int32_t));
constexpr int64_t kLine = 64;
int64_t RoundUp(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// A zero point of the step: its view and the axes that it varies along.
struct ZeroPoint {
  ByteFactor factor;
  device::BoundView view;
  ZeroPointAxes axes;

  int32_t At(device::Addresses addresses, int64_t offset) const {
    return ZeroPointAt(factor, view, addresses[view.buffer], offset);
  }
};

class BoundProduct final : public device::BoundKernel {
 public:
  BoundProduct(ProductPlan plan, const device::BoundStep& step, runtime::PackedWeights packed,
               runtime::Runtime& runtime, engine::Runtime& engine_runtime)
      : plan_(std::move(plan)),
        a_(step.reads[0]),
        b_(step.reads[1]),
        geometry_(MakeGeometry(step, plan_.factors)),
        packed_(std::move(packed)),
        requantized_(FindRequantized(step)),
        bound_(plan_.epilogue, step),
        writer_(step.writes, static_cast<int>(step.domain.size())),
        runtime_(runtime),
        engine_(engine_runtime) {
    is_empty_ = tensor::ElementCount(step.domain) == 0;
    if (is_empty_) return;
    zero_points_[0] = MakeZeroPoint(plan_.factors.a, step, 0);
    zero_points_[1] = MakeZeroPoint(plan_.factors.b, step, 1);
    ChooseTiles(step);
    bound_.LayOut(grid_, grid_.TileLanes(0, grid_.rank()));
    writer_.LayOut(grid_, engine_.settings().streamed_bytes);
    LayOutScratch();
    const int64_t images = geometry_.reordered ? RoundUp(geometry_.reordered->size_bytes()) : 0;
    panels_at_ = images;
    terms_at_ = panels_at_ + (packed_ == nullptr ? RoundUp(WeightBytes(geometry_)) : 0);
    work_bytes_ = terms_at_ + TermCount() * kInt;
  }

  bool ReadsAtRun(int read) const override { return read != 1 || packed_ == nullptr; }

  std::string Detail() const override {
    return MultiplierName() +
           (geometry_.small_groups ? ", small groups side by side"
            : geometry_.depthwise  ? ", a kernel per channel"
                                   : "") +
           (IsWalked() ? " along rows" : "") +
           (geometry_.columns.pieces > 1 ? ", windows read in pieces" : "") +
           (requantized_ ? ", sums requantized at once" : "");
  }

  Status Run(device::Addresses addresses) const override {
    if (is_empty_) return base::Ok();
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease work,
                             runtime_.work_memory().Lend(work_bytes_));
    RunState run = {addresses, BytesAt(addresses, a_), nullptr, nullptr};
    if (geometry_.reordered) {
      Reorder(*geometry_.reordered, run.a, reinterpret_cast<uint8_t*>(work.data()));
      run.a = reinterpret_cast<const uint8_t*>(work.data());
    }
    run.panels = packed_ != nullptr ? packed_->data() : work.data() + panels_at_;
    if (packed_ == nullptr) {
      PackWeights(geometry_, plan_.factors, BytesAt(addresses, b_), work.data() + panels_at_,
                  runtime_.pool());
    }
    auto* terms = reinterpret_cast<int32_t*>(work.data() + terms_at_);
    if (geometry_.depthwise) {
      PrepareDepthwise(run, terms);
    } else if (FindColumnTerms(addresses, terms)) {
      run.column_terms = terms;
    }
    return engine_.For(geometry_.batches * chunks_ * parts_, cost_,
                       [&](int64_t begin, int64_t end, std::byte* scratch) {
                         RunItems(run, begin, end, scratch);
                       });
  }

 private:
  struct RunState {
    device::Addresses addresses;
    const uint8_t* a;
    const std::byte* panels;
    const int32_t* column_terms;  // null: all are 0
    // Of a depthwise convolution, or of small groups; the data is that of the batch.
    DepthwiseImage depthwise{};
    GroupedImage grouped{};
    const int32_t* start = nullptr;
  };

  // Elements in memory that are the rows and columns of the domain: columns side by side, or rows
  // side by side, as in planes, and the others as far apart everywhere.
  struct EvenRows {
    device::BoundView view;
    std::vector<int64_t> batch_offsets;
    int64_t row_stride = 0;
    int64_t column_stride = 1;

    bool AreTurned() const { return column_stride != 1; }

    int64_t element_bytes() const { return reference::LaneBytes(view.type); }
    std::byte* At(device::Addresses addresses, int64_t batch, int64_t row, int64_t column) const {
      const int64_t offset = view.offset + batch_offsets[static_cast<size_t>(batch)] +
                             row * row_stride + column * column_stride;
      return addresses[view.buffer] + offset * element_bytes();
    }
  };
  // What the loop over sums reads and writes.
  struct Requantized {
    EvenRows result;
    std::optional<EvenRows> added;
  };

  std::optional<EvenRows> FindEvenRows(const device::BoundStep& step,
                                       const device::BoundView& view) const {
    if (!view.guards.empty()) return std::nullopt;
    const auto first_row = static_cast<size_t>(geometry_.batch_axes);
    const size_t first_column = first_row + static_cast<size_t>(geometry_.row_axes);
    const auto axis_at = [&](size_t place) {
      return static_cast<size_t>(geometry_.axis_order[place]);
    };
    EvenRows rows{view, {}, 0};
    Extents batch_extents, batch_strides;
    for (size_t place = 0; place < first_row; ++place) {
      batch_extents.push_back(step.domain[axis_at(place)]);
      batch_strides.push_back(view.strides[axis_at(place)]);
    }
    rows.batch_offsets = OffsetTable(batch_extents, batch_strides);
    int64_t count = 1;
    for (size_t place = first_column; place-- > first_row;) {
      const int64_t extent = step.domain[axis_at(place)];
      const int64_t stride = view.strides[axis_at(place)];
      if (extent == 1) continue;
      if (count == 1) rows.row_stride = stride;
      if (stride != rows.row_stride * count) return std::nullopt;
      count *= extent;
    }
    for (size_t place = first_column; place < step.domain.size(); ++place) {
      const size_t axis = axis_at(place);
      if (step.domain[axis] == 1 || view.strides[axis] == 1) continue;
      // At most one axis of columns has more than one element.
      if (count == 1 || rows.row_stride != 1) return std::nullopt;
      rows.column_stride = view.strides[axis];
    }
    return rows;
  }

  std::optional<Requantized> FindRequantized(const device::BoundStep& step) const {
    if (!plan_.requantization) return std::nullopt;
    const std::optional<EvenRows> result = FindEvenRows(step, step.writes[0]);
    if (!result) return std::nullopt;
    Requantized found{*result, std::nullopt};
    const int added = plan_.requantization->added_read;
    if (added < 0) return found;
    found.added = FindEvenRows(step, step.reads[static_cast<size_t>(added)]);
    if (!found.added || found.added->AreTurned()) return std::nullopt;
    return found;
  }

  static ZeroPoint MakeZeroPoint(const ByteFactor& factor, const device::BoundStep& step,
                                 int operand) {
    ZeroPoint zero_point{factor, {}, {}};
    if (factor.zero_point_read < 0) return zero_point;
    zero_point.view = step.reads[static_cast<size_t>(factor.zero_point_read)];
    zero_point.axes = MakeZeroPointAxes(step, operand, zero_point.view);
    return zero_point;
  }

  // Axes are those of the grid from here on: batch, rows, columns.
  void ChooseTiles(const device::BoundStep& step) {
    std::vector<engine::LinearForm*> forms;
    bound_.AppendForms(forms);
    writer_.AppendForms(forms);
    grid_ = Grid(step.domain);
    grid_.Permute(geometry_.axis_order, forms);
    int boundaries[] = {geometry_.batch_axes, geometry_.batch_axes + geometry_.row_axes};
    grid_.Join(boundaries, forms);
    first_row_axis_ = boundaries[0];
    first_column_axis_ = boundaries[1];

    const int64_t lanes = engine_.settings().tile_lanes;
    const int64_t columns = geometry_.columns.columns;
    const int64_t threads = runtime_.pool().thread_count();
    const int64_t row_bytes = RowBytes();
    int64_t tile_columns = geometry_.groups > 1 ? columns : std::min(columns, lanes);
    const int64_t chunk_bytes = processor::UsedCaches().l2_bytes / 2;
    const int64_t max_rows =
        std::max(BlockRows(),
                 chunk_bytes / (row_bytes + tile_columns * static_cast<int64_t>(sizeof(int32_t))));
    chunks_ = (geometry_.rows + max_rows - 1) / max_rows;
    // As many chunks as threads, but none of only a few rows; columns are divided instead.
    const int64_t for_threads = (threads + geometry_.batches - 1) / geometry_.batches;
    chunks_ = std::max(chunks_, std::min(for_threads, geometry_.rows / (2 * BlockRows())));
    chunks_ = std::max<int64_t>(chunks_, 1);
    while (geometry_.batches * chunks_ > threads && geometry_.batches * chunks_ < 8 * threads &&
           geometry_.batches * chunks_ % threads != 0) {
      ++chunks_;
    }
    parts_ = std::max<int64_t>(1, threads / (geometry_.batches * chunks_));
    const int64_t width = PanelColumns();
    if (geometry_.groups == 1) {
      const int64_t part = (columns + parts_ - 1) / parts_;
      tile_columns = std::min(tile_columns, (part + width - 1) / width * width);
      if (tile_columns < columns) tile_columns = std::max(width, tile_columns / width * width);
    }
    // Results of neighbouring rows that lie side by side are stored in runs of whole cache lines.
    if (RowsLieTogether()) {
      const int64_t run = kLine / reference::LaneBytes(step.writes[0].type);
      const int64_t most = std::max(width, lanes / run / width * width);
      if (geometry_.groups == 1) {
        tile_columns = std::min(tile_columns, most);
      } else if (columns % width == 0) {
        // No tile has columns of two groups.
        tile_columns = columns % most == 0 ? most : width;
      }
    }
    grid_.Tile(0, first_row_axis_, 1);
    grid_.Tile(first_column_axis_, grid_.rank(), tile_columns);
    grid_.Tile(first_row_axis_, first_column_axis_, std::max<int64_t>(1, lanes / tile_columns));
    const int64_t row_tiles = grid_.TileCount(first_row_axis_, first_column_axis_);
    chunks_ = std::min(chunks_, row_tiles);
    column_tiles_ = grid_.TileCount(first_column_axis_, grid_.rank());
    parts_ = std::min(parts_, column_tiles_);
    row_tiles_ = row_tiles;
    chunk_rows_ =
        (row_tiles + chunks_ - 1) / chunks_ * grid_.TileLanes(first_row_axis_, first_column_axis_);
    tile_columns_ = grid_.TileLanes(first_column_axis_, grid_.rank());
    const int64_t sums = chunk_rows_ * columns * geometry_.groups / parts_;
    const double multiply_adds =
        static_cast<double>(sums) * static_cast<double>(geometry_.columns.depth());
    constexpr int64_t kRequantizationCost = 100;
    cost_ = sums * ((requantized_ ? kRequantizationCost : plan_.epilogue.cost()) + 100) +
            static_cast<int64_t>(std::min(multiply_adds / MultiplyAddsPerSecond() * 1e12, 1e15));
  }

  // Whether the first result has stride 1 along rows and not along columns, as a planar image has.
  bool RowsLieTogether() const {
    if (first_row_axis_ == first_column_axis_ || first_column_axis_ == grid_.rank()) return false;
    const engine::LinearForm& form = writer_.first_form();
    return form.steps[static_cast<size_t>(first_column_axis_ - 1)] == 1 &&
           form.steps[static_cast<size_t>(grid_.rank() - 1)] != 1;
  }

  // What a row takes in a cache, of many; those of depthwise convolutions are not laid out.
  int64_t RowBytes() const {
    if (geometry_.depthwise) return 0;
    return geometry_.row_source->LaidBytes(geometry_.rows) / std::max<int64_t>(1, geometry_.rows);
  }

  void LayOutScratch() {
    writer_at_ = bound_.scratch_bytes();
    rows_at_ = writer_at_ + RoundUp(writer_.scratch_bytes());
    const int64_t laid = geometry_.depthwise ? 0 : geometry_.row_source->LaidBytes(chunk_rows_);
    sums_at_ = rows_at_ + RoundUp(laid);
    row_terms_at_ = sums_at_ + RoundUp((chunk_rows_ * tile_columns_ + kSumSlack) * kInt);
    row_sums_at_ = row_terms_at_ + RoundUp(chunk_rows_ * kInt);
    turned_at_ = row_sums_at_ + RoundUp(chunk_rows_ * kInt);
    const bool is_turned = requantized_ && requantized_->result.AreTurned();
    const int64_t turned =
        is_turned ? chunk_rows_ * tile_columns_ * requantized_->result.element_bytes() : 0;
    engine_.scratch().Reserve(turned_at_ + RoundUp(turned));
  }

  // Channels side by side.
  void Reorder(const ImageOrder& order, const uint8_t* from, uint8_t* to) const {
    const int64_t image_rows = order.images * order.planes * order.rows;
    constexpr int64_t kBytesPerRange = 1 << 15;
    const int64_t row_bytes = order.columns * order.channels;
    runtime_.pool().For(
        image_rows, std::max<int64_t>(1, kBytesPerRange / std::max<int64_t>(1, row_bytes)),
        [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const uint8_t* source = from + row / (order.rows * order.planes) * order.image_stride +
                                    row / order.rows % order.planes * order.plane_stride +
                                    row % order.rows * order.row_stride;
            transpose::Transpose(reinterpret_cast<const std::byte*>(source), order.channel_stride,
                                 reinterpret_cast<std::byte*>(to + row * row_bytes), order.channels,
                                 order.columns, order.channels, 1);
          }
        });
  }

  // Whether windows are walked along rows, but for kernels with zero points.
  bool IsWalked() const {
    return geometry_.depthwise && !geometry_.small_groups && plan_.factors.b.is_signed &&
           WalkedQuads(*geometry_.depthwise) > 0;
  }

  int64_t TermBatches() const {
    const ZeroPoint& b = zero_points_[1];
    const bool varies = b.factor.zero_point_read >= 0 && !b.axes.IsOne();
    return varies ? tensor::ElementCount(b.axes.batch_extents) : 1;
  }
  int64_t TermCount() const {
    // What sums start with, a pixel.
    if (geometry_.small_groups) {
      return PaddedColumns(geometry_.columns.columns) + geometry_.depthwise->channels / kInt + 1;
    }
    // Of a depthwise convolution: pairs of weights less zero points, and the same.
    if (geometry_.depthwise) {
      return (PairCount(*geometry_.depthwise) + 3) * PaddedColumns(geometry_.columns.columns);
    }
    return TermBatches() * geometry_.groups * PaddedColumns(geometry_.columns.columns);
  }

  // The zero point of every column, moved as its elements are; false where all are 0.
  bool FindColumnTerms(device::Addresses addresses, int32_t* terms) const {
    const ZeroPoint& b = zero_points_[1];
    const int32_t moved = ColumnFlip(b.factor) != 0 ? 128 : 0;
    if (b.factor.zero_point_read < 0 && moved == 0) return false;
    const int64_t columns = geometry_.columns.columns;
    const int64_t padded = PaddedColumns(columns);
    bool is_any = false;
    for (int64_t batch = 0; batch < TermBatches(); ++batch) {
      const int64_t in_batch = b.axes.OffsetOfBatch(batch);
      for (int64_t group = 0; group < geometry_.groups; ++group, terms += padded) {
        for (int64_t c = 0; c < padded; ++c) {
          terms[c] = -moved;
          if (b.factor.zero_point_read >= 0 && c < columns) {
            terms[c] += b.At(addresses, in_batch + b.axes.OffsetInBatch(group * columns + c));
          }
          is_any = is_any || terms[c] != 0;
        }
      }
    }
    return is_any;
  }

  void PrepareDepthwise(RunState& run, int32_t* terms) const {
    if (geometry_.small_groups) return PrepareGroups(run, terms);
    const int64_t channels = geometry_.columns.columns;
    const int64_t taps = TapCount(*geometry_.depthwise);
    const int64_t pairs = PairCount(*geometry_.depthwise);
    int32_t* start = terms + (pairs + 1) * channels;
    run.depthwise = {*geometry_.depthwise,
                     plan_.factors.a.is_signed,
                     nullptr,
                     nullptr,
                     reinterpret_cast<const int32_t*>(run.panels),
                     nullptr};
    if (IsWalked()) {
      run.depthwise.quads = run.depthwise.weights + (pairs + 1) * channels;
    }
    const ZeroPoint& b = zero_points_[1];
    if (b.factor.zero_point_read >= 0) {
      bool is_any = false;
      for (int64_t c = 0; c < channels; ++c) {
        start[c] = b.At(run.addresses, b.axes.OffsetInBatch(c));
        is_any = is_any || start[c] != 0;
      }
      if (is_any) {
        SubtractFromTaps(run.depthwise.weights, taps, channels, start, terms);
        run.depthwise.weights = terms;
        run.depthwise.quads = nullptr;
      }
    }
    run.depthwise.fill = StartSums(run, run.depthwise.weights + pairs * channels, start);
  }

  void PrepareGroups(RunState& run, int32_t* terms) const {
    const auto* const weights = reinterpret_cast<const int32_t*>(run.panels);
    run.grouped = {*geometry_.depthwise,
                   *geometry_.small_groups,
                   geometry_.columns.columns,
                   plan_.factors.a.is_signed,
                   nullptr,
                   StartSums(run, weights, terms),
                   weights};
  }

  // What sums start with, from those of the kernels, and returns a pixel outside of the image.
  const uint8_t* StartSums(RunState& run, const int32_t* sums, int32_t* start) const {
    const ZeroPoint& a = zero_points_[0];
    const int32_t zero_point = a.factor.zero_point_read < 0 ? 0 : a.At(run.addresses, 0);
    const int64_t columns = geometry_.columns.columns;
    for (int64_t c = 0; c < columns; ++c) start[c] = -zero_point * sums[c];
    auto* pixel = reinterpret_cast<uint8_t*>(start + columns);
    std::fill_n(pixel, geometry_.depthwise->channels, static_cast<uint8_t>(zero_point));
    run.start = start;
    return pixel;
  }

  // The zero point of a row, moved as its elements are.
  int32_t RowZeroPoint(device::Addresses addresses, int64_t batch, int64_t row) const {
    const ZeroPoint& a = zero_points_[0];
    const int32_t moved = RowFlip(a.factor) != 0 ? 128 : 0;
    if (a.factor.zero_point_read < 0) return moved;
    return moved + a.At(addresses, a.axes.OffsetOfBatch(batch) + a.axes.OffsetInBatch(row));
  }

  void RunItems(const RunState& run, int64_t begin, int64_t end, std::byte* scratch) const {
    engine::Frame frame(bound_, run.addresses, scratch, grid_.TileLanes(0, grid_.rank()));
    for (int64_t item = begin; item < end; ++item) {
      const int64_t part = item % parts_;
      const int64_t chunk = item / parts_ % chunks_;
      const int64_t batch = item / parts_ / chunks_;
      RunChunk(run, batch, {row_tiles_ * chunk / chunks_, row_tiles_ * (chunk + 1) / chunks_},
               {column_tiles_ * part / parts_, column_tiles_ * (part + 1) / parts_}, frame,
               scratch);
    }
    writer_.Finish();
  }

  struct Range {
    int64_t begin, end;
  };

  void RunChunk(const RunState& run, int64_t batch, Range row_tiles, Range column_tiles,
                engine::Frame& frame, std::byte* scratch) const {
    Box box;
    grid_.MoveTo(0, first_row_axis_, batch, box);
    grid_.MoveTo(first_row_axis_, first_column_axis_, row_tiles.begin, box);
    const int64_t first_row = FirstRow(box);
    int64_t end_row = geometry_.rows;
    if (row_tiles.end < row_tiles_) {
      Box after = box;
      grid_.MoveTo(first_row_axis_, first_column_axis_, row_tiles.end, after);
      end_row = FirstRow(after);
    }
    ByteProduct product{};
    product.rows = end_row - first_row;
    product.depth = geometry_.columns.depth();
    auto* const sums = reinterpret_cast<int32_t*>(scratch + sums_at_);
    int64_t gathered_group = -1;
    for (int64_t tile = column_tiles.begin; tile < column_tiles.end; ++tile) {
      grid_.MoveTo(first_column_axis_, grid_.rank(), tile, box);
      const int64_t first_column = first_column_axis_ < grid_.rank()
                                       ? box.begin[static_cast<size_t>(first_column_axis_)]
                                       : 0;
      const int64_t group = first_column / geometry_.columns.columns;
      if (geometry_.depthwise) {
        product.columns = ColumnsOf(box);
        if (requantized_) {
          SumAndRequantize(run, batch, first_row, product, first_column, sums, scratch);
          continue;
        }
        SumImage(run, batch, first_row, product.rows, first_column, product.columns, sums);
        RunEpilogue(run, row_tiles, box, sums, product.columns, frame, scratch);
        continue;
      }
      if (group != gathered_group) {
        GatherRows(run, batch, group, first_row, product, scratch);
        gathered_group = group;
      }
      product.c = sums;
      product.c_stride = product.columns = ColumnsOf(box);
      SetColumns(run, batch, group, first_column % geometry_.columns.columns, product);
      if (requantized_) {
        SumBlock block = BlockOf(run, batch, first_row, first_column);
        std::byte* const result = block.result;
        if (requantized_->result.AreTurned()) Turn(product.columns, scratch, block);
        MultiplyAndRequantize(product, *plan_.requantization, block);
        if (requantized_->result.AreTurned()) {
          TurnBack(block.result, product.rows, product.columns, result);
        }
        continue;
      }
      Multiply(product);
      RunEpilogue(run, row_tiles, box, sums, product.c_stride, frame, scratch);
    }
  }

  // Of rows and columns from the first on.
  SumBlock BlockOf(const RunState& run, int64_t batch, int64_t row, int64_t column) const {
    SumBlock block{};
    block.first_column = column;
    block.result = requantized_->result.At(run.addresses, batch, row, column);
    block.result_stride = requantized_->result.row_stride * requantized_->result.element_bytes();
    if (!requantized_->added) return block;
    block.added = reinterpret_cast<const uint8_t*>(
        requantized_->added->At(run.addresses, batch, row, column));
    block.added_stride = requantized_->added->row_stride;
    return block;
  }

  // Has a block's results written to scratch memory, its columns side by side.
  void Turn(int64_t columns, std::byte* scratch, SumBlock& block) const {
    block.result = scratch + turned_at_;
    block.result_stride = columns * requantized_->result.element_bytes();
  }
  // And to where they belong.
  void TurnBack(const std::byte* turned, int64_t rows, int64_t columns, std::byte* result) const {
    transpose::Transpose(turned, columns, result, requantized_->result.column_stride, columns, rows,
                         requantized_->result.element_bytes());
  }

  // The windows of a depthwise convolution, or of small groups.
  void SumImage(const RunState& run, int64_t batch, int64_t first_row, int64_t rows,
                int64_t first_column, int64_t columns, int32_t* sums) const {
    const uint8_t* const data = run.a + geometry_.batch_offsets[static_cast<size_t>(batch)];
    if (geometry_.small_groups) {
      GroupedImage image = run.grouped;
      image.data = data;
      return SumGroupedWindows(image, run.start, first_row, rows, first_column, columns, sums);
    }
    DepthwiseImage image = run.depthwise;
    image.data = data;
    SumWindows(image, run.start, first_row, rows, first_column, columns, sums);
  }

  // The same, some rows at a time, whose sums stay in the L1 cache: whole rows of the image, or
  // equal parts of one, since windows are walked along these.
  void SumAndRequantize(const RunState& run, int64_t batch, int64_t first_row,
                        const ByteProduct& product, int64_t first_column, int32_t* sums,
                        std::byte* scratch) const {
    constexpr int64_t kSums = 4096;
    const int64_t most = std::max<int64_t>(1, kSums / product.columns);
    const int64_t along = geometry_.depthwise->spatial[2].out;
    const int64_t parts = (along + most - 1) / most;
    const int64_t some = parts == 1 ? most / along * along : (along + parts - 1) / parts;
    int64_t now = 0;
    for (int64_t row = 0; row < product.rows; row += now) {
      const int64_t place = (first_row + row) % along;
      now = parts == 1 ? some - place : std::min(some - place % some, along - place);
      SumBlock block = BlockOf(run, batch, first_row + row, first_column);
      block.sums = sums;
      block.sum_stride = block.columns = product.columns;
      block.rows = now = std::min(now, product.rows - row);
      SumImage(run, batch, first_row + row, block.rows, first_column, block.columns, sums);
      std::byte* const result = block.result;
      if (requantized_->result.AreTurned()) Turn(block.columns, scratch, block);
      Requantize(*plan_.requantization, block);
      if (requantized_->result.AreTurned()) {
        TurnBack(block.result, block.rows, block.columns, result);
      }
    }
  }

  int64_t ColumnsOf(const Box& box) const {
    return first_column_axis_ < grid_.rank() ? box.extents[static_cast<size_t>(first_column_axis_)]
                                             : 1;
  }

  int64_t FirstRow(const Box& box) const {
    int64_t row = 0;
    for (int axis = first_row_axis_; axis < first_column_axis_; ++axis) {
      row = row * grid_.extent(axis) + box.begin[static_cast<size_t>(axis)];
    }
    return row;
  }

  // Rows, their factors of the columns' sums, and their own sums where these are needed.
  void GatherRows(const RunState& run, int64_t batch, int64_t group, int64_t first_row,
                  ByteProduct& product, std::byte* scratch) const {
    const RowSource& source = *geometry_.row_source;
    const uint8_t* a = run.a + geometry_.batch_offsets[static_cast<size_t>(batch)] +
                       group * geometry_.group_stride;
    auto* row_terms = reinterpret_cast<int32_t*>(scratch + row_terms_at_);
    const bool is_one = zero_points_[0].factor.zero_point_read < 0 || zero_points_[0].axes.IsOne();
    for (int64_t r = 0; r < product.rows; ++r) {
      row_terms[r] =
          is_one && r > 0 ? row_terms[0] : -RowZeroPoint(run.addresses, batch, first_row + r);
    }
    product.row_terms = row_terms;
    // Outside an image, elements are the zero point.
    const auto fill = static_cast<uint8_t>(-row_terms[0]);
    const LaidRows laid = source.Lay(a, geometry_.FirstRowOf(batch) + first_row, product.rows, fill,
                                     reinterpret_cast<uint8_t*>(scratch + rows_at_));
    product.a = laid.first;
    product.a_stride = laid.stride;
    product.run = laid.run;
    product.place = laid.place;
    product.run_stride = laid.run_stride;
    product.piece_offsets = source.piece_offsets().data();
    product.pieces = geometry_.columns.pieces;
    product.row_sums = nullptr;
    if (run.column_terms == nullptr) return;
    auto* row_sums = reinterpret_cast<int32_t*>(scratch + row_sums_at_);
    SumRows(product, row_sums);
    for (int64_t r = 0; r < product.rows; ++r) {
      const auto sum = static_cast<uint32_t>(row_sums[r]);
      const auto zero_points =
          static_cast<uint32_t>(source.depth()) * static_cast<uint32_t>(-row_terms[r]);
      row_sums[r] = static_cast<int32_t>(zero_points - sum);
    }
    product.row_sums = row_sums;
  }

  void SetColumns(const RunState& run, int64_t batch, int64_t group, int64_t column,
                  ByteProduct& product) const {
    const Columns& columns = geometry_.columns;
    const int64_t matrix = geometry_.MatrixOf(batch, group);
    product.b = columns.PanelsOf(matrix, run.panels) +
                column / PanelColumns() * PanelBytes(columns.depth(), columns.pieces);
    product.column_sums = columns.SumsOf(matrix, run.panels) + column;
    product.column_terms = nullptr;
    if (run.column_terms == nullptr) return;
    const int64_t term_batch = TermBatches() > 1 ? batch : 0;
    product.column_terms = run.column_terms + column +
                           (term_batch * geometry_.groups + group) * PaddedColumns(columns.columns);
  }

  void RunEpilogue(const RunState& run, Range row_tiles, const Box& columns, int32_t* sums,
                   int64_t sums_per_row, engine::Frame& frame, std::byte* scratch) const {
    Box box = columns;
    grid_.MoveTo(first_row_axis_, first_column_axis_, row_tiles.begin, box);
    for (int64_t tile = row_tiles.begin; tile < row_tiles.end; ++tile) {
      frame.Attach(program::ExprOp::kAccumulator,
                   [&](uint64_t) { return reinterpret_cast<std::byte*>(sums); });
      writer_.Run(frame, box, run.addresses, scratch + writer_at_);
      sums += box.lanes / sums_per_row * sums_per_row;
      grid_.MoveOn(first_row_axis_, first_column_axis_, box);
    }
  }

  const ProductPlan plan_;
  const device::BoundView a_, b_;
  const ProductGeometry geometry_;
  const runtime::PackedWeights packed_;           // null: B is packed in each run
  const std::optional<Requantized> requantized_;  // none: the epilogue runs in the tile engine
  engine::BoundCode bound_;
  engine::Writer writer_;
  runtime::Runtime& runtime_;
  engine::Runtime& engine_;
  ZeroPoint zero_points_[2];
  Grid grid_;
  int first_row_axis_ = 0, first_column_axis_ = 0;
  int64_t row_tiles_ = 0, column_tiles_ = 0;
  int64_t chunks_ = 1, parts_ = 1;
  int64_t chunk_rows_ = 0, tile_columns_ = 0;
  int64_t cost_ = 0;
  // In the scratch memory of a range; the epilogue's registers come first.
  int64_t writer_at_ = 0, rows_at_ = 0, sums_at_ = 0, row_terms_at_ = 0, row_sums_at_ = 0,
          turned_at_ = 0;
  // In the work memory of a run; the reordered images come first.
  int64_t panels_at_ = 0, terms_at_ = 0, work_bytes_ = 0;
  bool is_empty_;
};

}  // namespace

int64_t WeightBytes(const ProductGeometry& geometry) {
  if (!geometry.depthwise) return geometry.columns.PackedBytes();
  const WindowAxes& axes = *geometry.depthwise;
  if (geometry.small_groups) {
    return GroupedWeightCount(*geometry.small_groups, geometry.columns.columns, TapCount(axes)) *
           kInt;
  }
  return (PairCount(axes) + 1 + WalkedQuads(axes)) * geometry.columns.columns * kInt;
}
void PackWeights(const ProductGeometry& geometry, const ByteFactors& factors, const uint8_t* b,
                 std::byte* to, device::Parallel& parallel) {
  if (!geometry.depthwise) return geometry.columns.Pack(b, to, parallel);
  auto* const weights = reinterpret_cast<int32_t*>(to);
  if (geometry.small_groups) {
    return PackGroupedWeights(*geometry.small_groups, geometry.columns, b, weights);
  }
  const WindowAxes& axes = *geometry.depthwise;
  UnpackTaps(geometry.columns, b, factors.b.is_signed, weights);
  PackWalkedQuads(axes, geometry.columns, b,
                  weights + (PairCount(axes) + 1) * geometry.columns.columns);
}

std::unique_ptr<device::BoundKernel> BindProduct(ProductPlan plan, const device::BoundStep& step,
                                                 runtime::PackedWeights packed,
                                                 const runtime::Runtimes& runtimes) {
  return std::make_unique<BoundProduct>(std::move(plan), step, std::move(packed), runtimes.own,
                                        runtimes.engine);
}

}  // namespace onnxifi::integer
