// SPDX-License-Identifier: Apache-2.0
//
// WindowStrips: windows of an image or of a volume that are not gathered. The rows that they need
// are copied once, with what is outside of the image beside them, or read where they are. A row of
// the product is then a piece per row of the kernel.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_WINDOW_STRIPS_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_WINDOW_STRIPS_H_

#include <cstdint>
#include <memory>

#include "backends/cpu/integer/rows.h"

namespace onnxifi::integer {

// The rows of MakeWindowRows, in the order of the depth that these have. Null where they had better
// be gathered: channels that are apart, short rows of the result, and pieces that consist mostly of
// what fills them up.
std::unique_ptr<RowSource> MakeWindowStrips(const WindowAxes& axes, uint8_t flip);

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_WINDOW_STRIPS_H_
