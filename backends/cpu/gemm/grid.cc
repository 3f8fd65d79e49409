// SPDX-License-Identifier: Apache-2.0
//
// Grid: tries every number of parts.

#include "backends/cpu/gemm/grid.h"

#include <algorithm>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::gemm {
namespace {

// A part of a loop is found and begun: 4 us are worth that many times.
constexpr double kMinCyclesOfAPart = 10000;

}  // namespace

Grid ChooseGrid(const Work& work, int64_t threads) {
  const double rate = processor::MultiplyAddsPerCycle();
  const int64_t width = PanelColumns();
  const double all = static_cast<double>(work.blocks) * static_cast<double>(work.rows) *
                     static_cast<double>(work.depth) * static_cast<double>(work.panels * width);
  const auto useful = static_cast<int64_t>(std::clamp(
      all / (processor::kCyclesToWakeAThread * rate), 1.0, static_cast<double>(threads)));
  Grid best{1, 1};
  double best_cost = 0;
  // Of one part, or of all where there is one thread.
  const auto try_parts = [&](int64_t row_parts, int64_t panel_parts) {
    const int64_t blocks = (work.blocks + row_parts - 1) / row_parts;
    const int64_t panels = (work.panels + panel_parts - 1) / panel_parts;
    const auto rows = static_cast<double>(blocks * work.rows);
    const auto columns = static_cast<double>(panels * width);
    const double part =
        static_cast<double>(work.depth) *
        (rows * columns + processor::kCyclesPerSharedFloat * rate * (rows + columns));
    const int64_t rounds = (row_parts * panel_parts + useful - 1) / useful;
    // At the end threads wait for the last, for a share of a part.
    const double cost = part * (static_cast<double>(rounds) +
                                (useful > 1 ? threads::ThreadPool::kShareWaitedFor : 0.0));
    if (best_cost == 0 || cost < best_cost) {
      best = {row_parts, panel_parts};
      best_cost = cost;
    }
  };
  // Several parts for each thread, but none too short to be worth its beginning.
  const double parts_worth = all / (kMinCyclesOfAPart * rate);
  for (int64_t each = 1; each <= threads::ThreadPool::kPartsPerThread; each *= 2) {
    const int64_t parts = useful * each;
    if (each > 1 && (useful == 1 || static_cast<double>(parts) > parts_worth)) break;
    for (int64_t row_parts = 1; row_parts <= parts; ++row_parts) {
      try_parts(row_parts, work.are_panels_divided ? parts / row_parts : 1);
    }
  }
  return best;
}

int64_t ThreadsOf(const Grid& grid, const threads::ThreadPool& pool) {
  return std::min<int64_t>(grid.row_parts * grid.panel_parts, pool.thread_count());
}

void ForParts(const Work& work, const Grid& grid, threads::ThreadPool& pool,
              const std::function<void(int64_t thread, const Part& part)>& body) {
  // Single rows are cut where blocks of them end.
  const int64_t step =
      work.rows == 1 && work.blocks / grid.row_parts >= 2 * BlockRows() ? BlockRows() : 1;
  const auto cut = [&](int64_t row_part) {
    return row_part == grid.row_parts ? work.blocks
                                      : work.blocks * row_part / grid.row_parts / step * step;
  };
  pool.ForEachPart(grid.row_parts * grid.panel_parts, [&](int64_t number, int thread) {
    const int64_t row_part = number / grid.panel_parts;
    const int64_t panel_part = number % grid.panel_parts;
    body(thread, {cut(row_part), cut(row_part + 1), work.panels * panel_part / grid.panel_parts,
                  work.panels * (panel_part + 1) / grid.panel_parts});
  });
}

}  // namespace onnxifi::gemm
