// SPDX-License-Identifier: Apache-2.0
//
// RunQueue: the runs of one graph, in the order of their calls. Each starts when its input event is
// signalled and the run before it has finished; until then no thread waits for it.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_RUN_QUEUE_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_RUN_QUEUE_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "backends/core/abi/event.h"
#include "backends/core/base/result.h"

namespace onnxifi::plugin {

// One thread that carries out tasks in order; started with the first.
class Worker {
 public:
  Worker() = default;
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // NO_SYSTEM_RESOURCES when the thread cannot be started.
  base::Status Start();
  // Only after Start. The destructor carries out what was submitted before it.
  void Submit(std::function<void()> task);

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool is_stopping_ = false;
  std::thread thread_;
};

class RunQueue : public std::enable_shared_from_this<RunQueue> {
 public:
  // Does the work of a run and tells of its outputs what their descriptors do not.
  using Work = std::function<base::Status(abi::RunOutputs& outputs)>;

  // Where a run that could start at once is carried out: on the worker, or, for work that is over
  // before the worker would have woken up, on the thread that adds it.
  enum class Place : uint8_t { kWorker, kCaller };

  // `worker` outlives every run.
  explicit RunQueue(Worker& worker) : worker_(worker) {}

  // `input` may be null for inputs that are ready. The event is signalled with the status of the
  // work, or, without the work being done, with the status of `input` if that is an error.
  std::shared_ptr<abi::LocalEvent> Add(Work work, std::shared_ptr<abi::LocalEvent> input,
                                       Place place = Place::kWorker);
  // Blocks until the queue is empty.
  void Drain();

 private:
  struct Run {
    Work work;
    std::shared_ptr<abi::LocalEvent> input;
    std::shared_ptr<abi::LocalEvent> output;
    bool is_ready = false;
    base::Status input_status;
  };

  // Whether a run that is added now starts now; if so, the queue counts as running.
  bool StartsAtOnce(const std::shared_ptr<abi::LocalEvent>& input);
  void StartNext(std::unique_lock<std::mutex>& lock);
  void Carry(const std::shared_ptr<Run>& run);

  Worker& worker_;
  std::mutex mutex_;
  std::condition_variable emptied_;
  std::deque<std::shared_ptr<Run>> waiting_;
  bool is_running_ = false;
};

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_RUN_QUEUE_H_
