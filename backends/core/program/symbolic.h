// SPDX-License-Identifier: Apache-2.0
//
// Symbolic evaluation of steps: what a Map over a few integers computes, as Dims. This is how shape
// computations (Shape, Gather, Concat, arithmetic, ...) become extents without a rule per operator.
// Floats are followed as quotients, since exporters halve extents in floats and round up.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_SYMBOLIC_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_SYMBOLIC_H_

#include <optional>
#include <unordered_map>
#include <vector>

#include "backends/core/program/program.h"

namespace onnxifi::program {

// An element that is known. Of an integer or bool the denominator is 1. A float is exactly the
// quotient where the denominator is a power of two, else the quotient rounded once.
struct KnownElement {
  Dim numerator;
  int64_t denominator = 1;  // positive
};

// The elements of small buffers of integers, bools, float32 and float64 that are known as
// expressions. Belongs to one lowering.
class SymbolicValues {
 public:
  static constexpr int64_t kMaxElements = 64;

  explicit SymbolicValues(const Program& program) : program_(program) {}

  // Notes what `step`, just appended to the program, wrote, as far as it can be told.
  void Observe(const Step& step);
  // Notes element values of a buffer directly (the numbers read by a Cut).
  void Set(BufferId buffer, Dims elements);
  // The elements of an operand, row-major; nothing if any is not known or known to be no integer.
  std::optional<Dims> Find(const Operand& operand) const;

 private:
  // Whether any element that a Map with these reads computes could be known.
  bool KnowsSomethingOf(const std::vector<View>& reads) const;
  using Known = std::optional<KnownElement>;
  Known Element(const View& view, const std::vector<int64_t>& coordinates) const;
  Known Evaluate(const Step& step, ExprId id, const std::vector<int64_t>& coordinates,
                 std::unordered_map<ExprId, Known>& done) const;
  Known Compute(const Step& step, ExprId id, const std::vector<int64_t>& coordinates,
                std::unordered_map<ExprId, Known>& done) const;

  const Program& program_;
  std::unordered_map<BufferId, std::vector<Known>> known_;
};

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_SYMBOLIC_H_
