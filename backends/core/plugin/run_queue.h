// SPDX-License-Identifier: Apache-2.0
//
// RunQueue: the runs of one graph, in the order of their calls. Each starts when its input event is
// signalled and the run before it has finished; until then no thread waits for it. Runs of several
// threads go side by side where that cannot be noticed.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_RUN_QUEUE_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_RUN_QUEUE_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/core/abi/event.h"
#include "backends/core/base/status.h"
#include "backends/core/plugin/task_queue.h"

namespace onnxifi::plugin {

class RunQueue : public std::enable_shared_from_this<RunQueue> {
 public:
  // Does the work of a run and tells of its outputs what their descriptors do not.
  using Work = std::function<base::Status(abi::RunOutputs& outputs)>;

  // Where a run that could start at once is carried out: on the worker, or on a thread that waits
  // for it before the worker has woken up; or, for work that is over by then, on the thread that
  // adds it.
  enum class RunsOn : uint8_t { kWorker, kCaller };

  // What a run reads and writes of its callers' memory.
  class Footprint {
   public:
    virtual ~Footprint() = default;
    // Whether neither of the two writes what the other reads or writes.
    virtual bool IsApartFrom(const Footprint& other) const = 0;
    // What the run takes of memory beside its callers', or kUnknownBytes.
    virtual int64_t own_bytes() const = 0;
  };

  // More than any run has.
  static constexpr int64_t kUnknownBytes = int64_t{1} << 48;

  // How many runs are under way.
  struct Limits {
    size_t at_once = 1;  // whatever memory they take
    // More than these, as long as all of them have at most so many bytes of their own.
    size_t small_at_once = 1;
    int64_t small_bytes = 0;
  };

  // `worker` outlives every run.
  explicit RunQueue(const Worker& worker) : RunQueue(worker, Limits()) {}
  RunQueue(const Worker& worker, const Limits& limits) : tasks_(worker.tasks()), limits_(limits) {}

  // `input` may be null for inputs that are ready. The event is signalled with the status of the
  // work, or, without the work being done, with the status of `input` if that is an error. With a
  // `footprint`, which lives as long as the work, the run may go beside runs of other threads that
  // have one apart from it, and before those of them that still wait.
  std::shared_ptr<abi::LocalEvent> Add(Work work, std::shared_ptr<abi::LocalEvent> input,
                                       RunsOn runs_on = RunsOn::kWorker,
                                       const Footprint* footprint = nullptr);
  // Blocks until the queue is empty.
  void Drain();

 private:
  // Of a run: until its input is there, until it may begin, and from then on. kForsaken is kWaiting
  // without helpers, as the event was signalled by hand.
  enum class Progress : uint8_t { kBlocked, kWaiting, kForsaken, kSubmitted };

  struct Run final : TaskQueue::Task, abi::StealableWork {
    void Carry() noexcept override;
    bool MayGoBeside() const override { return may_go_beside; }
    void Help() override;
    void EndHelp() override;
    // Whether it makes no difference which of the two is first.
    bool IsApartFrom(const Run& other) const;

    std::shared_ptr<TaskQueue> tasks;
    std::shared_ptr<RunQueue> queue;  // while it is in `tasks`
    Work work;
    std::shared_ptr<abi::LocalEvent> input;
    std::shared_ptr<abi::LocalEvent> output;
    const Footprint* footprint = nullptr;  // guarded by the queue's mutex
    int64_t own_bytes = 0;
    uint64_t caller = 0;  // the thread that added it
    base::Status input_status;
    bool may_go_beside = false;  // others that the worker has
    bool has_footprint = false;  // until it ends; may be read without the mutex
    std::atomic<Progress> progress = Progress::kBlocked;
    // Threads that wait for the run, and carry it out when it may begin.
    std::atomic<int> helpers = 0;
  };

  using Waiting = std::deque<std::shared_ptr<Run>>;

  // Whether a run that is added now starts now; if so, it counts as running.
  bool StartsAtOnce(const Run& run);
  // Whether the limits take one more; `end` as below.
  bool HasRoom(const Run& run, Waiting::const_iterator end) const;
  // Whether a run may begin beside those under way and those that wait in front of `end`.
  bool IsFree(const Run& run, Waiting::const_iterator end) const;
  // It is under way from here on.
  void NoteStart(const Run& run);
  void StartWaiting(std::unique_lock<std::mutex>& lock);
  void Carry(Run& run);

  const std::shared_ptr<TaskQueue> tasks_;
  const Limits limits_;
  std::mutex mutex_;
  std::condition_variable emptied_;
  Waiting waiting_;
  std::vector<const Run*> running_;
  int64_t running_bytes_ = 0;  // of their own
};

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_RUN_QUEUE_H_
