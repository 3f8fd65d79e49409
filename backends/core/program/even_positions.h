// SPDX-License-Identifier: Apache-2.0
//
// EvenPositions: constant positions that go on evenly, as those of windows that an exporter cuts
// out: what is gathered at them is a view.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_EVEN_POSITIONS_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_EVEN_POSITIONS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/core/program/program.h"

namespace onnxifi::program {

// At coordinate c of a domain: first + the sum of steps[a] * c[a].
struct EvenPositions {
  int64_t first = 0;
  std::vector<int64_t> steps;
};

// The integers of a view of a constant, all within [0, entries) once negative ones are counted from
// its end. Nothing where they go on otherwise, or where that is not known.
std::optional<EvenPositions> FindEvenPositions(const Program& program, const View& positions,
                                               const Shape& domain, const Dim& entries);

// Has each Map that only gathers at such positions read a view instead.
void ReadAtEvenPositions(Program& program);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_EVEN_POSITIONS_H_
