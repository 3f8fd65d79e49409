// SPDX-License-Identifier: Apache-2.0
//
// MultiplyAll: a product each row of which has a matrix of its own becomes one of all rows with all
// matrices, of which the results are selected.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_PRODUCTS_OF_ALL_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_PRODUCTS_OF_ALL_H_

#include <optional>
#include <vector>

#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/gathering.h"
#include "backends/core/program/program.h"

namespace onnxifi::program {

// The steps in place of `step`, a Contract whose operand B is `found` and which stores its sums
// alone. Nothing where copies of the selected matrices are fewer than the matrices, where symbols
// leave that open and matrices are many, or where the operands are of another form.
std::optional<std::vector<Step>> MultiplyAll(Program& program, const BufferUses& uses,
                                             const Step& step, const Gathering& found);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_PRODUCTS_OF_ALL_H_
