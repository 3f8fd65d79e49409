// SPDX-License-Identifier: Apache-2.0
//
// The kernel of QuantizedWeights: threads divide the columns. Few rows are multiplied with the
// numbers as they are read; for more, panels of columns are dequantized, as many as stay in the L2
// cache, and multiplied with all rows. Where rows may be rounded to bytes they are, some hundred at
// a time, and panels are of bytes.

#include "backends/cpu/matmul/quantized_weights_kernel.h"

#include <algorithm>
#include <string>
#include <utility>

#include "backends/cpu/gemm/byte_blocks.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/grid.h"
#include "backends/cpu/matmul/row_lines.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::matmul {
namespace {

using base::Status;

// Numbers of a matrix; smaller ones are done before another thread has begun.
constexpr int64_t kWorthAThread = 65536;

class BoundQuantizedWeights final : public device::BoundKernel {
 public:
  BoundQuantizedWeights(const QuantizedProduct& weights, const gemm::QuantizedLayout& layout,
                        runtime::PackedWeights packed, const device::BoundStep& step,
                        runtime::Runtime& runtime)
      : weights_(weights),
        matrix_{layout, packed->data()},
        packed_(std::move(packed)),
        runtime_(runtime),
        x_(step.reads[0]),
        y_(step.writes[0]),
        epilogue_(weights.epilogue, step),
        lines_(step, weights) {
    const int64_t width = gemm::PanelColumns();
    panel_floats_ = width * weights.depth;
    panels_at_once_ = std::clamp<int64_t>(processor::L2Floats() / 4 / panel_floats_, 1, kMaxPanels);
    const int64_t panels = (weights.columns + width - 1) / width;
    // A single line is divided anywhere, several lines are not. Each part of the rows dequantizes
    // its panels itself.
    work_ = lines_.count() == 1 ? gemm::Work{lines_.rows(), 1, weights.depth, panels}
                                : gemm::Work{lines_.count(), lines_.rows(), weights.depth, panels};
    are_rows_rounded_ = weights.may_round_rows && gemm::HasByteBlocks() &&
                        weights.columns >= kMinRoundedColumns &&
                        (lines_.count() == 1 || lines_.rows() >= kMinRowsOfLines) &&
                        lines_.rows() >= gemm::MinByteBlockRows();
    if (are_rows_rounded_) {
      const int64_t times = (lines_.rows() + kMaxRoundedRows - 1) / kMaxRoundedRows;
      rounded_at_once_ = (lines_.rows() + times - 1) / times;
      const int64_t byte_panels =
          (weights.columns + gemm::kQuantizedColumns - 1) / gemm::kQuantizedColumns;
      work_ = {1, rounded_at_once_, weights.depth, byte_panels};
    }
    grid_ = gemm::ChooseGrid(work_, runtime.pool().thread_count());
    runtime.work_memory().Reserve(ScratchBytes());
  }

  bool ReadsAtRun(int read) const override {
    return read != 1 && read != weights_.scale.read &&
           !(weights_.zero_point && read == weights_.zero_point->read);
  }

  std::string Detail() const override {
    const int64_t rows = lines_.count() * lines_.rows();
    return std::to_string(rows) + (rows == 1 ? " row, " : " rows, ") +
           std::to_string(matrix_.layout.bits) + " bits in blocks of " +
           std::to_string(std::min(weights_.block, weights_.depth)) +
           (are_rows_rounded_ ? ", rows rounded to bytes, " : ", ") +
           std::string(processor::VectorName());
  }

  Status Run(device::Addresses addresses) const override {
    if (lines_.count() == 0 || lines_.rows() == 0) return base::Ok();
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(ScratchBytes()));
    auto* const scratch = reinterpret_cast<float*>(lease.data());
    gemm::Epilogue epilogue = epilogue_.At(addresses);
    if (const auto& addend = epilogue_.addend()) {
      epilogue.addend = gemm::FloatsAt(addresses, *addend);
      epilogue.addend_stride = lines_.distance().addend;
    }
    const float* const x = gemm::FloatsAt(addresses, x_);
    float* const y = gemm::FloatsAt(addresses, y_);
    if (are_rows_rounded_) {
      for (int64_t line = 0; line < lines_.count(); ++line) {
        RunRounded(x, y, epilogue, lines_.BeginOf(line), lease.data());
      }
      return base::Ok();
    }
    if (!HasFewRows()) {
      RunPanels(x, y, epilogue, scratch);
      return base::Ok();
    }
    for (int64_t line = 0; line < lines_.count(); ++line) {
      const RowLines::Offsets begin = lines_.BeginOf(line);
      gemm::Epilogue of_rows = epilogue;
      if (epilogue.addend != nullptr) of_rows.addend += begin.addend;
      RunFewRows(x + begin.x, y + begin.y, of_rows);
    }
    return base::Ok();
  }

 private:
  static constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
  static constexpr int64_t kMaxPanels = 8;
  // With more rows, panels take less time than the numbers as they are read.
  static constexpr int64_t kMaxFewRows = 8;
  // Rounding a row takes as long as so many of its products save.
  static constexpr int64_t kMinRoundedColumns = 512;
  // Each of several lines makes the panels itself.
  static constexpr int64_t kMinRowsOfLines = 64;
  // So that what they are rounded to stays in a cache.
  static constexpr int64_t kMaxRoundedRows = 256;

  bool HasFewRows() const { return lines_.count() * lines_.rows() <= kMaxFewRows; }

  int64_t ThreadFloats() const { return panels_at_once_ * panel_floats_; }
  int64_t ScratchFloats() const {
    if (HasFewRows()) return 0;
    return gemm::ThreadsOf(grid_, runtime_.pool()) * ThreadFloats();
  }

  // Of the rows that are rounded at a time, before the panels of the threads.
  int64_t RoundedBytes() const {
    return rounded_at_once_ * gemm::ByteRowLayout(matrix_.layout).size_bytes();
  }
  int64_t BytePanelBytes() const { return gemm::BytePanelBytes(matrix_.layout); }

  int64_t ScratchBytes() const {
    if (!are_rows_rounded_) return ScratchFloats() * kFloatBytes;
    return RoundedBytes() + gemm::ThreadsOf(grid_, runtime_.pool()) * BytePanelBytes();
  }

  // The rows of a line.
  void RunRounded(const float* x, float* y, const gemm::Epilogue& epilogue,
                  const RowLines::Offsets& begin, std::byte* scratch) const {
    const RowLines::Offsets& distance = lines_.distance();
    const int64_t row_bytes = gemm::ByteRowLayout(matrix_.layout).size_bytes();
    for (int64_t first = 0; first < lines_.rows(); first += rounded_at_once_) {
      const int64_t count = std::min(rounded_at_once_, lines_.rows() - first);
      runtime_.pool().For(count, kWorthAThread / weights_.depth + 1, [&](int64_t row, int64_t end) {
        for (; row < end; ++row) {
          gemm::RoundRow(matrix_.layout, x + begin.x + (first + row) * distance.x,
                         scratch + row * row_bytes);
        }
      });
      gemm::Epilogue of_rows = epilogue;
      if (epilogue.addend != nullptr) of_rows.addend += begin.addend + first * distance.addend;
      MultiplyRounded(scratch, count, y + begin.y + first * distance.y, of_rows,
                      scratch + RoundedBytes());
    }
  }

  void MultiplyRounded(const std::byte* rows, int64_t count, float* y,
                       const gemm::Epilogue& epilogue, std::byte* panels) const {
    gemm::ForParts(work_, grid_, runtime_.pool(), [&](int64_t thread, const gemm::Part& part) {
      std::byte* const panel = panels + thread * BytePanelBytes();
      for (int64_t number = part.first_panel; number < part.end_panel; ++number) {
        const int64_t column = number * gemm::kQuantizedColumns;
        const bool has_panel = gemm::NeedsBytePanel(count);
        if (has_panel) gemm::FillBytePanel(matrix_, column, panel);
        gemm::MultiplyByteBlocks(
            {matrix_, rows, count, has_panel ? panel : nullptr, column, y, lines_.distance().y},
            epilogue);
      }
    });
  }

  // Those of a line.
  void RunFewRows(const float* x, float* y, const gemm::Epilogue& epilogue) const {
    const RowLines::Offsets& distance = lines_.distance();
    const gemm::QuantizedProduct product = {matrix_, x, distance.x, y, distance.y, lines_.rows()};
    constexpr int64_t kGrain = gemm::kQuantizedColumns;
    runtime_.pool().For((weights_.columns + kGrain - 1) / kGrain,
                        kWorthAThread / (kGrain * weights_.depth) + 1,
                        [&](int64_t begin, int64_t end) {
                          gemm::MultiplyQuantized(product, epilogue, begin * kGrain,
                                                  std::min(weights_.columns, end * kGrain));
                        });
  }

  void RunPanels(const float* x, float* y, const gemm::Epilogue& epilogue, float* scratch) const {
    gemm::ForParts(work_, grid_, runtime_.pool(), [&](int64_t thread, const gemm::Part& part) {
      float* const panels = scratch + thread * ThreadFloats();
      for (int64_t panel = part.first_panel; panel < part.end_panel; panel += panels_at_once_) {
        const int64_t count = std::min(panels_at_once_, part.end_panel - panel);
        for (int64_t k = 0; k < count; ++k) {
          gemm::DequantizePanel(matrix_, (panel + k) * gemm::PanelColumns(),
                                panels + k * panel_floats_);
        }
        MultiplyPanels(x, y, epilogue, part, panel, count, panels);
      }
    });
  }

  // The rows of a part times `count` panels from `panel` on.
  void MultiplyPanels(const float* x, float* y, const gemm::Epilogue& epilogue,
                      const gemm::Part& part, int64_t panel, int64_t count,
                      const float* panels) const {
    if (lines_.count() == 1) {
      const RowLines::Offsets& distance = lines_.distance();
      const int64_t first = part.first_block;
      MultiplyRows({first * distance.x, first * distance.y, first * distance.addend},
                   part.end_block - first, x, y, epilogue, panel, count, panels);
      return;
    }
    for (int64_t line = part.first_block; line < part.end_block; ++line) {
      MultiplyRows(lines_.BeginOf(line), lines_.rows(), x, y, epilogue, panel, count, panels);
    }
  }

  void MultiplyRows(const RowLines::Offsets& begin, int64_t rows, const float* x, float* y,
                    gemm::Epilogue epilogue, int64_t panel, int64_t count,
                    const float* panels) const {
    const int64_t first = panel * gemm::PanelColumns();
    if (epilogue.bias != nullptr) epilogue.bias += first;
    if (epilogue.addend != nullptr) epilogue.addend += begin.addend + first;
    const gemm::Product product = {x + begin.x,
                                   lines_.distance().x,
                                   panels,
                                   y + begin.y + first,
                                   lines_.distance().y,
                                   rows,
                                   weights_.depth,
                                   std::min(count * gemm::PanelColumns(), weights_.columns - first),
                                   {}};
    gemm::Multiply(product, epilogue, /*first_panel=*/0, count);
  }

  const QuantizedProduct weights_;
  const gemm::QuantizedMatrix matrix_;
  const runtime::PackedWeights packed_;
  runtime::Runtime& runtime_;
  const device::BoundView x_, y_;
  const gemm::BoundEpilogue epilogue_;
  const RowLines lines_;
  int64_t panel_floats_;
  int64_t panels_at_once_;
  bool are_rows_rounded_ = false;
  int64_t rounded_at_once_ = 0;
  gemm::Work work_;
  gemm::Grid grid_;
};

}  // namespace

std::unique_ptr<device::BoundKernel> BindQuantizedWeights(const QuantizedProduct& weights,
                                                          const gemm::QuantizedLayout& layout,
                                                          runtime::PackedWeights packed,
                                                          const device::BoundStep& step,
                                                          runtime::Runtime& runtime) {
  return std::make_unique<BoundQuantizedWeights>(weights, layout, std::move(packed), step, runtime);
}

}  // namespace onnxifi::matmul
