// SPDX-License-Identifier: Apache-2.0
//
// Dequantization: what passes that move the dequantization of constant weights into products find
// in a program.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_DEQUANTIZATION_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_DEQUANTIZATION_H_

#include <optional>
#include <vector>

#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/program.h"

namespace onnxifi::program {

// By buffer: whether it is a constant, or computed from constants alone.
std::vector<bool> FindConstants(const Program& program);

// A Map of one float32 result that dequantizes integers, alone in a dense buffer of its domain's
// shape: `quantized` is the read that the integers are.
struct Dequantization {
  const Step* step;
  int quantized;
};

// The one that writes `buffer`, of constants (by buffer) alone. Points into `program`.
std::optional<Dequantization> FindDequantization(const Program& program, const BufferUses& uses,
                                                 const std::vector<bool>& is_constant,
                                                 BufferId buffer);

// Where a buffer of uint8 holds the two halves of each of a constant's bytes, lower half first:
// that constant.
std::optional<BufferId> FindHalvedBytes(const Program& program, const BufferUses& uses,
                                        BufferId buffer);

// The bytes of a constant as twice as many elements of 4 bits, in place.
BufferId AddHalves(Program& program, BufferId bytes);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_DEQUANTIZATION_H_
