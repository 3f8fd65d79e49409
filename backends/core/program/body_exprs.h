// SPDX-License-Identifier: Apache-2.0
//
// Every expression that a step's body evaluates, for passes that rewrite or inspect them whatever
// the family.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_BODY_EXPRS_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_BODY_EXPRS_H_

#include "backends/core/program/step.h"

namespace onnxifi::program {

// Pointers into `step`, valid until it changes; those that are kNoExpr are left out. Bodies of
// control steps are not entered.
base::SmallVector<ExprId*, 8> BodyExprs(Step& step);
ExprIds BodyExprs(const Step& step);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_BODY_EXPRS_H_
