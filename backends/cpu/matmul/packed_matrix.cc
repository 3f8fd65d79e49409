// SPDX-License-Identifier: Apache-2.0
//
// PackedMatrix: the threads divide a single line of rows by rows and columns, several by lines.

#include "backends/cpu/matmul/packed_matrix.h"

#include <string>
#include <utility>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/grid.h"
#include "backends/cpu/matmul/row_lines.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::matmul {
namespace {

using base::Status;

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
        lines_(step, matrix) {
    const int64_t panels = (matrix.columns + gemm::PanelColumns() - 1) / gemm::PanelColumns();
    // A single line is divided anywhere, several lines are not.
    work_ = lines_.count() == 1 ? gemm::Work{lines_.rows(), 1, matrix.depth, panels}
                                : gemm::Work{lines_.count(), lines_.rows(), matrix.depth, panels};
  }

  // The matrix is packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    if (lines_.count() == 0 || lines_.rows() == 0) return base::Ok();
    gemm::Epilogue epilogue = epilogue_.At(addresses);
    if (const auto& addend = epilogue_.addend()) {
      epilogue.addend = gemm::FloatsAt(addresses, *addend);
      epilogue.addend_stride = lines_.distance().addend;
    }
    const gemm::Product product = {gemm::FloatsAt(addresses, x_),
                                   lines_.distance().x,
                                   runtime::Floats(weights_),
                                   gemm::FloatsAt(addresses, y_),
                                   lines_.distance().y,
                                   lines_.rows(),
                                   matrix_.depth,
                                   matrix_.columns,
                                   {}};
    gemm::ForParts(work_, gemm::ChooseGrid(work_, pool_.thread_count()), pool_,
                   [&](int64_t /*thread*/, const gemm::Part& part) {
                     if (lines_.count() == 1) {
                       RunRows(product, epilogue, {}, part.first_block, part.end_block, part);
                       return;
                     }
                     for (int64_t line = part.first_block; line < part.end_block; ++line) {
                       RunRows(product, epilogue, lines_.BeginOf(line), 0, lines_.rows(), part);
                     }
                   });
    return base::Ok();
  }

  std::string Detail() const override {
    return (lines_.count() == 1 ? std::string() : std::to_string(lines_.count()) + " times ") +
           std::to_string(lines_.rows()) + (lines_.rows() == 1 ? " row, " : " rows, ") +
           processor::VectorName();
  }

 private:
  // Rows [first, end) of the line that begins so, over the panels of a part.
  void RunRows(gemm::Product product, gemm::Epilogue epilogue, const RowLines::Offsets& begin,
               int64_t first, int64_t end, const gemm::Part& part) const {
    product.a += begin.x + first * lines_.distance().x;
    product.c += begin.y + first * lines_.distance().y;
    product.rows = end - first;
    if (epilogue.addend != nullptr)
      epilogue.addend += begin.addend + first * epilogue.addend_stride;
    gemm::Multiply(product, epilogue, part.first_panel, part.end_panel);
  }

  const ConstantMatrix matrix_;
  threads::ThreadPool& pool_;
  const device::BoundView x_, y_;
  const runtime::PackedWeights weights_;
  const gemm::BoundEpilogue epilogue_;
  const RowLines lines_;
  gemm::Work work_;
};

class PackedMatrixMethod final : public Method {
 public:
  explicit PackedMatrixMethod(const ConstantMatrix& matrix) : matrix_(matrix) {}

  std::string_view name() const override { return "rows times packed matrix"; }
  BindResult Bind(const device::BoundStep& step, device::Addresses constants,
                  runtime::Runtime& runtime, runtime::WeightStore& store) const override {
    const auto pack = [&](const float* weights, float* packed) {
      const gemm::Matrix matrix = {weights, matrix_.w_inner, matrix_.w_column};
      const int64_t panels = (matrix_.columns + gemm::PanelColumns() - 1) / gemm::PanelColumns();
      runtime.pool().For(panels, /*grain=*/1, [&](int64_t begin, int64_t end) {
        gemm::PackPanels(matrix, matrix_.depth, matrix_.columns, begin, end, packed);
      });
    };
    ONNXIFI_ASSIGN_OR_RETURN(
        runtime::PackedWeights weights,
        runtime::FindPacked(step, 1, constants, runtime.memory(), store,
                            static_cast<int>(Layout::kPanels),
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
