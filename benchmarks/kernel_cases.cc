// SPDX-License-Identifier: Apache-2.0
//
// Steps of products, convolutions, elements, rows and searches.

#include "benchmarks/kernel_cases.h"

#include <utility>

namespace onnxifi::benchmarks {
namespace {

using program::Contract;
using program::ExprPool;
using tensor::ElementType;

constexpr ElementType kFloat = ElementType::kFloat32;

program::Reduction::State Sum(ExprPool& pool, Expr element) {
  const Expr state = State(pool, kFloat, 0);
  return {kFloat, Constant(pool, kFloat, 0).id(), (state + element).id(),
          (state + Other(pool, kFloat, 0)).id()};
}

}  // namespace

Case MakeProduct(int64_t m, int64_t n, int64_t k, bool is_transposed, Buffer::Kind b_kind) {
  Case product;
  Contract contract;
  contract.m_axes = contract.n_axes = 1;
  contract.inner = {k};
  contract.a_prologue = product.Read(product.Add(Buffer::Kind::kTemporary, {m, k})).id();
  program::View b = product.Add(b_kind, is_transposed ? Shape{n, k} : Shape{k, n});
  if (is_transposed) std::swap(b.strides[0], b.strides[1]);
  contract.b_prologue = product.Read(b).id();
  contract.roots = {Accumulator(product.program.exprs, kFloat).id()};
  product.Write({m, n});
  product.step.body = std::move(contract);
  product.flops = 2.0 * static_cast<double>(m * n * k);
  product.gemm = GemmExtents{m, n, k, is_transposed};
  return product;
}

Case MakeBatchedProduct(ElementType type, int64_t batch, int64_t m, int64_t n, int64_t k) {
  Case product;
  Contract contract;
  contract.batch_axes = contract.m_axes = contract.n_axes = 1;
  contract.inner = {k};
  const auto operand = [&](Buffer::Kind kind, const Shape& shape) {
    return Cast(product.Read(product.Add(kind, shape, type)), kFloat).id();
  };
  contract.a_prologue = operand(Buffer::Kind::kTemporary, {batch, m, k});
  contract.b_prologue =
      operand(batch == 1 ? Buffer::Kind::kConstant : Buffer::Kind::kTemporary, {batch, k, n});
  contract.roots = {Cast(Accumulator(product.program.exprs, kFloat), type).id()};
  product.Write({batch, m, n}, type);
  product.step.body = std::move(contract);
  product.flops = 2.0 * static_cast<double>(batch * m * n * k);
  return product;
}

Case MakeConvolution(int64_t channels, int64_t size, int64_t outputs, int64_t kernel,
                     int64_t stride, int64_t group, ElementType type) {
  Case convolution;
  const int64_t out = (size - 1) / stride + 1;
  Contract contract;
  contract.form = Contract::Form::kConv;
  contract.group = group;
  contract.inner = {channels / group, kernel, kernel};
  contract.a_spatial = {size, size};
  contract.strides = {stride, stride};
  contract.dilations = {1, 1};
  contract.pads_begin = {kernel / 2, kernel / 2};
  const auto read = [&](const program::View& view) { return Cast(convolution.Read(view), kFloat); };
  contract.a_prologue =
      read(convolution.Add(Buffer::Kind::kTemporary, {1, channels, size, size}, type)).id();
  contract.b_prologue = read(convolution.Add(Buffer::Kind::kConstant,
                                             {outputs, channels / group, kernel, kernel}, type))
                            .id();
  program::View bias = convolution.Add(Buffer::Kind::kConstant, {outputs}, type);
  bias.strides = {0, 1, 0, 0};
  const Expr sum = Accumulator(convolution.program.exprs, kFloat) + read(bias);
  contract.roots = {Cast(Maximum(sum, Like(sum, 0)), type).id()};
  convolution.Write({1, outputs, out, out}, type);
  const int64_t channels_of_group = channels / group;
  convolution.flops =
      2.0 * static_cast<double>(out * out * outputs * channels_of_group * kernel * kernel);
  convolution.step.body = std::move(contract);
  return convolution;
}

Case MakeTransposed(int64_t channels, int64_t size, int64_t outputs, int64_t kernel) {
  Case transposed;
  Contract contract;
  contract.form = Contract::Form::kConvTranspose;
  contract.inner = {channels, kernel, kernel};
  contract.a_spatial = {size, size};
  contract.strides = {2, 2};
  contract.dilations = {1, 1};
  contract.pads_begin = {(kernel - 1) / 2, (kernel - 1) / 2};
  contract.a_prologue =
      transposed.Read(transposed.Add(Buffer::Kind::kTemporary, {1, channels, size, size})).id();
  contract.b_prologue =
      transposed.Read(transposed.Add(Buffer::Kind::kConstant, {channels, outputs, kernel, kernel}))
          .id();
  contract.roots = {Accumulator(transposed.program.exprs, kFloat).id()};
  transposed.Write({1, outputs, 2 * size, 2 * size});
  transposed.flops = 2.0 * static_cast<double>(size * size * channels * outputs * kernel * kernel);
  transposed.step.body = std::move(contract);
  return transposed;
}

Case MakeMap(const Shape& shape, const std::function<Expr(Expr, Expr)>& formula) {
  Case map;
  const Expr a = map.Read(map.Add(Buffer::Kind::kTemporary, shape));
  const Expr b = map.Read(map.Add(Buffer::Kind::kTemporary, shape));
  const program::ExprId root = formula(a, b).id();
  map.Write(shape);
  map.step.body = program::Map{{root}};
  return map;
}

Case MakeCopy(int64_t rows, int64_t columns) {
  Case map;
  const program::ExprId root = map.Read(map.Add(Buffer::Kind::kTemporary, {rows, columns})).id();
  map.Write({rows, columns});
  map.step.body = program::Map{{root}};
  return map;
}

Case MakePermutation(const Shape& shape, const std::vector<size_t>& order, ElementType type) {
  Case map;
  const program::View dense = map.Add(Buffer::Kind::kTemporary, shape, type);
  program::View view = dense;
  Shape permuted = shape;
  for (size_t k = 0; k < order.size(); ++k) {
    view.strides[k] = dense.strides[order[k]];
    permuted[k] = shape[order[k]];
  }
  const program::ExprId root = map.Read(view).id();
  map.Write(permuted, type);
  map.step.body = program::Map{{root}};
  return map;
}

Case MakeRowSums(int64_t rows, int64_t columns) {
  Case sums;
  ExprPool& pool = sums.program.exprs;
  program::Reduce reduce;
  reduce.axes = 1;
  reduce.reduction.states = {
      Sum(pool, sums.Read(sums.Add(Buffer::Kind::kTemporary, {rows, columns})))};
  reduce.roots = {State(pool, kFloat, 0).id()};
  sums.Write({rows});
  sums.step.domain = {rows, columns};
  sums.step.body = std::move(reduce);
  return sums;
}

Case MakeSoftmax(int64_t rows, int64_t columns) {
  Case softmax;
  ExprPool& pool = softmax.program.exprs;
  const Expr x = softmax.Read(softmax.Add(Buffer::Kind::kTemporary, {rows, columns}));
  const Expr state = State(pool, kFloat, 0);
  const Expr low = Like(x, -3e38);
  program::Row row;
  row.axes = 1;
  row.passes.push_back(
      {{{{kFloat, low.id(), Maximum(state, x).id(), Maximum(state, Other(pool, kFloat, 0)).id()}}},
       {state.id()}});
  const Expr power = Unary(program::ExprOp::kExp, x - RowResult(pool, kFloat, 0, 0));
  row.passes.push_back({{{Sum(pool, power)}}, {state.id()}});
  row.roots = {(power / RowResult(pool, kFloat, 1, 0)).id()};
  softmax.Write({rows, columns});
  softmax.step.body = std::move(row);
  return softmax;
}

Case MakeLayerNorm(int64_t rows, int64_t columns) {
  Case norm;
  ExprPool& pool = norm.program.exprs;
  const Expr x = norm.Read(norm.Add(Buffer::Kind::kTemporary, {rows, columns}));
  const Expr count = Like(x, static_cast<double>(columns));
  const Expr sum = State(pool, kFloat, 0) / count;
  program::Row row;
  row.axes = 1;
  row.passes.push_back({{{Sum(pool, x)}}, {sum.id()}});
  const Expr centred = x - RowResult(pool, kFloat, 0, 0);
  row.passes.push_back({{{Sum(pool, centred * centred)}}, {sum.id()}});
  const Expr variance = RowResult(pool, kFloat, 1, 0) + Like(x, 1e-5);
  row.roots = {(centred / Unary(program::ExprOp::kSqrt, variance)).id()};
  norm.Write({rows, columns});
  norm.step.body = std::move(row);
  return norm;
}

Case MakePooling(int64_t channels, int64_t size, int64_t kernel, int64_t stride) {
  Case pooling;
  const int64_t out = (size + 2 * (kernel / 2) - kernel) / stride + 1;
  pooling.step.reads = {pooling.Add(Buffer::Kind::kTemporary, {1, channels, size, size})};
  program::Window window;
  window.in_spatial = {size, size};
  window.kernel = {kernel, kernel};
  window.strides = {stride, stride};
  window.dilations = {1, 1};
  window.pads_begin = window.pads_end = {kernel / 2, kernel / 2};
  window.roots = {Accumulator(pooling.program.exprs, kFloat).id()};
  pooling.Write({1, channels, out, out});
  pooling.step.body = std::move(window);
  return pooling;
}

Case MakeAttention(const AttentionExtents& extents, ElementType type) {
  Case one;
  const auto& [heads, sharing, queries, keys, width] = extents;
  program::Attention attention;
  attention.keys = keys;
  attention.width = width;
  const Shape domain = {heads, sharing, queries, width};
  const auto load = [&](const program::View& view) { return Cast(one.Read(view), kFloat).id(); };
  attention.query_prologue = load(one.Add(Buffer::Kind::kTemporary, domain, type));
  const auto add_shared = [&] {
    program::View view = one.Add(Buffer::Kind::kTemporary, {heads, keys, width}, type);
    view.strides.insert(view.strides.begin() + 1, 0);
    return view;
  };
  program::View of_keys = add_shared();
  std::swap(of_keys.strides[2], of_keys.strides[3]);
  attention.key_prologue = load(of_keys);
  attention.value_prologue = load(add_shared());
  const Expr sum = Accumulator(one.program.exprs, kFloat);
  attention.score = (sum * Like(sum, 0.125)).id();
  attention.roots = {Cast(sum, type).id()};
  one.Write(domain, type);
  one.step.body = std::move(attention);
  constexpr int64_t kFewQueries = 16;
  if (queries > kFewQueries) {
    one.flops = 4.0 * static_cast<double>(heads * sharing * queries * keys * width);
  }
  return one;
}

Case MakeScatter(int64_t updates, int64_t targets) {
  Case one;
  one.step.domain = {updates};
  one.step.reads = {one.Add(Buffer::Kind::kTemporary, {updates}),
                    one.Add(Buffer::Kind::kTemporary, {updates}, ElementType::kInt64)};
  one.step.writes = {one.Add(Buffer::Kind::kTemporary, {targets})};
  one.step.body = program::Index{.kind = program::Index::Kind::kScatter,
                                 .combine = program::Index::Combine::kAdd,
                                 .target = {targets}};
  return one;
}

Case MakeTopK(int64_t rows, int64_t columns, int64_t k) {
  Case largest;
  largest.step.reads = {largest.Add(Buffer::Kind::kTemporary, {rows, columns})};
  largest.step.domain = {rows, columns};
  largest.step.writes = {largest.Add(Buffer::Kind::kTemporary, {rows, k}),
                         largest.Add(Buffer::Kind::kTemporary, {rows, k}, ElementType::kInt64)};
  largest.step.body = program::Index{.kind = program::Index::Kind::kTopK, .k = k};
  return largest;
}

Case MakeNonZero(int64_t rows, int64_t columns) {
  Case found;
  found.step.reads = {found.Add(Buffer::Kind::kTemporary, {rows, columns})};
  found.step.domain = {rows, columns};
  found.step.writes = {
      found.Add(Buffer::Kind::kTemporary, {2, rows * columns}, ElementType::kInt64)};
  found.step.body = program::Index{.kind = program::Index::Kind::kNonZero};
  return found;
}

}  // namespace onnxifi::benchmarks
