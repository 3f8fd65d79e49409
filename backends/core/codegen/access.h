// SPDX-License-Identifier: Apache-2.0
//
// Access: the reads and writes of a step as statements of a kernel: addresses, guards, and elements
// that are packed into bytes.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_ACCESS_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_ACCESS_H_

#include <span>
#include <string>

#include "backends/core/codegen/writer.h"
#include "backends/core/program/step.h"

namespace onnxifi::codegen {

// The value of read `read` at `coordinates`, one per axis, of type idx; of type i64 with `is_wide`,
// for coordinates that come from data.
std::string WriteLoad(Writer& writer, const program::Step& step, int read,
                      std::span<const std::string> coordinates, bool is_wide = false);
// What write `write` holds at `coordinates` before it is written to: the name of a variable.
std::string WriteReadBack(Writer& writer, const program::Step& step, int write,
                          std::span<const std::string> coordinates);
// Declares where the element of a read without guards, or of a write, at `coordinates`, of type
// idx, is in its buffer.
std::string WriteIndex(Writer& writer, const program::Step& step, bool is_write, int operand,
                       std::span<const std::string> coordinates);
// Writes `value` to write `write` at `coordinates`.
void WriteStore(Writer& writer, const program::Step& step, int write,
                std::span<const std::string> coordinates, const std::string& value);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_ACCESS_H_
