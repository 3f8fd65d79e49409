// SPDX-License-Identifier: Apache-2.0
//
// MoveFrom: to forbid a processor for a moment moves a thread that is on it or waits for it.

#include "backends/cpu/threads/placement.h"

#ifdef __linux__
#include <pthread.h>
#include <sched.h>

#include <cstring>
#endif

namespace onnxifi::threads {

#ifdef __linux__

int CurrentProcessor() { return sched_getcpu(); }

void MoveFrom(int processor, std::thread::native_handle_type thread) {
  cpu_set_t allowed;
  // Fails where there are more processors than a set of this size holds.
  if (pthread_getaffinity_np(thread, sizeof(allowed), &allowed) != 0) return;
  if (processor < 0 || processor >= CPU_SETSIZE || !CPU_ISSET(processor, &allowed)) return;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0) return;
  if (pthread_setaffinity_np(thread, sizeof(others), &others) != 0) return;
  if (pthread_setaffinity_np(thread, sizeof(allowed), &allowed) == 0) return;
  // Not one of them is the process's any more. Of all processors the system leaves those that are.
  std::memset(&allowed, 0xFF, sizeof(allowed));
  pthread_setaffinity_np(thread, sizeof(allowed), &allowed);
}

#else

int CurrentProcessor() { return kNoProcessor; }
void MoveFrom(int /*processor*/, std::thread::native_handle_type /*thread*/) {}

#endif

}  // namespace onnxifi::threads
