// SPDX-License-Identifier: Apache-2.0
//
// ThreadPool: the plugin's own threads, shared by the loops of the reference engine and by oneDNN,
// so that a process never has more of them than it may use. The thread that runs a kernel is worker
// 0.

#ifndef ONNXIFI_BACKENDS_CPU_THREADS_THREAD_POOL_H_
#define ONNXIFI_BACKENDS_CPU_THREADS_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl_threadpool_iface.hpp>
#include <thread>
#include <vector>

#include "backends/core/device/parallel.h"

namespace onnxifi::threads {

// The partition is static: the same call is always cut in the same places, and part k of it is
// offered to the same worker each time. What a worker has not begun when the caller is done with
// its own, the caller takes back: a worker that has no processor at the moment, because another
// process has it, holds nobody up. Threads start with the first loop that has work for them, spin
// for a moment between loops, then sleep. Threads: any thread may call. One loop has the workers at
// a time; a loop inside a loop, and one that comes while another caller has the workers, runs on
// its caller alone, so callers never wait for one another.
class ThreadPool final : public device::Parallel,
                         public dnnl::threadpool_interop::threadpool_iface {
 public:
  // Keeps the loops of the calling thread on it, for work that is done before another would have
  // woken up. Not nested in a loop; ends on the thread it began on.
  class Alone {
   public:
    explicit Alone(const ThreadPool& pool);
    ~Alone();
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

   private:
    const ThreadPool* outer_;
  };

  // `thread_count` >= 1, the caller's thread counted.
  explicit ThreadPool(int thread_count);
  // Joins the workers; no loop is running.
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int thread_count() const { return thread_count_; }

  void For(int64_t count, int64_t grain,
           const std::function<void(int64_t begin, int64_t end)>& body) override;

  // oneDNN's names; parallel_for returns when all is done.
  int get_num_threads() const override { return thread_count_; }
  bool get_in_parallel() const override;
  uint64_t get_flags() const override { return 0; }
  void parallel_for(int n, const std::function<void(int, int)>& body) override;

 private:
  // What the workers do now. Written by the thread that holds `busy_`, read by workers that took
  // their share of it.
  struct Job {
    void (*run)(const void* context, int part) = nullptr;
    const void* context = nullptr;
  };
  // On a line of its own, so that waking one disturbs no other.
  struct alignas(64) Worker {
    std::atomic<uint32_t> offers = 0;  // odd: a share is offered; whoever makes it even does it
    std::thread thread;
  };

  // Calls run(context, part) for part 0 .. parts - 1; part 0 here, the others on workers.
  template <typename Body>
  void RunParts(int parts, const Body& body);
  void Start();
  void Work(Worker& worker, int part);

  const int thread_count_;
  std::mutex busy_;          // held for the time of a loop on the workers
  bool is_started_ = false;  // under busy_
  // Part k + 1 belongs to workers_[k]; fixed once started.
  std::vector<std::unique_ptr<Worker>> workers_;
  Job job_;
  std::atomic<uint32_t> unfinished_ = 0;
  std::atomic<bool> is_stopping_ = false;
};

}  // namespace onnxifi::threads

#endif  // ONNXIFI_BACKENDS_CPU_THREADS_THREAD_POOL_H_
