// SPDX-License-Identifier: Apache-2.0
//
// Grid: tries every number of parts.

#include "backends/cpu/convolution/grid.h"

#include <algorithm>

#include "backends/cpu/gemm/gemm.h"

namespace onnxifi::convolution {

Grid ChooseGrid(const Work& work, int64_t threads) {
  // What a thread multiplies and adds while it reads a float from beyond its own cache.
  constexpr double kPerFloat = 6;
  constexpr int64_t kWorthAThread = 500'000;  // multiply-adds
  const int64_t width = gemm::PanelColumns();
  const int64_t all = work.blocks * work.rows * work.depth * work.panels * width;
  const int64_t useful = std::clamp<int64_t>(all / kWorthAThread, 1, threads);
  Grid best{1, 1};
  double best_cost = 0;
  for (int64_t row_parts = 1; row_parts <= useful; ++row_parts) {
    const int64_t panel_parts = useful / row_parts;
    const auto rows = static_cast<double>((work.blocks + row_parts - 1) / row_parts * work.rows);
    const auto columns = static_cast<double>((work.panels + panel_parts - 1) / panel_parts * width);
    const double cost =
        static_cast<double>(work.depth) * (rows * columns + kPerFloat * (rows + columns));
    if (row_parts == 1 || cost < best_cost) {
      best = {row_parts, panel_parts};
      best_cost = cost;
    }
  }
  return best;
}

}  // namespace onnxifi::convolution
