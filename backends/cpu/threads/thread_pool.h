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
#include <exception>
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
// Threads: any thread may call, and callers never wait for one another. The workers are divided
// among the callers that are in runs or in loops: each loop has as many of its share as stand side
// by side and belong to nobody else, a loop inside a loop none. What a part throws, which it should
// not, arrives at the caller once all parts are done or begun by nobody.
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
  // For how long a caller among several that ended a run still counts as one.
  static constexpr std::chrono::microseconds kPauseOfCaller{200};

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
  // The parts of a loop that are a thread's own and that nobody has begun: the first in the low 32
  // bits, the end in the high ones. On a line of its own.
  struct alignas(64) Share {
    std::atomic<uint64_t> parts = 0;
  };
  // A loop, as its workers see it: these are `first`, and those behind it up to the number of
  // threads, the last one's neighbour being the first of all. Written by the caller, whose thread
  // is number 0, before it offers the loop.
  struct Loop {
    void (*run)(const void* context, int part, int thread) = nullptr;
    const void* context = nullptr;
    int first = 0;
    int threads = 0;  // that it is offered to
    Share of_caller;
    std::atomic<uint32_t> unfinished = 0;
    std::atomic<bool> has_thrown = false;
    std::exception_ptr thrown;  // by the part that set has_thrown
  };
  // On a line of its own, so that waking one disturbs no other.
  struct alignas(64) Worker {
    std::atomic<uint32_t> offers = 0;  // odd: a loop is offered; whoever makes it even joins in it
    std::atomic<bool> is_taken = false;  // by a caller, for a loop; what follows is that caller's
    Loop* loop = nullptr;
    int number = 0;  // of its thread in the loop
    Share share;
    Loop own_loop;  // of which it is the first worker
    std::thread thread;
  };

  void NoteCallers(int more) override;
  // How many threads compute, or will again in a moment.
  int CountCallers() const;
  // Calls body(part, thread) for part 0 .. parts - 1.
  template <typename Body>
  void RunParts(int parts, const Body& body);
  void Start();
  void Work(Worker& worker);
  // Workers that stand side by side and that nobody has, as many as there are, up to `most`: the
  // first, and how many. They are the caller's until it gives each back.
  struct Team {
    int first = 0;
    int size = 0;
  };
  Team TakeWorkers(int most);
  Worker& WorkerOf(const Loop& loop, int thread) {
    return *workers_[static_cast<size_t>(loop.first + thread - 1) % workers_.size()];
  }
  Share& ShareOf(Loop& loop, int thread) {
    return thread == 0 ? loop.of_caller : WorkerOf(loop, thread).share;
  }
  // Does the parts of the loop that are the thread's own, then what others have not begun.
  void DoParts(Loop& loop, int thread);
  // For how long a thread spins, and what a worker does about that when it wakes up for an offer:
  // the longer ago the offer was made, the longer it is worth to be awake for the next.
  std::chrono::nanoseconds Spin() const;
  void NoteWaking();

  const int thread_count_;
  std::once_flag started_;
  std::vector<std::unique_ptr<Worker>> workers_;  // fixed once started
  std::atomic<int64_t> offered_at_ = 0;           // of steady_clock, the last offers
  std::atomic<int64_t> spin_ns_;
  std::atomic<int> callers_ = 0;  // in runs
  // When one of several callers ended its run: nanoseconds of steady_clock, in whose low bits there
  // is how many they were.
  std::atomic<int64_t> last_shared_ = 0;
  std::atomic<int> loops_ = 0;  // that have more than one part
  std::atomic<bool> is_stopping_ = false;
};

}  // namespace onnxifi::threads

#endif  // ONNXIFI_BACKENDS_CPU_THREADS_THREAD_POOL_H_
