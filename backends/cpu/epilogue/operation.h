// SPDX-License-Identifier: Apache-2.0
//
// Operation: the epilogue of a Contract or Window, which the program has as an expression, as a
// list of operations on the accumulator. What kernels do before they store their sums is written in
// these words: oneDNN's appended operations (onednn/post_ops.h) and those of the products of this
// backend's own (gemm/step_epilogue.h).

#ifndef ONNXIFI_BACKENDS_CPU_EPILOGUE_OPERATION_H_
#define ONNXIFI_BACKENDS_CPU_EPILOGUE_OPERATION_H_

#include <cstdint>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/program/program.h"

namespace onnxifi::epilogue {

enum class Kind : uint8_t {
  // x and y, the element of a read of the step at the same place.
  kAdd,
  kSubtract,  // x - y
  kMultiply,
  kDivide,  // x / y
  kMaximum,
  kMinimum,
  // x alone.
  kLinear,     // alpha * x + beta
  kClip,       // min(max(x, alpha), beta), either of which may be infinite
  kLeakyRelu,  // x < 0 ? alpha * x : x
  kAbs,
  kSquare,
  kTanh,
  kLogistic,   // 1 / (1 + exp(-x))
  kSwish,      // x * logistic(alpha * x)
  kHardSwish,  // x * max(0, min(1, alpha * x + beta))
  kGelu,       // x / 2 * (1 + erf(x / sqrt(2)))
};

struct Operation {
  Kind kind;
  float alpha = 0;
  float beta = 0;
  int read = -1;  // of the step, where there is a y

  bool is_binary() const { return read >= 0; }
};

// What the reads of an operation may be: float32, or also bfloat16 that is widened.
enum class ReadTypes : uint8_t { kFloat32, kFloat32OrBfloat16 };

// What turns the accumulator into `root`, first operation first. UNSUPPORTED_ATTRIBUTE naming the
// operation that is none of the list, UNSUPPORTED_DATATYPE where one is not on float32. Not in the
// list are those that kernels do only roughly: exponentials near 1 lose digits that the reference
// keeps, so Elu and its like stay with the Map. A NaN that meets a bound may come
// out as the bound.
base::Result<std::vector<Operation>> OperationsOf(const program::Program& program,
                                                  const program::Step& step, program::ExprId root,
                                                  ReadTypes types = ReadTypes::kFloat32);

}  // namespace onnxifi::epilogue

#endif  // ONNXIFI_BACKENDS_CPU_EPILOGUE_OPERATION_H_
