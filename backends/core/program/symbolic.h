// SPDX-License-Identifier: Apache-2.0
//
// Symbolic evaluation of steps: what a Map over a few integers computes, as Dims. This is how shape
// computations (Shape, Gather, Concat, arithmetic, ...) become extents without a rule per operator.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_SYMBOLIC_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_SYMBOLIC_H_

#include <optional>
#include <unordered_map>
#include <vector>

#include "backends/core/program/program.h"

namespace onnxifi::program {

// The elements of small integer and bool buffers that are known as expressions. Belongs to one
// lowering.
class SymbolicValues {
 public:
  static constexpr int64_t kMaxElements = 64;

  explicit SymbolicValues(const Program& program) : program_(program) {}

  // Notes what `step`, just appended to the program, wrote, as far as it can be told.
  void Observe(const Step& step);
  // Notes element values of a buffer directly (the numbers read by a Cut).
  void Set(BufferId buffer, Dims elements);
  // The elements of an operand of integer or bool type, row-major; nothing if any is not known.
  std::optional<Dims> Find(const Operand& operand) const;

 private:
  // Whether any element that a Map with these reads computes could be known.
  bool KnowsSomethingOf(const std::vector<View>& reads) const;
  std::optional<Dim> Element(const View& view, const std::vector<int64_t>& coordinates) const;
  std::optional<Dim> Evaluate(const Step& step, ExprId id, const std::vector<int64_t>& coordinates,
                              std::unordered_map<ExprId, std::optional<Dim>>& done) const;
  std::optional<Dim> Compute(const Step& step, ExprId id, const std::vector<int64_t>& coordinates,
                             std::unordered_map<ExprId, std::optional<Dim>>& done) const;

  const Program& program_;
  std::unordered_map<BufferId, std::vector<std::optional<Dim>>> known_;
};

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_SYMBOLIC_H_
