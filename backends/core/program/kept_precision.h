// SPDX-License-Identifier: Apache-2.0
//
// KeptPrecision: where a step that computes in float32 and rounds to float16 or bfloat16 becomes a
// part of its reader, the reader may take what was not rounded yet: nobody else sees the rounded
// value, and a conversion there and back is saved. Results come closer to those of exact
// arithmetic, so that this is one of the fast algorithms that a caller can switch off.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_KEPT_PRECISION_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_KEPT_PRECISION_H_

#include <unordered_set>

#include "backends/core/program/program.h"

namespace onnxifi::program {

// What a reader may take unrounded: values that end up in the narrow type again, through operations
// without steps at which a small difference would become a large one. What a reader casts to a
// wider type, to go on in that, is rounded as the model says.
class KeptPrecision {
 public:
  // float16 and bfloat16, in which networks compute; to narrower types they are quantized.
  static bool IsNarrow(ElementType type);

  KeptPrecision(const Program& program, const Step& reader);

  // What `root`, by which a load of the reader is replaced, rounds to a narrow float, where `cast`,
  // a node of the reader over that load, widens it to the same type again; kNoExpr where `cast`
  // does anything else, or may not.
  ExprId Unrounded(ExprId cast, ExprId root) const;
  // Whether all that the reader has of read `number` are elements at its own place, which may be
  // unrounded: it widens them, or copies them to a result of their type.
  bool MayWiden(size_t number) const;

 private:
  const Program& program_;
  const Step& reader_;
  bool may_drop_ = false;
  std::unordered_set<ExprId> exposed_;  // what reaches a result without being narrow on the way
};

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_KEPT_PRECISION_H_
