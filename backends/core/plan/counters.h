// SPDX-License-Identifier: Apache-2.0
//
// Counters: what a graph has cost so far, for the SDK's counters and the tests that forbid hidden
// work.

#ifndef ONNXIFI_BACKENDS_CORE_PLAN_COUNTERS_H_
#define ONNXIFI_BACKENDS_CORE_PLAN_COUNTERS_H_

#include <atomic>
#include <cstdint>

namespace onnxifi::plan {

struct Counters {
  std::atomic<uint64_t> lowerings = 0;      // graphs lowered to a program
  std::atomic<uint64_t> bindings = 0;       // plans bound to a signature of input extents
  std::atomic<uint64_t> allocations = 0;    // pieces of memory asked of the device
  std::atomic<uint64_t> copies = 0;         // tensors copied by execution, not by a step
  std::atomic<uint64_t> kernel_builds = 0;  // recipes built
  std::atomic<uint64_t> runs = 0;
  std::atomic<uint64_t> waits = 0;        // of a run for its device, before its end
  std::atomic<uint64_t> submissions = 0;  // to the driver, where queues count them
  std::atomic<uint64_t> recordings = 0;   // of what segments put into queues
};

}  // namespace onnxifi::plan

#endif  // ONNXIFI_BACKENDS_CORE_PLAN_COUNTERS_H_
