// SPDX-License-Identifier: Apache-2.0
//
// Division: how threads divide a recurrence: by direction, and by hidden units.

#ifndef ONNXIFI_BACKENDS_CPU_RECURRENT_DIVISION_H_
#define ONNXIFI_BACKENDS_CPU_RECURRENT_DIVISION_H_

#include <cstdint>

namespace onnxifi::recurrent {

struct RecurrenceExtents {
  int64_t directions, time;
  int64_t blocks;    // of hidden units
  int64_t products;  // multiply-adds of one time step and direction
};

// A team goes through the time steps of its directions, 1 or all of them; its members have each a
// part of the hidden units. Threads are teams times members, or one thread that is the only member
// of every team.
struct Division {
  int teams = 1;
  int members = 1;
  int threads = 1;
};

Division Divide(const RecurrenceExtents& extents, int thread_count);

}  // namespace onnxifi::recurrent

#endif  // ONNXIFI_BACKENDS_CPU_RECURRENT_DIVISION_H_
