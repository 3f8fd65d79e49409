// SPDX-License-Identifier: Apache-2.0
//
// SmallProducts: B is packed into panels that stay in a cache, on the stack of the thread that
// multiplies them; products that share it come one after the other.

#include "backends/cpu/matmul/small_products.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/runtime/plain_operand.h"

namespace onnxifi::matmul {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::Contract;
using program::Dim;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;

// Floats of a packed B: what the stack of a thread can bear, and a part of an L2 cache.
constexpr int64_t kMaxPacked = 16384;

// What becomes of a sum.
struct Scaling {
  enum class Kind : uint8_t { kNone, kTimes, kDividedBy, kOther };
  Kind kind = Kind::kNone;
  float number = 1;
  int read = -1;  // of which one element is the number
};

// The number that a leaf is, or the read whose only element it is.
bool TakeNumber(const device::Facts& facts, ExprId id, Scaling& scaling) {
  const ExprNode& node = facts.program.exprs[id];
  if (node.op == ExprOp::kConstant) {
    scaling.number = static_cast<float>(std::bit_cast<tensor::Scalar>(node.payload).f);
    return true;
  }
  if (node.op != ExprOp::kLoad || !node.operands.empty()) return false;
  scaling.read = static_cast<int>(node.payload);
  const program::View& view = facts.step.reads[node.payload];
  return view.guards.empty() && std::all_of(view.strides.begin(), view.strides.end(),
                                            [](const Dim& stride) { return stride == Dim(0); });
}

Scaling FindScaling(const device::Facts& facts) {
  const program::ExprPool& pool = facts.program.exprs;
  const ExprNode& root = pool[facts.step.As<Contract>()->roots[0]];
  if (root.op == ExprOp::kAccumulator) return {};
  Scaling scaling{.kind = Scaling::Kind::kOther};
  if (root.op != ExprOp::kMul && root.op != ExprOp::kDiv) return scaling;
  if (root.type != tensor::ElementType::kFloat32) return scaling;
  for (const size_t sum : {size_t{0}, size_t{1}}) {
    if (sum == 1 && root.op == ExprOp::kDiv) break;
    if (pool[root.operands[sum]].op != ExprOp::kAccumulator) continue;
    if (TakeNumber(facts, root.operands[1 - sum], scaling)) {
      scaling.kind = root.op == ExprOp::kMul ? Scaling::Kind::kTimes : Scaling::Kind::kDividedBy;
      return scaling;
    }
  }
  return scaling;
}

class BoundSmallProducts final : public device::BoundKernel {
 public:
  BoundSmallProducts(const device::BoundStep& step, const Scaling& scaling,
                     threads::ThreadPool& pool)
      : pool_(pool), scaling_(scaling), a_(step.reads[0]), b_(step.reads[1]), c_(step.writes[0]) {
    if (scaling.read >= 0) number_ = step.reads[static_cast<size_t>(scaling.read)];
    const Contract& contract = *step.step->As<Contract>();
    const auto batch_axes = static_cast<size_t>(contract.batch_axes);
    batch_.assign(step.domain.begin(), step.domain.begin() + contract.batch_axes);
    rows_ = step.domain[batch_axes];
    columns_ = step.domain[batch_axes + 1];
    depth_ = step.Number(contract.inner[0]);
  }

  // Whether it is faster than a kernel for large matrices.
  bool IsWorthwhile() const {
    const int64_t count = tensor::ElementCount(batch_);
    if (scaling_.kind == Scaling::Kind::kOther) return false;
    if (count < 1 || rows_ < 1 || columns_ < 1 || depth_ < 1) return false;
    // Each alone first: a product of extents may be no number.
    if (columns_ > kMaxPacked || depth_ > kMaxPacked || rows_ > kMaxPacked) return false;
    if (gemm::PackedSize(depth_, columns_) > kMaxPacked) return false;
    // Few products leave threads idle, unless all of them are less than another thread is worth.
    return count >= 2 * pool_.thread_count() || count * CostOfOne() <= kWorthAThread;
  }

  Status Run(device::Addresses addresses) const override {
    const float* a = FloatsAt(addresses, a_);
    const float* b = FloatsAt(addresses, b_);
    float* c = FloatsAt(addresses, c_);
    const float number = number_ ? *FloatsAt(addresses, *number_) : scaling_.number;
    const int64_t grain = std::max<int64_t>(1, kWorthAThread / CostOfOne());
    pool_.For(tensor::ElementCount(batch_), grain, [&](int64_t begin, int64_t end) {
      alignas(64) float packed[kMaxPacked];
      const float* packed_from = nullptr;
      for (int64_t product = begin; product < end; ++product) {
        const float* matrix = b + OffsetOf(b_, product);
        if (matrix != packed_from) {
          Pack(matrix, packed);
          packed_from = matrix;
        }
        Multiply(a + OffsetOf(a_, product), packed, number, c + OffsetOf(c_, product));
      }
    });
    return base::Ok();
  }
  std::string Detail() const override {
    return std::to_string(tensor::ElementCount(batch_)) + " products where they lie";
  }

 private:
  // Nanoseconds that are worth another thread, and that one product takes, roughly.
  static constexpr int64_t kWorthAThread = 3000;
  int64_t CostOfOne() const { return depth_ * columns_ * (rows_ + 16) / 32 + 50; }

  // At any address: a caller's memory, or a constant inside a model.
  static float* FloatsAt(device::Addresses addresses, const device::BoundView& view) {
    return reinterpret_cast<float*>(addresses[view.buffer]) + view.offset;
  }

  int64_t OffsetOf(const device::BoundView& view, int64_t product) const {
    int64_t offset = 0;
    for (size_t axis = batch_.size(); axis-- > 0;) {
      offset += product % batch_[axis] * view.strides[axis];
      product /= batch_[axis];
    }
    return offset;
  }

  void Pack(const float* matrix, float* packed) const {
    const size_t axis = batch_.size();
    const int64_t panels = gemm::PackedSize(1, columns_) / gemm::PanelColumns();
    gemm::PackPanels({matrix, b_.strides[axis], b_.strides[axis + 1]}, depth_, columns_,
                     /*first_panel=*/0, panels, packed);
  }

  void Multiply(const float* a, const float* packed, float number, float* c) const {
    const size_t axis = batch_.size();
    const int64_t c_stride = c_.strides[axis];
    const gemm::Product product = {a,     a_.strides[axis], packed,   c, c_stride,
                                   rows_, depth_,           columns_, {}};
    const int64_t panels = gemm::PackedSize(1, columns_) / gemm::PanelColumns();
    gemm::Multiply(product, {}, /*first_panel=*/0, panels);
    if (scaling_.kind == Scaling::Kind::kNone) return;
    for (int64_t row = 0; row < rows_; ++row, c += c_stride) {
      if (scaling_.kind == Scaling::Kind::kTimes) {
        for (int64_t column = 0; column < columns_; ++column) c[column] *= number;
      } else {
        for (int64_t column = 0; column < columns_; ++column) c[column] /= number;
      }
    }
  }

  threads::ThreadPool& pool_;
  const Scaling scaling_;
  const device::BoundView a_, b_, c_;
  std::optional<device::BoundView> number_;
  std::vector<int64_t> batch_;
  int64_t rows_ = 0, columns_ = 0, depth_ = 0;
};

class SmallProductsMethod final : public Method {
 public:
  explicit SmallProductsMethod(const Scaling& scaling) : scaling_(scaling) {}

  std::string_view name() const override { return "small products"; }
  BindResult Bind(const device::BoundStep& step, device::Addresses /*constants*/,
                  runtime::Runtime& runtime, runtime::WeightStore& /*store*/) const override {
    auto bound = std::make_unique<BoundSmallProducts>(step, scaling_, runtime.pool());
    if (!bound->IsWorthwhile()) return std::unique_ptr<device::BoundKernel>();
    return std::unique_ptr<device::BoundKernel>(std::move(bound));
  }

 private:
  const Scaling scaling_;
};

}  // namespace

Result<std::shared_ptr<const Method>> DescribeSmallProducts(const device::Facts& facts) {
  const program::Step& step = facts.step;
  const Contract* contract = step.As<Contract>();
  if (contract == nullptr || contract->form != Contract::Form::kMatMul) {
    return Status(Code::kUnsupportedOperator, "The step is no matrix product.");
  }
  if (contract->accumulator != tensor::ElementType::kFloat32 || step.writes.size() != 1 ||
      step.writes[0].type != tensor::ElementType::kFloat32) {
    return Status(Code::kUnsupportedDatatype,
                  "The product has something else than one float32 result.");
  }
  if (facts.IsConstant(step.reads[1])) {
    return Status(Code::kUnsupportedAttribute, "The matrix is a constant, which is packed once.");
  }
  if (contract->batch_axes < 1 || contract->m_axes != 1 || contract->n_axes != 1 ||
      contract->inner.size() != 1) {
    return Status(Code::kUnsupportedShape,
                  "The product is no batch of products of one axis each way.");
  }
  for (int operand = 0; operand < 2; ++operand) {
    ONNXIFI_RETURN_IF_ERROR(runtime::CheckPlain(facts.program, step, operand));
  }
  const auto batch_axes = static_cast<size_t>(contract->batch_axes);
  if (step.reads[0].strides[batch_axes + 1] != Dim(1) ||
      step.writes[0].strides[batch_axes + 1] != Dim(1)) {
    return Status(Code::kUnsupportedShape,
                  "The inner elements, or the results, do not lie next to each other.");
  }
  return std::shared_ptr<const Method>(std::make_shared<SmallProductsMethod>(FindScaling(facts)));
}

}  // namespace onnxifi::matmul
