// SPDX-License-Identifier: Apache-2.0
//
// ThreadPool: the plugin's own threads, shared by the loops of the reference engine and by oneDNN,
// so that a process never has more of them than it may use. The thread that runs a kernel is worker
// 0.

#ifndef ONNXIFI_BACKENDS_CPU_THREADS_THREAD_POOL_H_
#define ONNXIFI_BACKENDS_CPU_THREADS_THREAD_POOL_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl_threadpool_iface.hpp>
#include <thread>
#include <vector>

#include "backends/core/device/parallel.h"

namespace onnxifi::threads {

// The same loop is always cut in the same places, and the same parts of it are offered to the same
// worker each time. Where there is work enough, each has several: a thread that is done with its
// own takes those that others have not begun, from their end. So a worker that is slower than
// others, has yet to wake up, or has lost its processor to another process holds nobody up for
// longer than a part. Threads start with the first loop that has work for them, spin between loops
// for about as long as it takes to wake one up, on a virtual machine 100 us and more, then sleep.
// Threads: any thread may call. One loop has the workers at a time, less as many as there are other
// callers in runs or in loops; a loop inside a loop, and one that comes while another caller has
// the workers, runs on its caller alone, so callers never wait for one another.
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

  // Parts per thread into which a loop is best cut where that costs little: of one, others can take
  // over nothing; many are begun for nothing.
  static constexpr int kPartsPerThread = 4;
  // Of a part's time, what the others wait for the last thread at the end of a loop.
  static constexpr double kShareWaitedFor = 0.25;

  // `thread_count` >= 1, the caller's thread counted.
  explicit ThreadPool(int thread_count);
  // Joins the workers; no loop is running.
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int thread_count() const { return thread_count_; }

  // For how long a thread spins that did so for `spin` until now, once a worker woke up `waking`
  // after it was offered a job: towards twice that, within bounds.
  static std::chrono::nanoseconds AdaptSpin(std::chrono::nanoseconds spin,
                                            std::chrono::nanoseconds waking);

  // Into how many parts a loop is best cut of which no more than `most` >= 1 are worth beginning:
  // as many for each thread.
  int64_t CountParts(int64_t most) const;
  // How many threads have parts at the same time, of a loop of that many.
  int64_t ThreadsOf(int64_t parts) const { return std::min<int64_t>(parts, thread_count_); }

  void For(int64_t count, int64_t grain,
           const std::function<void(int64_t begin, int64_t end)>& body) override;

  // Calls body(part, thread) once for every part in [0, parts), and returns when all are done;
  // parts that are done at the same time have different numbers `thread` in [0, thread_count()), so
  // that each has the memory of its thread to itself.
  void ForEachPart(int64_t parts, const std::function<void(int64_t part, int thread)>& body);

  // oneDNN's names; parallel_for returns when all is done.
  int get_num_threads() const override { return thread_count_; }
  bool get_in_parallel() const override;
  uint64_t get_flags() const override { return 0; }
  void parallel_for(int n, const std::function<void(int, int)>& body) override;

 private:
  // What the workers do now. Written by the thread that holds `busy_`, read by workers that took
  // an offer to join.
  struct Job {
    void (*run)(const void* context, int part, int thread) = nullptr;
    const void* context = nullptr;
    int threads = 0;  // that it is offered to
  };
  // The parts of a job that are a thread's own and that nobody has begun: the first in the low 32
  // bits, the end in the high ones. On a line of its own.
  struct alignas(64) Share {
    std::atomic<uint64_t> parts = 0;
  };
  // On a line of its own, so that waking one disturbs no other.
  struct alignas(64) Worker {
    std::atomic<uint32_t> offers = 0;  // odd: a job is offered; whoever makes it even joins in it
    std::thread thread;
  };

  void NoteCallers(int more) override { callers_ += more; }
  // Calls body(part, thread) for part 0 .. parts - 1.
  template <typename Body>
  void RunParts(int parts, const Body& body);
  void Start();
  void Work(Worker& worker, int thread);
  // Does the parts of the job that are the thread's own, then what others have not begun.
  void DoParts(int thread);
  // For how long a thread spins, and what a worker does about that when it wakes up for an offer:
  // the longer ago the offer was made, the longer it is worth to be awake for the next.
  std::chrono::nanoseconds Spin() const;
  void NoteWaking();

  const int thread_count_;
  std::mutex busy_;          // held for the time of a loop on the workers
  bool is_started_ = false;  // under busy_
  // Thread k + 1 is that of workers_[k]; fixed once started.
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Share> shares_;  // by thread
  Job job_;
  std::atomic<uint32_t> unfinished_ = 0;
  std::atomic<int64_t> offered_at_ = 0;  // of steady_clock, the last offers
  std::atomic<int64_t> spin_ns_;
  std::atomic<int> callers_ = 0;        // in runs
  std::atomic<int> callers_alone_ = 0;  // whose loops run beside the one that has the workers
  std::atomic<bool> is_stopping_ = false;
};

}  // namespace onnxifi::threads

#endif  // ONNXIFI_BACKENDS_CPU_THREADS_THREAD_POOL_H_
