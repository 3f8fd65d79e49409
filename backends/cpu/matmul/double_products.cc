// SPDX-License-Identifier: Apache-2.0
//
// DoubleProducts: threads take a panel of columns and a chunk of rows each. B is packed block by
// block of its depth, on the stack of the thread that multiplies it.

#include "backends/cpu/matmul/double_products.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "backends/cpu/gemm/double_gemm.h"
#include "backends/cpu/matmul/recipe.h"
#include "backends/cpu/runtime/plain_operand.h"
#include "backends/cpu/threads/thread_pool.h"

namespace onnxifi::matmul {
namespace {

using base::Code;
using base::Status;
using program::Contract;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;
using tensor::Extents;

// Of B that are packed at a time: with kMaxDoubleColumns a part of an L2 cache, and what the stack
// of a thread can bear.
constexpr int64_t kDepthOfBlock = 256;
// Rows that pay for packing a panel of B again.
constexpr int64_t kMinRows = 48;

// What becomes of a sum: scale * sum + addend_scale * addend.
struct Affine {
  double scale = 1;
  double addend_scale = 1;
  int addend = -1;  // the read, over the domain; none

  bool IsNothing() const { return scale == 1 && addend < 0; }
};

double NumberOf(const ExprNode& constant) {
  return std::bit_cast<tensor::Scalar>(constant.payload).f;
}

// The node that `id` is a multiple of, itself at least, and by which number.
ExprId FindMultiple(const program::ExprPool& pool, ExprId id, double& scale) {
  const ExprNode& node = pool[id];
  if (node.op != ExprOp::kMul) return id;
  for (const size_t k : {size_t{0}, size_t{1}}) {
    if (pool[node.operands[k]].op != ExprOp::kConstant) continue;
    scale = NumberOf(pool[node.operands[k]]);
    return node.operands[1 - k];
  }
  return id;
}

std::optional<Affine> FindAffine(const device::Facts& facts) {
  const program::ExprPool& pool = facts.program.exprs;
  const ExprId root = facts.step.As<Contract>()->roots[0];
  Affine affine;
  if (pool[FindMultiple(pool, root, affine.scale)].op == ExprOp::kAccumulator) return affine;
  if (pool[root].op != ExprOp::kAdd) return std::nullopt;
  const program::ExprIds& terms = pool[root].operands;
  for (const size_t k : {size_t{0}, size_t{1}}) {
    affine = {};
    const ExprNode& sum = pool[FindMultiple(pool, terms[k], affine.scale)];
    const ExprNode& load = pool[FindMultiple(pool, terms[1 - k], affine.addend_scale)];
    if (sum.op != ExprOp::kAccumulator || load.op != ExprOp::kLoad || !load.operands.empty()) {
      continue;
    }
    affine.addend = static_cast<int>(load.payload);
    const program::View& view = facts.step.reads[load.payload];
    if (view.type == ElementType::kFloat64 && view.guards.empty()) return affine;
  }
  return std::nullopt;
}

// Axes that one number runs through, the last one fastest.
struct Axes {
  Extents extents;
  Extents strides;

  int64_t Count() const { return tensor::ElementCount(extents); }
  int64_t OffsetOf(int64_t number) const {
    int64_t offset = 0;
    for (size_t axis = extents.size(); axis-- > 0;) {
      offset += number % extents[axis] * strides[axis];
      number /= extents[axis];
    }
    return offset;
  }
  // From one number to the next, if that is always the same.
  bool IsEven(int64_t& step) const {
    step = extents.empty() ? 0 : strides.back();
    int64_t stride = step;
    for (size_t axis = extents.size(); axis-- > 0;) {
      if (extents[axis] == 1) continue;
      if (strides[axis] != stride) return false;
      stride *= extents[axis];
    }
    return true;
  }
};

Axes AxesOf(const Extents& extents, const device::BoundView& view, size_t first, size_t count) {
  const auto begin = static_cast<std::ptrdiff_t>(first);
  const auto end = static_cast<std::ptrdiff_t>(first + count);
  return {{extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(count)},
          {view.strides.begin() + begin, view.strides.begin() + end}};
}

class BoundDoubleProducts final : public device::BoundKernel {
 public:
  BoundDoubleProducts(const device::BoundStep& step, const Affine& affine,
                      threads::ThreadPool& pool)
      : pool_(pool),
        affine_(affine),
        a_(step.reads[0]),
        b_(step.reads[1]),
        c_(step.writes[0]),
        addend_(affine.addend < 0 ? c_ : step.reads[static_cast<size_t>(affine.addend)]) {
    const Contract& contract = *step.step->As<Contract>();
    const auto batch = static_cast<size_t>(contract.batch_axes);
    const auto rows = static_cast<size_t>(contract.m_axes);
    const size_t column_axis = batch + rows;
    const Extents batch_extents(step.domain.begin(),
                                step.domain.begin() + static_cast<std::ptrdiff_t>(batch));
    const Extents row_extents(step.domain.begin() + static_cast<std::ptrdiff_t>(batch),
                              step.domain.begin() + static_cast<std::ptrdiff_t>(column_axis));
    batch_of_a_ = AxesOf(batch_extents, a_, 0, batch);
    batch_of_b_ = AxesOf(batch_extents, b_, 0, batch);
    batch_of_c_ = AxesOf(batch_extents, c_, 0, batch);
    rows_of_a_ = AxesOf(row_extents, a_, batch, rows);
    rows_of_c_ = AxesOf(row_extents, c_, batch, rows);
    batch_of_addend_ = AxesOf(batch_extents, addend_, 0, batch);
    rows_of_addend_ = AxesOf(row_extents, addend_, batch, rows);
    depth_ = contract.inner.empty() ? 1 : step.Number(contract.inner[0]);
    if (!contract.inner.empty()) {
      a_inner_ = a_.strides[column_axis];
      b_inner_ = b_.strides[batch];
    }
    if (contract.n_axes == 1) {
      columns_ = step.domain[column_axis];
      b_column_ = b_.strides[batch + contract.inner.size()];
      c_column_ = c_.strides[column_axis];
      addend_column_ = addend_.strides[column_axis];
    }
    are_rows_even_ = rows_of_a_.IsEven(a_row_) && rows_of_c_.IsEven(c_row_);
    DivideWork();
  }

  Status Run(device::Addresses addresses) const override {
    const auto* const a = reinterpret_cast<const double*>(addresses[a_.buffer]) + a_.offset;
    const auto* const b = reinterpret_cast<const double*>(addresses[b_.buffer]) + b_.offset;
    auto* const c = reinterpret_cast<double*>(addresses[c_.buffer]) + c_.offset;
    const auto* const addend =
        reinterpret_cast<const double*>(addresses[addend_.buffer]) + addend_.offset;
    pool_.For(items_, grain_, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t panel = item % panels_;
        const int64_t chunk = item / panels_ % chunks_;
        const int64_t product = item / panels_ / chunks_;
        double* const result = c + batch_of_c_.OffsetOf(product);
        RunItem(a + batch_of_a_.OffsetOf(product), b + batch_of_b_.OffsetOf(product), result, chunk,
                panel);
        if (!affine_.IsNothing()) {
          Finish(addend + batch_of_addend_.OffsetOf(product), result, chunk, panel);
        }
      }
    });
    return base::Ok();
  }

  std::string Detail() const override {
    return std::to_string(chunks_ * batch_of_a_.Count()) + " chunks of rows, " +
           std::to_string(panels_) + " panels";
  }

 private:
  void DivideWork() {
    const int64_t width = gemm::DoubleColumns();
    rows_ = rows_of_a_.Count();
    panels_ = (columns_ + width - 1) / width;
    const int64_t batches = batch_of_a_.Count();
    // Rows are divided where panels alone are too few for the threads.
    const int64_t wanted = int64_t{pool_.thread_count()} * threads::ThreadPool::kPartsPerThread;
    const int64_t per_chunk = std::max<int64_t>(1, batches * panels_);
    chunks_ = std::clamp<int64_t>(wanted / per_chunk, 1, std::max<int64_t>(1, rows_ / kMinRows));
    items_ = batches * panels_ * chunks_;
    if (rows_ == 0) items_ = 0;
    // About 8 multiply-adds in a nanosecond; another thread is worth some microseconds.
    constexpr int64_t kWorthAThread = 3000 * 8;
    const int64_t rows_of_item = rows_ / chunks_ + kMinRows / 4;
    grain_ = kWorthAThread / std::max<int64_t>(1, rows_of_item * width * (depth_ + 1)) + 1;
  }

  void RunItem(const double* a, const double* b, double* c, int64_t chunk, int64_t panel) const {
    alignas(64) double packed[kDepthOfBlock * gemm::kMaxDoubleColumns];
    const int64_t width = gemm::DoubleColumns();
    const int64_t first_row = rows_ * chunk / chunks_;
    const int64_t end_row = rows_ * (chunk + 1) / chunks_;
    const int64_t column = panel * width;
    gemm::DoubleProduct product = {};
    product.b = packed;
    product.a.row = a_row_;
    product.a.column = a_inner_;
    product.c_row = c_row_;
    product.c_column = c_column_;
    product.columns = std::min(width, columns_ - column);
    int64_t k = 0;
    do {  // once for a depth of 0, which gives zeros
      product.depth = std::min(kDepthOfBlock, depth_ - k);
      product.is_added = k > 0;
      gemm::PackDoubles({b + k * b_inner_ + column * b_column_, b_inner_, b_column_}, product.depth,
                        product.columns, packed);
      product.rows = are_rows_even_ ? end_row - first_row : 1;
      for (int64_t row = first_row; row < end_row; row += product.rows) {
        product.a.data = a + rows_of_a_.OffsetOf(row) + k * a_inner_;
        product.c = c + rows_of_c_.OffsetOf(row) + column * c_column_;
        gemm::MultiplyDoubles(product);
      }
      k += product.depth;
    } while (k < depth_);
  }

  // What is done to the sums of an item.
  void Finish(const double* addend, double* c, int64_t chunk, int64_t panel) const {
    const int64_t width = gemm::DoubleColumns();
    const int64_t column = panel * width;
    const int64_t columns = std::min(width, columns_ - column);
    for (int64_t row = rows_ * chunk / chunks_; row < rows_ * (chunk + 1) / chunks_; ++row) {
      double* const to = c + rows_of_c_.OffsetOf(row) + column * c_column_;
      const double* const add = addend + rows_of_addend_.OffsetOf(row) + column * addend_column_;
      for (int64_t n = 0; n < columns; ++n) {
        double number = gemm::DoubleAt(to + n * c_column_) * affine_.scale;
        if (affine_.addend >= 0) {
          number += gemm::DoubleAt(add + n * addend_column_) * affine_.addend_scale;
        }
        std::memcpy(to + n * c_column_, &number, sizeof(number));
      }
    }
  }

  threads::ThreadPool& pool_;
  const Affine affine_;
  const device::BoundView a_, b_, c_;
  const device::BoundView addend_;  // C where there is none
  Axes batch_of_a_, batch_of_b_, batch_of_c_, batch_of_addend_;
  Axes rows_of_a_, rows_of_c_, rows_of_addend_;
  int64_t rows_ = 0, depth_ = 0, columns_ = 1;
  int64_t a_row_ = 0, a_inner_ = 0, b_inner_ = 0, b_column_ = 0, c_row_ = 0, c_column_ = 0;
  int64_t addend_column_ = 0;
  bool are_rows_even_ = false;
  int64_t panels_ = 0, chunks_ = 1, items_ = 0, grain_ = 1;
};

class DoubleProductsMethod final : public Method {
 public:
  explicit DoubleProductsMethod(const Affine& affine) : affine_(affine) {}

  std::string_view name() const override { return "float64 product"; }
  BindResult Bind(const device::BoundStep& step, device::Addresses /*constants*/,
                  runtime::Runtime& runtime, runtime::WeightStore& /*store*/) const override {
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<BoundDoubleProducts>(step, affine_, runtime.pool()));
  }

 private:
  const Affine affine_;
};

}  // namespace

runtime::RecipeResult SelectDoubleProducts(const device::Facts& facts) {
  const program::Step& step = facts.step;
  const Contract* contract = step.As<Contract>();
  if (contract == nullptr || contract->form != Contract::Form::kMatMul) {
    return Status(Code::kUnsupportedOperator, "The step is no matrix product.");
  }
  if (contract->accumulator != ElementType::kFloat64 || step.writes.size() != 1 ||
      step.writes[0].type != ElementType::kFloat64) {
    return Status(Code::kUnsupportedDatatype,
                  "The product has something else than one float64 result.");
  }
  const std::optional<Affine> affine = FindAffine(facts);
  if (!affine) {
    return Status(Code::kUnsupportedAttribute,
                  "The sums are not only scaled and added to a tensor of float64.");
  }
  if (contract->n_axes > 1 || contract->inner.size() > 1) {
    return Status(Code::kUnsupportedShape, "The product has " + std::to_string(contract->n_axes) +
                                               " axes of columns and " +
                                               std::to_string(contract->inner.size()) +
                                               " of depth; the kernel has one of each at most.");
  }
  for (int operand = 0; operand < 2; ++operand) {
    ONNXIFI_RETURN_IF_ERROR(
        runtime::CheckPlain(facts.program, step, operand, ElementType::kFloat64));
  }
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<Recipe>(Recipe::Methods{std::make_shared<DoubleProductsMethod>(*affine)}));
}

}  // namespace onnxifi::matmul
