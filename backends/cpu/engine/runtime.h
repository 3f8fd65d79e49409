// SPDX-License-Identifier: Apache-2.0
//
// Runtime: what all engine kernels of a device share.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_RUNTIME_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_RUNTIME_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>

#include "backends/core/base/status.h"
#include "backends/core/device/parallel.h"
#include "backends/core/reference/host_memory.h"
#include "backends/cpu/engine/loop.h"
#include "backends/cpu/runtime/work_memory.h"

namespace onnxifi::engine {

struct Settings {
  LoopSet loops = LoopSet::kFast;
  // Lanes of a tile: registers stay in the L1 cache, and a loop costs more than its call.
  int64_t tile_lanes = 1024;
  // Results of at least as many bytes are stored past the caches: larger than a core's share of any
  // last-level cache, and measured to be faster from about there.
  int64_t streamed_bytes = int64_t{1} << 25;
  // The same for what is transposed, whose stores would fetch lines far apart: larger than a few L2
  // caches.
  int64_t streamed_transposed_bytes = int64_t{1} << 23;
  // Picoseconds of work that are worth another thread, which spins between the steps of a run.
  int64_t worth_a_thread = 3'000'000;
};

// Threads: any. Outlives the kernels made with it.
class Runtime {
 public:
  // `parallel` outlives it.
  explicit Runtime(device::Parallel& parallel, const Settings& settings = {})
      : parallel_(parallel), settings_(settings) {}

  const Settings& settings() const { return settings_; }
  // For one range of a run; kernels reserve what they need when they are bound.
  runtime::WorkMemory& scratch() { return scratch_; }

  // Calls body(begin, end, scratch) for ranges that cover [0, count), on the calling thread alone
  // where all of it takes no longer than waking another. `cost` is that of one index, in
  // picoseconds. NO_SYSTEM_MEMORY when there is no scratch memory for a range.
  template <typename Body>
  base::Status For(int64_t count, int64_t cost, const Body& body) {
    const int64_t grain =
        std::max<int64_t>(1, settings_.worth_a_thread / std::max<int64_t>(1, cost));
    struct Shared {
      Runtime& runtime;
      const Body& body;
      std::atomic<bool> has_failed = false;
    } shared{*this, body};
    auto run = [&shared](int64_t begin, int64_t end) {
      try {
        const base::Result<runtime::WorkMemory::Lease> lease = shared.runtime.scratch_.Lend();
        if (!lease.ok()) {
          shared.has_failed = true;
          return;
        }
        shared.body(begin, end, lease->data());
      } catch (const std::bad_alloc&) {
        shared.has_failed = true;
      }
    };
    if (count / 2 < grain) {
      run(0, count);
    } else {
      parallel_.For(count, grain, run);
    }
    if (!shared.has_failed) return base::Ok();
    return base::Status(base::Code::kNoSystemMemory,
                        "The working memory of a kernel cannot be allocated.");
  }

 private:
  device::Parallel& parallel_;
  const Settings settings_;
  reference::HostMemory memory_;
  runtime::WorkMemory scratch_{memory_};
};

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_RUNTIME_H_
