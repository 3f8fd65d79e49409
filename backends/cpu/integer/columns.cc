// SPDX-License-Identifier: Apache-2.0
//
// Columns: panels are packed by all threads.

#include "backends/cpu/integer/columns.h"

#include <algorithm>

#include "backends/cpu/integer/byte_packing.h"

namespace onnxifi::integer {

void Columns::Pack(const uint8_t* b, std::byte* packed, device::Parallel& parallel) const {
  const int64_t panels = SumCount() / PanelColumns();
  constexpr int64_t kBytesPerRange = 1 << 15;
  const int64_t panel_bytes = PanelColumns() * std::max<int64_t>(1, depth());
  const int64_t grain = std::max<int64_t>(1, kBytesPerRange / panel_bytes);
  parallel.For(matrices() * panels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t number = begin; number < end; ++number) {
      const int64_t matrix = number / panels;
      const int64_t panel = number % panels;
      const ByteMatrix source = {b + matrix_offsets[static_cast<size_t>(matrix)],
                                 depth(),
                                 columns,
                                 depth_offsets.data(),
                                 column_stride,
                                 flip,
                                 pieces};
      PackPanels(source, panel, panel + 1, const_cast<int8_t*>(PanelsOf(matrix, packed)),
                 const_cast<int32_t*>(SumsOf(matrix, packed)));
    }
  });
}

}  // namespace onnxifi::integer
