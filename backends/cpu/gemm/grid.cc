// SPDX-License-Identifier: Apache-2.0
//
// Grid: tries every number of parts.

#include "backends/cpu/gemm/grid.h"

#include <algorithm>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::gemm {

Grid ChooseGrid(const Work& work, int64_t threads) {
  const double rate = processor::MultiplyAddsPerCycle();
  const int64_t width = PanelColumns();
  const double all = static_cast<double>(work.blocks) * static_cast<double>(work.rows) *
                     static_cast<double>(work.depth) * static_cast<double>(work.panels * width);
  const auto useful = static_cast<int64_t>(std::clamp(
      all / (processor::kCyclesToWakeAThread * rate), 1.0, static_cast<double>(threads)));
  Grid best{1, 1};
  double best_cost = 0;
  for (int64_t row_parts = 1; row_parts <= useful; ++row_parts) {
    const int64_t panel_parts = work.are_panels_divided ? useful / row_parts : 1;
    // Of the largest part.
    const int64_t blocks = (work.blocks + row_parts - 1) / row_parts;
    const int64_t panels = (work.panels + panel_parts - 1) / panel_parts;
    const auto rows = static_cast<double>(blocks * work.rows);
    const auto columns = static_cast<double>(panels * width);
    const double cost =
        static_cast<double>(work.depth) *
        (rows * columns + processor::kCyclesPerSharedFloat * rate * (rows + columns));
    if (row_parts == 1 || cost < best_cost) {
      best = {row_parts, panel_parts};
      best_cost = cost;
    }
  }
  return best;
}

void ForParts(const Work& work, const Grid& grid, threads::ThreadPool& pool,
              const std::function<void(int64_t number, const Part& part)>& body) {
  pool.For(grid.row_parts * grid.panel_parts, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t number = begin; number < end; ++number) {
      const int64_t row_part = number / grid.panel_parts;
      const int64_t panel_part = number % grid.panel_parts;
      body(number,
           {work.blocks * row_part / grid.row_parts, work.blocks * (row_part + 1) / grid.row_parts,
            work.panels * panel_part / grid.panel_parts,
            work.panels * (panel_part + 1) / grid.panel_parts});
    }
  });
}

}  // namespace onnxifi::gemm
