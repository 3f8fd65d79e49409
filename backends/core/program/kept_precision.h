// SPDX-License-Identifier: Apache-2.0
//
// KeptPrecision: a node of float16 or bfloat16 computes in float32 and rounds. Where its only
// reader takes the value before it is rounded, a conversion there and back is saved, and results
// come closer to those of exact arithmetic. That is one of the fast algorithms, which a caller can
// switch off.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_KEPT_PRECISION_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_KEPT_PRECISION_H_

#include "backends/core/program/program.h"

namespace onnxifi::program {

// What a step that reads narrow floats may take unrounded. It writes the same type, so that all it
// computes is rounded again, and it has no operation at which a small difference becomes a large
// one.
class KeptPrecision {
 public:
  // float16 and bfloat16, in which networks compute; to narrower types they are quantized.
  static bool IsNarrow(ElementType type);

  KeptPrecision(const Program& program, const Step& reader);

  // The float32 that `producer` rounds to `root`, its result. `cast` is the node of the reader that
  // widens it again. kNoExpr where that may not be left out: another type, or a rounding of the
  // model's own, which is told by float32 that the producer reads.
  ExprId Unrounded(ExprId cast, const Step& producer, ExprId root) const;
  // Whether all that the reader has of read `number` are elements at its own place, which it
  // widens, or copies to its result.
  bool MayWiden(size_t number) const;

 private:
  const Program& program_;
  const Step& reader_;
  bool may_read_unrounded_ = false;
};

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_KEPT_PRECISION_H_
