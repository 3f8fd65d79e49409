// SPDX-License-Identifier: Apache-2.0
//
// Contract: matrix products, convolutions and transposed convolutions as one loop. Each output
// position is a row that gathers its K elements of A (for a convolution those under the kernel,
// padding left out); the columns are the outputs that share them. Floats accumulate in float64 and
// are rounded once, integers modulo 2^n, always in the same order.

#include <algorithm>
#include <utility>

#include "backends/core/program/operand_extents.h"
#include "backends/core/reference/compiled_step.h"
#include "backends/core/reference/dense_operand.h"
#include "backends/core/reference/epilogue.h"

namespace onnxifi::reference {
namespace {

using program::Contract;
using tensor::ElementType;
using tensor::Extents;

struct ContractExpressions {
  Expression a, b, roots;
  // The read that a prologue is without change, or -1.
  int a_direct, b_direct;
};

// Extents and strides of the loops, all as plain numbers.
struct Loops {
  Extents batch, m, n, inner;              // kMatMul
  Extents out_spatial, a_spatial, kernel;  // convolutions
  std::vector<int64_t> strides, dilations, pads;
  int64_t images = 1, group = 1;
  int64_t group_outputs = 0;   // M / group
  int64_t group_channels = 0;  // C / group
};

int64_t OffsetOf(int64_t position, std::span<const int64_t> extents,
                 std::span<const int64_t> strides) {
  int64_t offset = 0;
  for (size_t axis = extents.size(); axis-- > 0;) {
    offset += position % extents[axis] * strides[axis];
    position /= extents[axis];
  }
  return offset;
}

// Offsets of all positions of some axes, in row-major order.
std::vector<int64_t> OffsetTable(std::span<const int64_t> extents,
                                 std::span<const int64_t> strides) {
  std::vector<int64_t> table(static_cast<size_t>(tensor::ElementCount(extents)));
  for (size_t position = 0; position < table.size(); ++position) {
    table[position] = OffsetOf(static_cast<int64_t>(position), extents, strides);
  }
  return table;
}

// The product that one task computes: rows of A times columns of B, K deep.
struct Product {
  int64_t a_base;                         // offset of the batch or image and group in A
  const std::vector<int64_t>* b_depth;    // offset in B of each k
  const std::vector<int64_t>* b_columns;  // offset in B of each column
  int64_t b_base;
  int64_t out_base;
  int64_t out_row_stride, out_column_stride;
};

class BoundContract final : public device::BoundKernel {
 public:
  BoundContract(std::shared_ptr<const CompiledStep> owner, const ContractExpressions& expressions,
                const device::BoundStep& step, device::Parallel& parallel)
      : owner_(std::move(owner)),
        expressions_(expressions),
        form_(step.step->As<Contract>()->form),
        accumulator_(step.step->As<Contract>()->accumulator),
        a_dims_(expressions.a.BindDims(step.dims)),
        b_dims_(expressions.b.BindDims(step.dims)),
        a_extents_(program::OperandExtents(*step.step, 0, step.dims)),
        b_extents_(program::OperandExtents(*step.step, 1, step.dims)),
        epilogue_(expressions.roots, accumulator_, step, parallel),
        parallel_(parallel) {
    const Contract& contract = *step.step->As<Contract>();
    auto numbers = [&](const program::Dims& dims) {
      std::vector<int64_t> result;
      for (const program::Dim& dim : dims) result.push_back(step.Number(dim));
      return result;
    };
    loops_.inner = numbers(contract.inner);
    const Extents& out = step.domain;
    if (form_ == Contract::Form::kMatMul) {
      const auto m_begin = out.begin() + contract.batch_axes;
      loops_.batch.assign(out.begin(), m_begin);
      loops_.m.assign(m_begin, m_begin + contract.m_axes);
      loops_.n.assign(m_begin + contract.m_axes, out.end());
      return;
    }
    loops_.images = out[0];
    loops_.group = contract.group;
    loops_.group_outputs = out[1] / contract.group;
    loops_.group_channels = loops_.inner[0];
    loops_.out_spatial.assign(out.begin() + 2, out.end());
    loops_.kernel.assign(loops_.inner.begin() + 1, loops_.inner.end());
    loops_.a_spatial = numbers(contract.a_spatial);
    loops_.strides = contract.strides;
    loops_.dilations = contract.dilations;
    loops_.pads = numbers(contract.pads_begin);
  }

  // Backends bind this for steps that their own recipe cannot do after all.
  std::string Detail() const override { return "loops"; }

  base::Status Run(device::Addresses addresses) const override {
    if (epilogue_.count() == 0) return base::Ok();
    return Guarded([&] { return RunProduct(addresses); });
  }

 private:
  base::Status RunProduct(device::Addresses addresses) const {
    ONNXIFI_ASSIGN_OR_RETURN(
        DenseOperand a, MakeDense(expressions_.a, a_dims_, epilogue_.reads(), expressions_.a_direct,
                                  a_extents_, addresses, parallel_));
    ONNXIFI_ASSIGN_OR_RETURN(
        DenseOperand b, MakeDense(expressions_.b, b_dims_, epilogue_.reads(), expressions_.b_direct,
                                  b_extents_, addresses, parallel_));
    Scratch sums(tensor::SizeBytes(accumulator_, epilogue_.count()));
    switch (accumulator_) {
      case ElementType::kFloat32:
        ONNXIFI_RETURN_IF_ERROR((Multiply<float, double>(a, b, sums.data())));
        break;
      case ElementType::kFloat64:
        ONNXIFI_RETURN_IF_ERROR((Multiply<double, double>(a, b, sums.data())));
        break;
      case ElementType::kInt32:
      case ElementType::kUint32:
        ONNXIFI_RETURN_IF_ERROR((Multiply<uint32_t, uint32_t>(a, b, sums.data())));
        break;
      default:
        ONNXIFI_RETURN_IF_ERROR((Multiply<uint64_t, uint64_t>(a, b, sums.data())));
        break;
    }
    return epilogue_.Run(sums.data(), addresses);
  }

  // The sums of all outputs, dense over the domain.
  template <typename T, typename Sum>
  base::Status Multiply(const DenseOperand& a, const DenseOperand& b, std::byte* sums) const {
    const T* a_data = reinterpret_cast<const T*>(a.data);
    const T* b_data = reinterpret_cast<const T*>(b.data);
    T* out = reinterpret_cast<T*>(sums);
    return form_ == Contract::Form::kMatMul
               ? MultiplyMatrices<T, Sum>(a_data, a.strides, b_data, b.strides, out)
               : Convolve<T, Sum>(a_data, a.strides, b_data, b.strides, out);
  }

  template <typename T, typename Sum>
  base::Status MultiplyMatrices(const T* a, const Extents& a_strides, const T* b,
                                const Extents& b_strides, T* out) const {
    const size_t batch_axes = loops_.batch.size();
    const size_t m_axes = loops_.m.size();
    const size_t k_axes = loops_.inner.size();
    const auto a_all = std::span<const int64_t>(a_strides);
    const auto b_all = std::span<const int64_t>(b_strides);
    const std::vector<int64_t> rows = OffsetTable(loops_.m, a_all.subspan(batch_axes, m_axes));
    const std::vector<int64_t> a_depth =
        OffsetTable(loops_.inner, a_all.subspan(batch_axes + m_axes));
    const std::vector<int64_t> b_depth =
        OffsetTable(loops_.inner, b_all.subspan(batch_axes, k_axes));
    const std::vector<int64_t> columns = OffsetTable(loops_.n, b_all.subspan(batch_axes + k_axes));
    const auto row_count = static_cast<int64_t>(rows.size());
    const auto column_count = static_cast<int64_t>(columns.size());
    auto product = [&](int64_t batch) {
      return Product{OffsetOf(batch, loops_.batch, a_all.first(batch_axes)),
                     &b_depth,
                     &columns,
                     OffsetOf(batch, loops_.batch, b_all.first(batch_axes)),
                     batch * row_count * column_count,
                     column_count,
                     1};
    };
    auto gather = [&](const Product& p, int64_t row, Sum* elements, uint8_t* is_present) {
      const T* source = a + p.a_base + rows[static_cast<size_t>(row)];
      for (size_t k = 0; k < a_depth.size(); ++k)
        elements[k] = static_cast<Sum>(source[a_depth[k]]);
      std::fill_n(is_present, a_depth.size(), uint8_t{1});
    };
    return ForEachPanel<T, Sum>(tensor::ElementCount(loops_.batch), row_count, b, out, product,
                                gather);
  }

  template <typename T, typename Sum>
  base::Status Convolve(const T* a, const Extents& a_strides, const T* b, const Extents& b_strides,
                        T* out) const {
    const bool is_transposed = form_ == Contract::Form::kConvTranspose;
    const int64_t kernel_count = tensor::ElementCount(loops_.kernel);
    const int64_t row_count = tensor::ElementCount(loops_.out_spatial);
    const auto a_spatial_strides = std::span<const int64_t>(a_strides).subspan(2);
    // B's axes are [M, C / group, kernel], transposed [C, M / group, kernel].
    const int64_t b_output_stride = b_strides[is_transposed ? 1 : 0];
    const int64_t b_channel_stride = b_strides[is_transposed ? 0 : 1];
    std::vector<int64_t> depth_extents = {loops_.group_channels};
    std::vector<int64_t> depth_strides = {b_channel_stride};
    depth_extents.insert(depth_extents.end(), loops_.kernel.begin(), loops_.kernel.end());
    depth_strides.insert(depth_strides.end(), b_strides.begin() + 2, b_strides.end());
    const std::vector<int64_t> b_depth = OffsetTable(depth_extents, depth_strides);
    const Extents column_extents = {loops_.group_outputs};
    const Extents column_strides = {b_output_stride};
    const std::vector<int64_t> columns = OffsetTable(column_extents, column_strides);
    auto product = [&](int64_t index) {
      const int64_t image = index / loops_.group;
      const int64_t group = index % loops_.group;
      const int64_t b_base = group * (is_transposed ? loops_.group_channels * b_channel_stride
                                                    : loops_.group_outputs * b_output_stride);
      return Product{image * a_strides[0] + group * loops_.group_channels * a_strides[1],
                     &b_depth,
                     &columns,
                     b_base,
                     index * loops_.group_outputs * row_count,
                     1,
                     row_count};
    };
    auto gather = [&](const Product& p, int64_t row, Sum* elements, uint8_t* is_present) {
      for (int64_t position = 0; position < kernel_count; ++position) {
        int64_t offset = 0;
        const bool inside = InputOffset(row, position, a_spatial_strides, offset);
        for (int64_t c = 0; c < loops_.group_channels; ++c) {
          const int64_t k = c * kernel_count + position;
          is_present[k] = inside ? 1 : 0;
          elements[k] = inside ? static_cast<Sum>(a[p.a_base + c * a_strides[1] + offset]) : Sum{0};
        }
      }
    };
    return ForEachPanel<T, Sum>(loops_.images * loops_.group, row_count, b, out, product, gather);
  }

  // Where the kernel's position lies in A for an output position; false where it is padding.
  bool InputOffset(int64_t row, int64_t position, std::span<const int64_t> strides,
                   int64_t& offset) const {
    for (size_t axis = loops_.out_spatial.size(); axis-- > 0;) {
      // Unsigned, so that the strangest strides and pads wrap and then fail the comparison.
      const auto out = static_cast<uint64_t>(row % loops_.out_spatial[axis]);
      const auto tap = static_cast<uint64_t>(position % loops_.kernel[axis]);
      row /= loops_.out_spatial[axis];
      position /= loops_.kernel[axis];
      const auto stride = static_cast<uint64_t>(loops_.strides[axis]);
      const auto pad = static_cast<uint64_t>(loops_.pads[axis]);
      const uint64_t reach = tap * static_cast<uint64_t>(loops_.dilations[axis]);
      int64_t in;
      if (form_ == Contract::Form::kConv) {
        in = static_cast<int64_t>(out * stride + reach - pad);
      } else {
        const auto scaled = static_cast<int64_t>(out + pad - reach);
        if (scaled < 0 || scaled % loops_.strides[axis] != 0) return false;
        in = scaled / loops_.strides[axis];
      }
      if (in < 0 || in >= loops_.a_spatial[axis]) return false;
      offset += in * strides[axis];
    }
    return true;
  }

  // Computes `product_count` products of `row_count` rows, a panel of columns and a range of rows
  // at a time. `gather` fetches the K elements of a row of A.
  template <typename T, typename Sum, typename MakeProduct, typename Gather>
  base::Status ForEachPanel(int64_t product_count, int64_t row_count, const T* b, T* out,
                            const MakeProduct& make_product, const Gather& gather) const {
    constexpr int64_t kColumns = 64;
    constexpr int64_t kRows = 4;
    constexpr int64_t kRowsPerTask = 1024;
    if (product_count == 0 || row_count == 0) return base::Ok();
    const auto column_count = static_cast<int64_t>(make_product(0).b_columns->size());
    const int64_t panels = (column_count + kColumns - 1) / kColumns;
    const int64_t row_tasks = (row_count + kRowsPerTask - 1) / kRowsPerTask;
    return ForRange(
        parallel_, product_count * panels * row_tasks, 1, [&](int64_t begin, int64_t end) {
          std::vector<Sum> packed, elements;
          std::vector<uint8_t> is_present;
          int64_t packed_panel = -1;
          for (int64_t task = begin; task < end; ++task) {
            const int64_t panel = task / row_tasks;
            const Product p = make_product(panel / panels);
            const auto depth = static_cast<int64_t>(p.b_depth->size());
            const int64_t first_column = panel % panels * kColumns;
            const int64_t columns = std::min(kColumns, column_count - first_column);
            if (panel != packed_panel) {
              packed.resize(static_cast<size_t>(depth * columns));
              for (int64_t k = 0; k < depth; ++k) {
                const T* source = b + p.b_base + (*p.b_depth)[static_cast<size_t>(k)];
                for (int64_t c = 0; c < columns; ++c) {
                  packed[static_cast<size_t>(k * columns + c)] = static_cast<Sum>(
                      source[(*p.b_columns)[static_cast<size_t>(first_column + c)]]);
                }
              }
              packed_panel = panel;
            }
            elements.resize(static_cast<size_t>(depth * kRows));
            is_present.resize(static_cast<size_t>(depth * kRows));
            const int64_t first_row = task % row_tasks * kRowsPerTask;
            const int64_t end_row = std::min(row_count, first_row + kRowsPerTask);
            for (int64_t row = first_row; row < end_row; row += kRows) {
              const int64_t rows = std::min(kRows, end_row - row);
              for (int64_t r = 0; r < rows; ++r) {
                gather(p, row + r, elements.data() + r * depth, is_present.data() + r * depth);
              }
              Sum sums[kRows][kColumns] = {};
              for (int64_t k = 0; k < depth; ++k) {
                const Sum* __restrict factors = packed.data() + k * columns;
                for (int64_t r = 0; r < rows; ++r) {
                  // Left out rather than multiplied by zero: padding meets no infinity.
                  if (is_present[static_cast<size_t>(r * depth + k)] == 0) continue;
                  const Sum element = elements[static_cast<size_t>(r * depth + k)];
                  Sum* __restrict sum = sums[r];
                  if (columns == kColumns) {
                    for (int64_t c = 0; c < kColumns; ++c) sum[c] += element * factors[c];
                  } else {
                    for (int64_t c = 0; c < columns; ++c) sum[c] += element * factors[c];
                  }
                }
              }
              for (int64_t r = 0; r < rows; ++r) {
                T* target = out + p.out_base + (row + r) * p.out_row_stride +
                            first_column * p.out_column_stride;
                for (int64_t c = 0; c < columns; ++c) {
                  target[c * p.out_column_stride] = static_cast<T>(sums[r][c]);
                }
              }
            }
          }
        });
  }

  std::shared_ptr<const CompiledStep> owner_;  // of the expressions
  const ContractExpressions& expressions_;
  Contract::Form form_;
  ElementType accumulator_;
  std::vector<int64_t> a_dims_, b_dims_;
  Extents a_extents_, b_extents_;
  Loops loops_;
  Epilogue epilogue_;
  device::Parallel& parallel_;
};

class ContractStep final : public CompiledStep {
 public:
  explicit ContractStep(ContractExpressions expressions) : expressions_(std::move(expressions)) {}

  std::unique_ptr<device::BoundKernel> Bind(const device::BoundStep& step,
                                            device::Parallel& parallel) const override {
    return std::make_unique<BoundContract>(shared_from_this(), expressions_, step, parallel);
  }

 private:
  ContractExpressions expressions_;
};

// The read that `root` is at its own coordinates, or -1.
int DirectRead(const program::ExprPool& pool, program::ExprId root) {
  const program::ExprNode& node = pool[root];
  const bool is_direct = node.op == program::ExprOp::kLoad && node.operands.empty();
  return is_direct ? static_cast<int>(node.payload) : -1;
}

}  // namespace

CompileResult CompileContract(const program::Program& program, const program::Step& step) {
  const Contract& contract = *step.As<Contract>();
  switch (contract.accumulator) {
    case ElementType::kFloat32:
    case ElementType::kFloat64:
    case ElementType::kInt32:
    case ElementType::kUint32:
    case ElementType::kInt64:
    case ElementType::kUint64:
      break;
    default:
      return base::Status(base::Code::kUnsupportedDatatype,
                          "A contraction cannot accumulate in " +
                              std::string(tensor::Name(contract.accumulator)) +
                              "; it can in float32, float64, int32, uint32, int64 and uint64.");
  }
  const program::ExprPool& pool = program.exprs;
  ONNXIFI_ASSIGN_OR_RETURN(Expression a, Expression::Compile(pool, {contract.a_prologue}));
  ONNXIFI_ASSIGN_OR_RETURN(Expression b, Expression::Compile(pool, {contract.b_prologue}));
  ONNXIFI_ASSIGN_OR_RETURN(Expression roots, Expression::Compile(pool, contract.roots));
  const int a_direct = DirectRead(pool, contract.a_prologue);
  const int b_direct = DirectRead(pool, contract.b_prologue);
  return std::shared_ptr<const CompiledStep>(std::make_shared<ContractStep>(
      ContractExpressions{std::move(a), std::move(b), std::move(roots), a_direct, b_direct}));
}

}  // namespace onnxifi::reference
