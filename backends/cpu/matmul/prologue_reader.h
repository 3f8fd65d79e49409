// SPDX-License-Identifier: Apache-2.0
//
// PrologueReader: where what the prologue of a product loads for its constant matrix lies.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_PROLOGUE_READER_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_PROLOGUE_READER_H_

#include <cstddef>
#include <cstdint>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/matmul/quantized_product.h"

namespace onnxifi::matmul {

// Of a matrix product, whose facts outlive this.
class PrologueReader {
 public:
  // `position`: the coordinate by which a load selects one of several matrices, of which there are
  // `entries`; none for kNoExpr.
  PrologueReader(const device::Facts& facts, const ConstantMatrix& matrix,
                 program::ExprId position = program::kNoExpr, program::Dim entries = 0)
      : pool_(facts.program.exprs),
        step_(facts.step),
        matrix_(matrix),
        position_(position),
        entries_(entries) {}

  // The load that `id` is, before casts that keep every value. UNSUPPORTED_* with what is in the
  // way.
  base::Result<PerBlock> Describe(program::ExprId id) const;

 private:
  // By the coordinate `id`, which is that of an axis, or of its blocks, or the position.
  base::Status WalkBy(program::ExprId id, int64_t stride, PerBlock& found) const;
  // `stride` for each `block` elements of an axis of the matrix.
  base::Status Walk(size_t axis, int64_t block, int64_t stride, PerBlock& found) const;
  // Whether the view is padded by nothing but the bounds of the position.
  bool HasOwnBounds(const program::View& view, const program::ExprNode& load) const;

  const program::ExprPool& pool_;
  const program::Step& step_;
  const ConstantMatrix matrix_;
  const program::ExprId position_;
  const program::Dim entries_;
};

// The difference of two numbers of 8 bits that `id` is, in a type that holds it; else `id`.
program::ExprId DifferenceOf(const program::ExprPool& pool, program::ExprId id);

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_PROLOGUE_READER_H_
