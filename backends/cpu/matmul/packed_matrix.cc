// SPDX-License-Identifier: Apache-2.0
//
// PackedMatrix: rows that lie at one distance from each other are a line, which is one product; the
// threads divide a single line by rows and columns, several by lines.

#include "backends/cpu/matmul/packed_matrix.h"

#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/grid.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/runtime/aligned_constant.h"

namespace onnxifi::matmul {
namespace {

using base::Status;

// An axis of rows and how far it steps, in floats.
struct RowAxis {
  int64_t extent = 1;
  int64_t x = 0, y = 0, addend = 0;
};

// The axes of the rows, outermost first, those joined that step as one; at least one.
std::vector<RowAxis> RowAxes(const device::BoundStep& step, const ConstantMatrix& matrix) {
  const int addend = matrix.epilogue.addend;
  std::vector<RowAxis> axes;  // innermost first
  for (size_t axis = matrix.row_axes; axis-- > 0;) {
    const RowAxis next = {step.domain[axis], step.reads[0].strides[axis],
                          step.writes[0].strides[axis],
                          addend < 0 ? 0 : step.reads[static_cast<size_t>(addend)].strides[axis]};
    if (next.extent == 1) continue;
    if (!axes.empty()) {
      RowAxis& inner = axes.back();
      if (next.x == inner.x * inner.extent && next.y == inner.y * inner.extent &&
          next.addend == inner.addend * inner.extent) {
        inner.extent *= next.extent;
        continue;
      }
    }
    axes.push_back(next);
  }
  if (axes.empty()) axes.emplace_back();
  return {axes.rbegin(), axes.rend()};
}

class BoundPackedMatrix final : public device::BoundKernel {
 public:
  BoundPackedMatrix(const ConstantMatrix& matrix, const device::BoundStep& step,
                    runtime::PackedWeights weights, threads::ThreadPool& pool)
      : matrix_(matrix),
        pool_(pool),
        x_(step.reads[0]),
        y_(step.writes[0]),
        weights_(std::move(weights)),
        epilogue_(matrix.epilogue, step),
        outer_(RowAxes(step, matrix)) {
    rows_ = outer_.back();
    outer_.pop_back();
    lines_ = 1;
    for (const RowAxis& axis : outer_) lines_ *= axis.extent;
    const int64_t panels = (matrix.columns + gemm::PanelColumns() - 1) / gemm::PanelColumns();
    // A single line is divided anywhere, several lines are not.
    work_ = lines_ == 1 ? gemm::Work{rows_.extent, 1, matrix.depth, panels}
                        : gemm::Work{lines_, rows_.extent, matrix.depth, panels};
  }

  // The matrix is packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    if (lines_ == 0 || rows_.extent == 0) return base::Ok();
    gemm::Epilogue epilogue = epilogue_.At(addresses);
    if (const auto& addend = epilogue_.addend()) {
      epilogue.addend = gemm::FloatsAt(addresses, *addend);
      epilogue.addend_stride = rows_.addend;
    }
    const gemm::Product product = {gemm::FloatsAt(addresses, x_),
                                   rows_.x,
                                   runtime::Floats(weights_),
                                   gemm::FloatsAt(addresses, y_),
                                   rows_.y,
                                   rows_.extent,
                                   matrix_.depth,
                                   matrix_.columns,
                                   {}};
    gemm::ForParts(work_, gemm::ChooseGrid(work_, pool_.thread_count()), pool_,
                   [&](int64_t /*thread*/, const gemm::Part& part) {
                     if (lines_ == 1) {
                       RunRows(product, epilogue, {}, part.first_block, part.end_block, part);
                       return;
                     }
                     for (int64_t line = part.first_block; line < part.end_block; ++line) {
                       RunRows(product, epilogue, BeginOf(line), 0, rows_.extent, part);
                     }
                   });
    return base::Ok();
  }

  std::string Detail() const override {
    return (lines_ == 1 ? std::string() : std::to_string(lines_) + " times ") +
           std::to_string(rows_.extent) + (rows_.extent == 1 ? " row, " : " rows, ") +
           processor::VectorName();
  }

 private:
  // The offsets at which a line begins.
  RowAxis BeginOf(int64_t line) const {
    RowAxis begin;
    for (auto axis = outer_.rbegin(); axis != outer_.rend(); ++axis) {
      const int64_t at = line % axis->extent;
      line /= axis->extent;
      begin.x += at * axis->x;
      begin.y += at * axis->y;
      begin.addend += at * axis->addend;
    }
    return begin;
  }

  // Rows [first, end) of the line that begins so, over the panels of a part.
  void RunRows(gemm::Product product, gemm::Epilogue epilogue, const RowAxis& begin, int64_t first,
               int64_t end, const gemm::Part& part) const {
    product.a += begin.x + first * rows_.x;
    product.c += begin.y + first * rows_.y;
    product.rows = end - first;
    if (epilogue.addend != nullptr) epilogue.addend += begin.addend + first * rows_.addend;
    gemm::Multiply(product, epilogue, part.first_panel, part.end_panel);
  }

  const ConstantMatrix matrix_;
  threads::ThreadPool& pool_;
  const device::BoundView x_, y_;
  const runtime::PackedWeights weights_;
  const gemm::BoundEpilogue epilogue_;
  std::vector<RowAxis> outer_;  // of which each element is a line
  RowAxis rows_;                // of a line
  int64_t lines_;
  gemm::Work work_;
};

class PackedMatrixMethod final : public Method {
 public:
  explicit PackedMatrixMethod(const ConstantMatrix& matrix) : matrix_(matrix) {}

  std::string_view name() const override { return "rows times packed matrix"; }
  BindResult Bind(const device::BoundStep& step, device::Addresses constants,
                  runtime::Runtime& runtime, runtime::WeightStore& store) const override {
    const device::BoundView& view = step.reads[1];
    const auto pack = [&](float* to) -> Status {
      ONNXIFI_ASSIGN_OR_RETURN(
          const runtime::AlignedConstant aligned,
          runtime::AlignedConstant::Create(runtime.memory(), constants[view.buffer],
                                           runtime::ConstantBytes(step, view.buffer)));
      const gemm::Matrix matrix = {reinterpret_cast<const float*>(aligned.data()) + view.offset,
                                   matrix_.w_inner, matrix_.w_column};
      const int64_t panels = (matrix_.columns + gemm::PanelColumns() - 1) / gemm::PanelColumns();
      runtime.pool().For(panels, /*grain=*/1, [&](int64_t begin, int64_t end) {
        gemm::PackPanels(matrix, matrix_.depth, matrix_.columns, begin, end, to);
      });
      return base::Ok();
    };
    ONNXIFI_ASSIGN_OR_RETURN(runtime::PackedWeights weights,
                             store.Find(static_cast<int>(Layout::kPanels), runtime.memory(),
                                        gemm::PackedSize(matrix_.depth, matrix_.columns), pack));
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<BoundPackedMatrix>(matrix_, step, std::move(weights), runtime.pool()));
  }

 private:
  const ConstantMatrix matrix_;
};

}  // namespace

std::shared_ptr<const Method> MakePackedMatrix(const ConstantMatrix& matrix) {
  return std::make_shared<PackedMatrixMethod>(matrix);
}

}  // namespace onnxifi::matmul
