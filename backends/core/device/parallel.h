// SPDX-License-Identifier: Apache-2.0
//
// Parallel: how a kernel that runs on the host splits its work. The reference engine takes one; a
// CPU backend gives its own thread pool, everything else the serial one.

#ifndef ONNXIFI_BACKENDS_CORE_DEVICE_PARALLEL_H_
#define ONNXIFI_BACKENDS_CORE_DEVICE_PARALLEL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>

namespace onnxifi::device {

class Parallel {
 public:
  virtual ~Parallel() = default;
  // Calls `body(begin, end)` for disjoint ranges that cover [0, count), each of at least `grain`
  // indices but the last, and returns when all are done. Bodies may run at the same time, on any
  // thread; they throw nothing. Any thread may call.
  virtual void For(int64_t count, int64_t grain,
                   const std::function<void(int64_t begin, int64_t end)>& body) = 0;

  // While it lives, its thread is one that computes a run: beside others, loops are better left to
  // the threads that have them than shared. `parallel` may be null.
  class Caller {
   public:
    explicit Caller(Parallel* parallel) : parallel_(parallel) {
      if (parallel_ != nullptr) parallel_->NoteCallers(1);
    }
    ~Caller() {
      if (parallel_ != nullptr) parallel_->NoteCallers(-1);
    }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

   private:
    Parallel* const parallel_;
  };

 private:
  // So many more callers than before.
  virtual void NoteCallers(int /*more*/) {}
};

// One range, on the calling thread.
class Serial final : public Parallel {
 public:
  void For(int64_t count, int64_t /*grain*/,
           const std::function<void(int64_t begin, int64_t end)>& body) override {
    if (count > 0) body(0, count);
  }
};

// Calls `body` for each of `items`, on as many threads as there are, each taking the next that
// nobody has taken. What is thrown arrives here.
template <typename Item, typename Body>
void ForEach(Parallel& parallel, std::span<Item> items, const Body& body) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> has_thrown = false;
  std::exception_ptr thrown;  // by the first that sets has_thrown
  parallel.For(static_cast<int64_t>(items.size()), /*grain=*/1, [&](int64_t, int64_t) {
    try {
      for (size_t k = next++; k < items.size(); k = next++) body(items[k]);
    } catch (...) {
      if (!has_thrown.exchange(true)) thrown = std::current_exception();
    }
  });
  if (has_thrown) std::rethrow_exception(thrown);
}

}  // namespace onnxifi::device

#endif  // ONNXIFI_BACKENDS_CORE_DEVICE_PARALLEL_H_
