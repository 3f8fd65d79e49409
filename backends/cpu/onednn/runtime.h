// SPDX-License-Identifier: Apache-2.0
//
// Runtime: what all oneDNN kernels of a device share beyond the runtime of all kernels.

#ifndef ONNXIFI_BACKENDS_CPU_ONEDNN_RUNTIME_H_
#define ONNXIFI_BACKENDS_CPU_ONEDNN_RUNTIME_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <oneapi/dnnl/dnnl_threadpool.hpp>

#include "backends/core/base/log.h"
#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/runtime/runtime.h"

namespace onnxifi::onednn {

// Bindings of oneDNN recipes, by what they became.
struct BindingCounts {
  std::atomic<int64_t> alone = 0;          // primitives, the epilogue in them
  std::atomic<int64_t> between_loops = 0;  // primitives, prologues and epilogue as loops
  std::atomic<int64_t> reference = 0;      // the reference's loops: extents that oneDNN does badly
};

// Threads: any. Outlives the kernels made with it.
class Runtime {
 public:
  // `shared` outlives it. A resource code when oneDNN has no engine to give.
  static base::Result<std::unique_ptr<Runtime>> Create(runtime::Runtime& shared,
                                                       const base::Log& log);

  const dnnl::engine& engine() const { return engine_; }
  threads::ThreadPool& pool() const { return shared_.pool(); }
  device::Memory& memory() { return shared_.memory(); }
  runtime::WorkMemory& work_memory() { return shared_.work_memory(); }
  const base::Log& log() const { return log_; }
  BindingCounts& counts() { return counts_; }

  // Says to oneDNN how many threads there are. Its setting belongs to the calling thread, so every
  // thread that creates or runs primitives calls this first.
  void EnterThread() const { dnnl_threadpool_interop_set_max_concurrency(pool().thread_count()); }
  // A stream whose primitives run on the pool.
  dnnl::stream NewStream() { return dnnl::threadpool_interop::make_stream(engine_, &pool()); }

 private:
  Runtime(dnnl::engine engine, runtime::Runtime& shared, const base::Log& log)
      : engine_(std::move(engine)), shared_(shared), log_(log) {}

  dnnl::engine engine_;
  runtime::Runtime& shared_;
  base::Log log_;
  BindingCounts counts_;
};

}  // namespace onnxifi::onednn

#endif  // ONNXIFI_BACKENDS_CPU_ONEDNN_RUNTIME_H_
