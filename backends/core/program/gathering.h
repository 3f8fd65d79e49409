// SPDX-License-Identifier: Apache-2.0
//
// Gathering: finds a Map that copies entries of a tensor, selected by data, as Gather is lowered.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_GATHERING_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_GATHERING_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/program.h"

namespace onnxifi::program {

// Each coordinate of the tensor but
// one is a coordinate of the domain, and that one is a position that another read has. Positions
// out of range give 0.
struct Gathering {
  const Step* step;   // of the program
  int source;         // the read that the tensor is
  size_t entry_axis;  // of the tensor
  Dim entries;
  int positions;                 // the read that the positions are
  std::vector<int> domain_axes;  // by axis of the tensor; of the entry axis -1
};

// The Gathering that alone writes `buffer`, a dense temporary of float32.
std::optional<Gathering> FindGathering(const Program& program, const BufferUses& uses,
                                       BufferId buffer);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_GATHERING_H_
