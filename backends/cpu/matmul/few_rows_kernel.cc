// SPDX-License-Identifier: Apache-2.0
//
// The kernels of FewRows: the threads divide the matrix so that each reads long stretches of memory
// that are its own: columns where they lie whole, else inner elements, whose sums are added up
// afterwards. Threads that take turns line by line read half of it twice.

#include "backends/cpu/matmul/few_rows_kernel.h"

#include <algorithm>
#include <string>
#include <utility>

#include "backends/cpu/gemm/matrix_vector.h"
#include "backends/cpu/gemm/vector_matrix.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::matmul {
namespace {

using base::Status;

// Floats of a matrix; smaller ones are done before another thread has begun.
constexpr int64_t kWorthAThread = 32768;

// What both kernels know.
class BoundFewRows : public device::BoundKernel {
 public:
  BoundFewRows(const FewRowsProduct& product, int64_t rows, const device::BoundStep& step,
               runtime::PackedWeights own, threads::ThreadPool& pool)
      : product_(product),
        rows_(rows),
        pool_(pool),
        x_(step.reads[0]),
        y_(step.writes[0]),
        w_(step.reads[1]),
        own_(std::move(own)),
        epilogue_(product.epilogue, step) {}

  bool ReadsAtRun(int read) const override { return read != 1 || own_ == nullptr; }

  std::string Detail() const override {
    return std::to_string(rows_) + (rows_ == 1 ? " row" : " rows") + " where the matrix lies, " +
           processor::VectorName();
  }

 protected:
  gemm::Epilogue EpilogueAt(device::Addresses addresses) const {
    gemm::Epilogue epilogue = epilogue_.At(addresses);
    if (const auto& addend = epilogue_.addend()) {
      epilogue.addend = gemm::FloatsAt(addresses, *addend);
      epilogue.addend_stride = RowStride(*addend);
    }
    return epilogue;
  }
  const float* Matrix(device::Addresses addresses) const {
    if (own_ == nullptr) return gemm::FloatsAt(addresses, w_);
    return runtime::Floats(own_) + (product_.is_uniform ? 0 : w_.offset);
  }
  int64_t XStride() const { return RowStride(x_); }
  int64_t YStride() const { return RowStride(y_); }

  const FewRowsProduct product_;
  const int64_t rows_;
  threads::ThreadPool& pool_;
  const device::BoundView x_, y_;

 private:
  // The product of two vectors has no axis of rows.
  int64_t RowStride(const device::BoundView& view) const {
    return rows_ == 1 ? 0 : view.strides[product_.row_axis];
  }

  const device::BoundView w_;
  const runtime::PackedWeights own_;
  const gemm::BoundEpilogue epilogue_;
};

// Each result is a product of two stretches of memory.
class OverColumns final : public BoundFewRows {
 public:
  using BoundFewRows::BoundFewRows;

  Status Run(device::Addresses addresses) const override {
    const gemm::Epilogue epilogue = EpilogueAt(addresses);
    const gemm::MatrixVector product = {gemm::FloatsAt(addresses, x_),
                                        XStride(),
                                        Matrix(addresses),
                                        product_.w_stride,
                                        gemm::FloatsAt(addresses, y_),
                                        YStride(),
                                        rows_,
                                        product_.depth};
    // A line of results at least, so that threads share none.
    constexpr int64_t kGrain = 16;
    pool_.For((product_.columns + kGrain - 1) / kGrain,
              kWorthAThread / (kGrain * product_.depth) + 1, [&](int64_t begin, int64_t end) {
                gemm::MultiplyVectors(product, epilogue, begin * kGrain,
                                      std::min(product_.columns, end * kGrain));
              });
    return base::Ok();
  }
};

// Rows of the matrix, times an element each, are added up.
class OverRows final : public BoundFewRows {
 public:
  OverRows(const FewRowsProduct& product, int64_t rows, const device::BoundStep& step,
           runtime::PackedWeights own, runtime::Runtime& runtime)
      : BoundFewRows(product, rows, step, std::move(own), runtime.pool()),
        work_memory_(runtime.work_memory()),
        // Of the extents alone: results do not depend on the number of threads.
        parts_(std::clamp<int64_t>(product.depth / kMinDepth, 1, kMaxParts)),
        row_floats_((product.columns + kLine - 1) / kLine * kLine) {
    const int64_t per_part = (pool_.thread_count() + parts_ - 1) / parts_;
    const int64_t wanted =
        std::max(std::min(per_part, row_floats_ / kMinColumns), row_floats_ / kMaxColumns);
    block_ = (row_floats_ / std::max<int64_t>(1, wanted) + kLine - 1) / kLine * kLine;
    blocks_ = (product.columns + block_ - 1) / block_;
    work_memory_.Reserve(SizeBytes());
  }

  Status Run(device::Addresses addresses) const override {
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             work_memory_.Lend(SizeBytes()));
    auto* const sums = reinterpret_cast<float*>(lease.data());
    const gemm::VectorMatrix product = {gemm::FloatsAt(addresses, x_), XStride(), Matrix(addresses),
                                        product_.w_stride, rows_};
    const gemm::PartialSums partial = {sums, row_floats_, rows_ * row_floats_, parts_};
    const int64_t grain = kWorthAThread / (product_.depth / parts_ * block_) + 1;
    pool_.For(parts_ * blocks_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t part = piece / blocks_, first = piece % blocks_ * block_;
        gemm::SumRows(product, part * product_.depth / parts_, (part + 1) * product_.depth / parts_,
                      first, std::min(product_.columns, first + block_),
                      sums + part * partial.part_stride, partial.stride);
      }
    });
    const gemm::Epilogue epilogue = EpilogueAt(addresses);
    float* const y = gemm::FloatsAt(addresses, y_);
    pool_.For(row_floats_ / kLine, kMaxColumns / kLine, [&](int64_t begin, int64_t end) {
      gemm::FinishSums(partial, epilogue, rows_, begin * kLine,
                       std::min(product_.columns, end * kLine), y, YStride());
    });
    return base::Ok();
  }

 private:
  static constexpr int64_t kMaxParts = 2;
  static constexpr int64_t kMinDepth = 64;      // of a part
  static constexpr int64_t kLine = 16;          // floats
  static constexpr int64_t kMinColumns = 256;   // a stretch of a KiB
  static constexpr int64_t kMaxColumns = 4096;  // sums that stay in an L1 cache

  int64_t SizeBytes() const {
    return parts_ * rows_ * row_floats_ * static_cast<int64_t>(sizeof(float));
  }

  runtime::WorkMemory& work_memory_;
  const int64_t parts_;
  const int64_t row_floats_;
  int64_t block_ = 0, blocks_ = 0;  // columns at a time, and how often
};

}  // namespace

std::unique_ptr<device::BoundKernel> BindFewRows(const FewRowsProduct& product, int64_t rows,
                                                 const device::BoundStep& step,
                                                 runtime::PackedWeights own,
                                                 runtime::Runtime& runtime) {
  if (product.has_whole_rows) {
    return std::make_unique<OverRows>(product, rows, step, std::move(own), runtime);
  }
  return std::make_unique<OverColumns>(product, rows, step, std::move(own), runtime.pool());
}

}  // namespace onnxifi::matmul
