// SPDX-License-Identifier: Apache-2.0
//
// KeptPrecision: a node of bfloat16 or float16 computes in float32 and rounds. Where its reader
// takes the value before it is rounded, a conversion there and back is saved, and results come
// closer to those of exact arithmetic. That is one of the fast algorithms, which a caller can
// switch off. For float16 only in networks, which multiply by weights: what ONNX expects of its
// functions of several float16 nodes is rounded after each, and results of more precision lie
// further from that than its tolerance.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_KEPT_PRECISION_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_KEPT_PRECISION_H_

#include <cstddef>
#include <cstdint>

#include "backends/core/program/program.h"

namespace onnxifi::program {

// What a step that reads narrow floats may take unrounded. It writes the same type, so that all it
// computes is rounded again, and it has no operation at which a small difference becomes a large
// one.
class KeptPrecision {
 public:
  // What steps are part of: what may be a function of ONNX, or what is certainly more.
  enum class Scope : uint8_t { kFunction, kNetwork };

  static bool IsKept(ElementType type, Scope scope);

  KeptPrecision(const Program& program, const Step& reader, Scope scope = Scope::kFunction);

  // The float32 that `producer` rounds to `root`, its result. `cast` is the node of the reader that
  // widens it again. kNoExpr where that may not be left out: another type, or a rounding of the
  // model's own, which is told by float32 that the producer reads.
  ExprId Unrounded(ExprId cast, const Step& producer, ExprId root) const;
  // Whether all that the reader does with elements of read `number` is to widen them, or to copy
  // them to its result. Where they lie may be computed, but not from such elements.
  bool MayWiden(size_t number) const;

 private:
  const Program& program_;
  const Step& reader_;
  bool may_read_unrounded_ = false;
};

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_KEPT_PRECISION_H_
