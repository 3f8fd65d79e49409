// SPDX-License-Identifier: Apache-2.0
//
// The kernel of GatheredProduct: rows are sorted by their matrices, so that each matrix that any
// row has is read once, and no other. Threads divide the panels of all these matrices by what they
// cost.

#include "backends/cpu/matmul/gathered_product_kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/vector_matrix.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::matmul {
namespace {

using base::Status;

constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
// Rows that are multiplied at a time, and panels: their results stay in the L2 cache.
constexpr int64_t kMaxRows = 96;
constexpr int64_t kMaxPanels = 8;
// Of quantized matrices; more take longer than panels do.
constexpr int64_t kMaxFewRows = 8;
// What reading a panel takes beside the multiplication of its rows, in rows.
constexpr int64_t kRowsPerRead = 3;
// Numbers of the matrices; fewer are done before another thread has begun.
constexpr int64_t kWorthAThread = 65536;

// A row of X and of Y: where it begins.
struct Row {
  int64_t x, y;
};

// Pieces of one block of memory, each at a line of the cache.
class Pieces {
 public:
  explicit Pieces(std::byte* data) : data_(data) {}
  template <typename T>
  T* Take(int64_t count) {
    T* const piece = reinterpret_cast<T*>(data_ + size_bytes_);
    size_bytes_ += (count * static_cast<int64_t>(sizeof(T)) + kLine - 1) / kLine * kLine;
    return piece;
  }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  static constexpr int64_t kLine = 64;
  std::byte* data_;
  int64_t size_bytes_ = 0;
};

class BoundGatheredProduct final : public device::BoundKernel {
 public:
  BoundGatheredProduct(const GatheredMatrices& product,
                       const std::optional<gemm::QuantizedLayout>& layout,
                       runtime::PackedWeights packed, const device::BoundStep& step,
                       runtime::Runtime& runtime)
      : product_(product),
        constants_(product.Constants()),
        layout_(layout),
        packed_(std::move(packed)),
        runtime_(runtime),
        x_(step.reads[0]),
        positions_(step.reads[1]),
        y_(step.writes[0]),
        epilogue_(product.matrix.epilogue, step),
        extents_(step.domain.begin(), step.domain.begin() + product.matrix.row_axes),
        depth_(product.matrix.depth),
        columns_(product.matrix.columns),
        width_(gemm::PanelColumns()),
        panels_((columns_ + width_ - 1) / width_) {
    for (const int64_t extent : extents_) rows_ *= extent;
    // A row of a batch axis only has a position.
    positions_.strides.resize(product.matrix.batch_axes);
    positions_.strides.resize(product.matrix.row_axes, 0);
    panels_at_once_ = kMaxPanels;
    if (layout_) {
      panels_at_once_ =
          std::clamp<int64_t>(processor::L2Floats() / 4 / (width_ * depth_), 1, kMaxPanels);
    }
    rows_at_once_ = std::max(gemm::BlockRows(), kMaxRows / gemm::BlockRows() * gemm::BlockRows());
    rows_at_once_ = std::min(rows_at_once_, std::max<int64_t>(rows_, 1));
    Pieces pieces(nullptr);
    Place(pieces);
    scratch_bytes_ = pieces.size_bytes();
    runtime.work_memory().Reserve(scratch_bytes_);
  }

  bool ReadsAtRun(int read) const override {
    return std::ranges::find(constants_, read) == constants_.end();
  }

  std::string Detail() const override {
    return std::to_string(rows_) + (rows_ == 1 ? " row" : " rows") + " of " +
           std::to_string(product_.entries) + " matrices, " +
           (layout_ ? std::to_string(layout_->bits) + " bits, " : std::string()) +
           std::string(processor::VectorName());
  }

  Status Run(device::Addresses addresses) const override {
    if (rows_ == 0 || columns_ == 0) return base::Ok();
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(scratch_bytes_));
    Pieces pieces(lease.data());
    const Scratch scratch = Place(pieces);
    SortRows(addresses[positions_.buffer], scratch);
    const Call call = {gemm::FloatsAt(addresses, x_), gemm::FloatsAt(addresses, y_),
                       epilogue_.At(addresses), scratch};
    int64_t cost = 0, matrices = 0;
    for (int64_t entry = 0; entry < product_.entries; ++entry) {
      cost += CostOf(call, entry);
      matrices += call.RowsOf(entry) > 0 ? 1 : 0;
    }
    const int64_t parts =
        runtime_.pool().CountParts(1 + matrices * columns_ * depth_ / kWorthAThread);
    runtime_.pool().ForEachPart(static_cast<int>(parts), [&](int64_t part, int thread) {
      RunPart(call, cost * part / parts, cost * (part + 1) / parts, thread);
    });
    WriteRowsWithoutMatrix(call);
    return base::Ok();
  }

 private:
  struct Scratch {
    int64_t* entry_of;  // by row; the number of matrices where it has none
    int64_t* ends;      // by entry: behind its rows among the sorted ones
    Row* unsorted;
    Row* sorted;
    float* threads;  // of each thread ThreadFloats()
  };
  struct Call {
    const float* x;
    float* y;
    gemm::Epilogue epilogue;
    Scratch scratch;

    int64_t FirstOf(int64_t entry) const { return entry == 0 ? 0 : scratch.ends[entry - 1]; }
    int64_t RowsOf(int64_t entry) const { return scratch.ends[entry] - FirstOf(entry); }
  };

  // The memory of a thread, in floats: rows of X, their results, and columns as panels.
  int64_t XFloats() const { return rows_at_once_ * depth_; }
  int64_t YFloats() const { return rows_at_once_ * panels_at_once_ * width_; }
  int64_t PanelFloats() const { return layout_ ? panels_at_once_ * width_ * depth_ : 0; }
  int64_t ThreadFloats() const {
    constexpr int64_t kLineFloats = 16;
    return (XFloats() + YFloats() + PanelFloats() + kLineFloats - 1) / kLineFloats * kLineFloats;
  }

  Scratch Place(Pieces& pieces) const {
    Scratch scratch{};
    scratch.entry_of = pieces.Take<int64_t>(rows_);
    scratch.ends = pieces.Take<int64_t>(product_.entries + 2);
    scratch.unsorted = pieces.Take<Row>(rows_);
    scratch.sorted = pieces.Take<Row>(rows_);
    scratch.threads = pieces.Take<float>(runtime_.pool().thread_count() * ThreadFloats());
    return scratch;
  }

  // By entry, in their order; those without a matrix come last.
  void SortRows(const std::byte* positions, const Scratch& scratch) const {
    const int64_t entries = product_.entries;
    std::fill_n(scratch.ends, entries + 2, 0);
    Row at{0, 0};
    int64_t position = positions_.offset;
    // Coordinates are at most a few.
    base::SmallVector<int64_t, 4> coordinates(extents_.size(), 0);
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t entry = EntryAt(positions, position);
      scratch.entry_of[row] = entry;
      scratch.unsorted[row] = at;
      ++scratch.ends[entry + 1];
      for (size_t axis = extents_.size(); axis-- > 0;) {
        at.x += x_.strides[axis];
        at.y += y_.strides[axis];
        position += positions_.strides[axis];
        if (++coordinates[axis] < extents_[axis]) break;
        coordinates[axis] = 0;
        at.x -= x_.strides[axis] * extents_[axis];
        at.y -= y_.strides[axis] * extents_[axis];
        position -= positions_.strides[axis] * extents_[axis];
      }
    }
    // ends[entry + 1] counts; ends[entry] becomes where its rows begin, then where they end.
    for (int64_t entry = 0; entry <= entries; ++entry) {
      scratch.ends[entry + 1] += scratch.ends[entry];
    }
    for (int64_t row = 0; row < rows_; ++row) {
      scratch.sorted[scratch.ends[scratch.entry_of[row]]++] = scratch.unsorted[row];
    }
  }

  int64_t EntryAt(const std::byte* positions, int64_t index) const {
    const tensor::Scalar stored = tensor::LoadScalar(positions_.type, positions, index);
    const int64_t entries = product_.entries;
    if (!tensor::IsSigned(positions_.type)) {
      return stored.u < static_cast<uint64_t>(entries) ? static_cast<int64_t>(stored.u) : entries;
    }
    const int64_t entry = stored.i < 0 ? stored.i + entries : stored.i;
    return entry >= 0 && entry < entries ? entry : entries;
  }

  // Of one panel of the entry's matrix, and of all.
  static int64_t CostPerPanel(int64_t rows) { return rows == 0 ? 0 : rows + kRowsPerRead; }
  int64_t CostOf(const Call& call, int64_t entry) const {
    return panels_ * CostPerPanel(call.RowsOf(entry));
  }

  // The panels that begin at costs [first, end).
  void RunPart(const Call& call, int64_t first, int64_t end, int thread) const {
    float* const scratch = call.scratch.threads + thread * ThreadFloats();
    int64_t begin = 0;  // what the entries before cost
    for (int64_t entry = 0; entry < product_.entries && begin < end; ++entry) {
      const int64_t each = CostPerPanel(call.RowsOf(entry));
      if (each == 0) continue;
      const auto panel_at = [&](int64_t cost) {
        return std::clamp<int64_t>((cost - begin + each - 1) / each, 0, panels_);
      };
      const int64_t first_panel = first <= begin ? 0 : panel_at(first);
      const int64_t end_panel = panel_at(end);
      if (first_panel < end_panel) RunEntry(call, entry, first_panel, end_panel, scratch);
      begin += panels_ * each;
    }
  }

  void RunEntry(const Call& call, int64_t entry, int64_t first_panel, int64_t end_panel,
                float* scratch) const {
    const int64_t first_row = call.FirstOf(entry);
    const int64_t rows = call.RowsOf(entry);
    const bool is_few = layout_ && rows <= kMaxFewRows;
    float* const panels = scratch + XFloats() + YFloats();
    if (layout_ && !is_few) {
      for (int64_t panel = first_panel; panel < end_panel; panel += panels_at_once_) {
        const int64_t end = std::min(end_panel, panel + panels_at_once_);
        Dequantize(entry, panel, end, panels);
        for (int64_t row = 0; row < rows; row += rows_at_once_) {
          const int64_t count = std::min(rows_at_once_, rows - row);
          const Row* const block = call.scratch.sorted + first_row + row;
          const float* const x = RowsAt(call, block, count, scratch);
          MultiplyPanels(call, block, count, x, panels, panel, end, scratch);
        }
      }
      return;
    }
    for (int64_t row = 0; row < rows; row += rows_at_once_) {
      const int64_t count = std::min(rows_at_once_, rows - row);
      const Row* const block = call.scratch.sorted + first_row + row;
      if (is_few) {
        MultiplyFewRows(call, entry, block, count, first_panel, end_panel, scratch);
        continue;
      }
      const float* const x = RowsAt(call, block, count, scratch);
      const float* const matrix =
          runtime::Floats(packed_) + entry * gemm::PackedSize(depth_, columns_);
      for (int64_t panel = first_panel; panel < end_panel; panel += panels_at_once_) {
        const int64_t end = std::min(end_panel, panel + panels_at_once_);
        MultiplyPanels(call, block, count, x, matrix + panel * width_ * depth_, panel, end,
                       scratch);
      }
    }
  }

  // Columns of the panels, or all that are left of the matrix.
  int64_t EndColumn(int64_t end_panel) const { return std::min(columns_, end_panel * width_); }

  gemm::QuantizedMatrix QuantizedOf(int64_t entry) const {
    return {*layout_, packed_->data() + entry * layout_->matrix_bytes()};
  }

  void Dequantize(int64_t entry, int64_t first_panel, int64_t end_panel, float* panels) const {
    for (int64_t panel = first_panel; panel < end_panel; ++panel) {
      gemm::DequantizePanel(QuantizedOf(entry), panel * width_,
                            panels + (panel - first_panel) * width_ * depth_);
    }
  }

  // The rows, next to each other.
  const float* RowsAt(const Call& call, const Row* rows, int64_t count, float* scratch) const {
    if (count == 1) return call.x + rows[0].x;
    for (int64_t row = 0; row < count; ++row) {
      std::memcpy(scratch + row * depth_, call.x + rows[row].x,
                  static_cast<size_t>(depth_ * kFloatBytes));
    }
    return scratch;
  }

  // Results from [count, columns] at `from` to their rows.
  static void Store(const Call& call, const Row* rows, int64_t count, int64_t first_column,
                    int64_t columns, const float* from) {
    for (int64_t row = 0; row < count; ++row) {
      std::memcpy(call.y + rows[row].y + first_column, from + row * columns,
                  static_cast<size_t>(columns * kFloatBytes));
    }
  }

  void MultiplyPanels(const Call& call, const Row* rows, int64_t count, const float* x,
                      const float* panels, int64_t first_panel, int64_t end_panel,
                      float* scratch) const {
    const int64_t first = first_panel * width_;
    const int64_t columns = EndColumn(end_panel) - first;
    gemm::Epilogue epilogue = call.epilogue;
    if (epilogue.bias != nullptr) epilogue.bias += first;
    float* const y = count == 1 ? call.y + rows[0].y + first : scratch + XFloats();
    const gemm::Product product = {x, depth_, panels, y, columns, count, depth_, columns, {}};
    gemm::Multiply(product, epilogue, /*first_panel=*/0, end_panel - first_panel);
    if (count != 1) Store(call, rows, count, first, columns, y);
  }

  void MultiplyFewRows(const Call& call, int64_t entry, const Row* rows, int64_t count,
                       int64_t first_panel, int64_t end_panel, float* scratch) const {
    const float* const x = RowsAt(call, rows, count, scratch);
    for (int64_t panel = first_panel; panel < end_panel; panel += panels_at_once_) {
      const int64_t first = panel * width_;
      const int64_t end = EndColumn(std::min(end_panel, panel + panels_at_once_));
      const int64_t columns = end - first;
      float* const y = count == 1 ? call.y + rows[0].y : scratch + XFloats() - first;
      const gemm::QuantizedProduct product = {QuantizedOf(entry), x, depth_, y, columns, count};
      gemm::MultiplyQuantized(product, call.epilogue, first, end);
      if (count != 1) Store(call, rows, count, first, columns, y + first);
    }
  }

  // Positions out of range select zeros.
  void WriteRowsWithoutMatrix(const Call& call) const {
    const int64_t first = call.scratch.ends[product_.entries - 1];
    float* const zeros = call.scratch.threads;
    for (int64_t row = first; row < rows_; ++row) {
      for (int64_t column = 0; column < columns_; column += width_) {
        const int64_t count = std::min(width_, columns_ - column);
        std::fill_n(zeros, count, 0.0F);
        gemm::Epilogue epilogue = call.epilogue;
        if (epilogue.bias != nullptr) epilogue.bias += column;
        gemm::FinishSums({zeros, count, count, 1}, epilogue, /*vectors=*/1, 0, count,
                         call.y + call.scratch.sorted[row].y + column, count);
      }
    }
  }

  const GatheredMatrices product_;
  const std::vector<int> constants_;
  const std::optional<gemm::QuantizedLayout> layout_;
  const runtime::PackedWeights packed_;
  runtime::Runtime& runtime_;
  const device::BoundView x_;
  device::BoundView positions_;
  const device::BoundView y_;
  const gemm::BoundEpilogue epilogue_;
  const std::vector<int64_t> extents_;  // of the axes of rows
  const int64_t depth_, columns_, width_, panels_;
  int64_t rows_ = 1;
  int64_t rows_at_once_;
  int64_t panels_at_once_;
  int64_t scratch_bytes_;
};

}  // namespace

std::unique_ptr<device::BoundKernel> BindGatheredProduct(
    const GatheredMatrices& product, const std::optional<gemm::QuantizedLayout>& layout,
    runtime::PackedWeights packed, const device::BoundStep& step, runtime::Runtime& runtime) {
  return std::make_unique<BoundGatheredProduct>(product, layout, std::move(packed), step, runtime);
}

}  // namespace onnxifi::matmul
