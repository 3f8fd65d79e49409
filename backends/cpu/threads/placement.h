// SPDX-License-Identifier: Apache-2.0
//
// Placement: moves a thread that waits behind another one for the same processor. A system wakes a
// thread where it ran last if it finds no idle processor. On a machine that does other work, too,
// a worker then stays behind its caller for hundreds of milliseconds, and both have one processor.

#ifndef ONNXIFI_BACKENDS_CPU_THREADS_PLACEMENT_H_
#define ONNXIFI_BACKENDS_CPU_THREADS_PLACEMENT_H_

#include <thread>

namespace onnxifi::threads {

inline constexpr int kNoProcessor = -1;

// The processor that the calling thread runs on; kNoProcessor where the system does not tell.
int CurrentProcessor();

// If `thread`, which has not ended, is on that processor and may be on others, the system chooses
// one of these for it. Afterwards it may be on those on which it might be when this was called:
// what the system was told of it meanwhile is lost, and processors that a container gets later are
// not among them. Linux only; elsewhere nothing happens. Threads: any.
void MoveFrom(int processor, std::thread::native_handle_type thread);

}  // namespace onnxifi::threads

#endif  // ONNXIFI_BACKENDS_CPU_THREADS_PLACEMENT_H_
