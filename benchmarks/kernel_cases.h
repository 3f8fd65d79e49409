// SPDX-License-Identifier: Apache-2.0
//
// Cases of the benchmarks of generated kernels: one step each, over buffers of float32 unless their
// names say another type, as networks have them. What the list is: kernel_benchmark.cc.

#ifndef ONNXIFI_BENCHMARKS_KERNEL_CASES_H_
#define ONNXIFI_BENCHMARKS_KERNEL_CASES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "backends/core/program/program.h"
#include "backends/core/tensor/element_type.h"

namespace onnxifi::benchmarks {

using program::Buffer;
using program::Expr;
using program::Shape;

// float32, row-major: m x k times k x n.
struct GemmExtents {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool is_b_transposed = false;
};

// One step. Integers are positions among what it writes.
struct Case {
  program::Program program;
  program::Step step;
  double flops = 0;                 // 0: held against copies
  std::optional<GemmExtents> gemm;  // of plain products, which others have too
  int64_t bytes = 0;

  program::View Add(Buffer::Kind kind, const Shape& shape,
                    tensor::ElementType type = tensor::ElementType::kFloat32) {
    Buffer buffer{.kind = kind, .type = type, .shape = shape};
    bytes += tensor::Product(shape).constant() * tensor::BitWidth(type) / 8;
    if (kind == Buffer::Kind::kConstant) {
      buffer.index = static_cast<int>(program.constants.size());
    }
    return program::DenseView(program.AddBuffer(buffer), type, shape);
  }
  Expr Read(const program::View& view) {
    step.reads.push_back(view);
    return Load(program.exprs, view.type, static_cast<int>(step.reads.size()) - 1);
  }
  void Write(const Shape& shape, tensor::ElementType type = tensor::ElementType::kFloat32) {
    step.domain = shape;
    step.writes = {Add(Buffer::Kind::kTemporary, shape, type)};
  }
};

Case MakeProduct(int64_t m, int64_t n, int64_t k, bool is_transposed, Buffer::Kind b_kind);
// Operands and output of one type, sums in float32; of one batch the second operand is constant.
Case MakeBatchedProduct(tensor::ElementType type, int64_t batch, int64_t m, int64_t n, int64_t k);
// With bias and Relu, as networks have it.
Case MakeConvolution(int64_t channels, int64_t size, int64_t outputs, int64_t kernel,
                     int64_t stride, int64_t group,
                     tensor::ElementType type = tensor::ElementType::kFloat32);
// Twice as large, as decoders have it.
Case MakeTransposed(int64_t channels, int64_t size, int64_t outputs, int64_t kernel);
Case MakeMap(const Shape& shape, const std::function<Expr(Expr, Expr)>& formula);
Case MakeCopy(int64_t rows, int64_t columns);
// Axis k of the result is axis order[k] of what it is made of.
Case MakePermutation(const Shape& shape, const std::vector<size_t>& order,
                     tensor::ElementType type = tensor::ElementType::kFloat32);
Case MakeRowSums(int64_t rows, int64_t columns);
Case MakeSoftmax(int64_t rows, int64_t columns);
// Without scale and bias.
Case MakeLayerNorm(int64_t rows, int64_t columns);
Case MakePooling(int64_t channels, int64_t size, int64_t kernel, int64_t stride);
// Heads of `width`, each query over all keys; as many heads of queries as `sharing` says have the
// same keys and values. Held against a copy where queries are few.
struct AttentionExtents {
  int64_t heads = 1;
  int64_t sharing = 1;
  int64_t queries = 1;
  int64_t keys = 1;
  int64_t width = 64;
};
Case MakeAttention(const AttentionExtents& extents,
                   tensor::ElementType type = tensor::ElementType::kFloat32);
// Sums of `updates` at positions that repeat, each row of 1 element, in `targets` elements.
Case MakeScatter(int64_t updates, int64_t targets);
Case MakeTopK(int64_t rows, int64_t columns, int64_t k);
Case MakeNonZero(int64_t rows, int64_t columns);

}  // namespace onnxifi::benchmarks

#endif  // ONNXIFI_BENCHMARKS_KERNEL_CASES_H_
