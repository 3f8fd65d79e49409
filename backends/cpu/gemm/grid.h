// SPDX-License-Identifier: Apache-2.0
//
// Grid: how the threads divide the rows and the columns of a product between them.

#ifndef ONNXIFI_BACKENDS_CPU_GEMM_GRID_H_
#define ONNXIFI_BACKENDS_CPU_GEMM_GRID_H_

#include <cstdint>
#include <functional>

#include "backends/cpu/threads/thread_pool.h"

namespace onnxifi::gemm {

// `blocks` of `rows` rows each, which are not divided, times `panels` of columns.
struct Work {
  int64_t blocks;
  int64_t rows;
  int64_t depth;
  int64_t panels;
  bool are_panels_divided = true;
};

struct Grid {
  int64_t row_parts;
  int64_t panel_parts;
};

// The division that costs least, in one part or several for each thread; one part where another
// thread would begin only when all is done.
Grid ChooseGrid(const Work& work, int64_t threads);

// A part: blocks [first_block, end_block) times panels [first_panel, end_panel).
struct Part {
  int64_t first_block, end_block;
  int64_t first_panel, end_panel;
};
// How many threads of `pool` are at the parts of the grid at a time.
int64_t ThreadsOf(const Grid& grid, const threads::ThreadPool& pool);
// Calls body(thread, part) for every part of the grid on the threads of `pool`; parts that are done
// at the same time have different numbers `thread` below ThreadsOf().
void ForParts(const Work& work, const Grid& grid, threads::ThreadPool& pool,
              const std::function<void(int64_t thread, const Part& part)>& body);

}  // namespace onnxifi::gemm

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_GRID_H_
