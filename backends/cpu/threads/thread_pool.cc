// SPDX-License-Identifier: Apache-2.0
//
// ThreadPool: a worker waits until a share is offered to it, takes it, does it, and counts itself
// off; the caller does its own share, then those that are still on offer, then waits for the rest.

#include "backends/cpu/threads/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <system_error>

namespace onnxifi::threads {
namespace {

// The pool whose loop this thread is in; a loop inside it is not split again. oneDNN asks the same
// question.
thread_local const ThreadPool* current_pool = nullptr;

class InsideLoop {
 public:
  explicit InsideLoop(const ThreadPool* pool) : outer_(current_pool) { current_pool = pool; }
  ~InsideLoop() { current_pool = outer_; }
  InsideLoop(const InsideLoop&) = delete;
  InsideLoop& operator=(const InsideLoop&) = delete;

 private:
  const ThreadPool* outer_;
};

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Returns once `word` differs from `old`: a step of a plan follows the last within microseconds, so
// sleeping at once would cost more than the work; after that nobody is waiting for this thread, and
// it sleeps.
uint32_t AwaitChange(const std::atomic<uint32_t>& word, uint32_t old) {
  constexpr auto kSpin = std::chrono::microseconds(50);
  constexpr int kPausesPerLook = 32;
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int k = 0; k < kPausesPerLook; ++k) {
      if (const uint32_t now = word.load(std::memory_order_acquire); now != old) return now;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  uint32_t now = old;
  while ((now = word.load(std::memory_order_acquire)) == old) {
    word.wait(old, std::memory_order_acquire);
  }
  return now;
}

// Makes what is on offer, if anything is, the calling thread's to do.
bool TakeOffer(std::atomic<uint32_t>& offers, uint32_t seen) {
  return (seen & 1U) != 0 &&
         offers.compare_exchange_strong(seen, seen + 1, std::memory_order_acq_rel);
}

}  // namespace

ThreadPool::Alone::Alone(const ThreadPool& pool) : outer_(current_pool) { current_pool = &pool; }

ThreadPool::Alone::~Alone() { current_pool = outer_; }

ThreadPool::ThreadPool(int thread_count) : thread_count_(std::max(1, thread_count)) {}

ThreadPool::~ThreadPool() {
  is_stopping_.store(true, std::memory_order_relaxed);
  for (const std::unique_ptr<Worker>& worker : workers_) {
    worker->offers.fetch_add(1, std::memory_order_release);
    worker->offers.notify_one();
  }
  for (const std::unique_ptr<Worker>& worker : workers_) worker->thread.join();
}

void ThreadPool::Start() {
  is_started_ = true;
  workers_.reserve(static_cast<size_t>(thread_count_ - 1));
  for (int part = 1; part < thread_count_; ++part) {
    auto worker = std::make_unique<Worker>();
    try {
      worker->thread = std::thread([this, part, &it = *worker] { Work(it, part); });
    } catch (const std::system_error&) {
      return;  // the system grants no more threads; those that exist share the work
    }
    workers_.push_back(std::move(worker));
  }
}

void ThreadPool::Work(Worker& worker, int part) {
  for (uint32_t seen = 0;;) {
    seen = AwaitChange(worker.offers, seen);
    if (is_stopping_.load(std::memory_order_relaxed)) return;
    if (!TakeOffer(worker.offers, seen)) continue;
    ++seen;
    {
      const InsideLoop inside(this);
      job_.run(job_.context, part);
    }
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
  }
}

template <typename Body>
void ThreadPool::RunParts(int parts, const Body& body) {
  std::unique_lock lock(busy_, std::defer_lock);
  if (parts > 1 && current_pool == nullptr && lock.try_lock() && !is_started_) Start();
  const int workers = lock.owns_lock() ? static_cast<int>(workers_.size()) : 0;
  if (workers == 0) {
    const InsideLoop inside(this);
    for (int part = 0; part < parts; ++part) body(part);
    return;
  }
  // With fewer threads than parts, each takes a run of them.
  const int threads = std::min(parts, workers + 1);
  const auto share = [&](int thread) {
    const int begin = static_cast<int>(static_cast<int64_t>(parts) * thread / threads);
    const int end = static_cast<int>(static_cast<int64_t>(parts) * (thread + 1) / threads);
    for (int part = begin; part < end; ++part) body(part);
  };
  using Share = decltype(share);
  job_.run = [](const void* context, int thread) { (*static_cast<const Share*>(context))(thread); };
  job_.context = &share;
  unfinished_.store(static_cast<uint32_t>(threads - 1), std::memory_order_relaxed);
  for (int thread = 1; thread < threads; ++thread) {
    std::atomic<uint32_t>& offers = workers_[static_cast<size_t>(thread - 1)]->offers;
    offers.fetch_add(1, std::memory_order_release);
    offers.notify_one();
  }
  {
    const InsideLoop inside(this);
    share(0);
    for (int thread = 1; thread < threads; ++thread) {
      std::atomic<uint32_t>& offers = workers_[static_cast<size_t>(thread - 1)]->offers;
      if (!TakeOffer(offers, offers.load(std::memory_order_relaxed))) continue;
      share(thread);
      unfinished_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  for (uint32_t left = unfinished_.load(std::memory_order_acquire); left != 0;) {
    left = AwaitChange(unfinished_, left);
  }
}

void ThreadPool::For(int64_t count, int64_t grain,
                     const std::function<void(int64_t begin, int64_t end)>& body) {
  if (count <= 0) return;
  const int64_t least = std::max<int64_t>(1, grain);
  const int64_t wanted = std::min<int64_t>(thread_count_, std::max<int64_t>(1, count / least));
  const int64_t range = (count + wanted - 1) / wanted;
  const auto parts = static_cast<int>((count + range - 1) / range);
  RunParts(parts, [&](int part) {
    const int64_t begin = part * range;
    body(begin, std::min(count, begin + range));
  });
}

bool ThreadPool::get_in_parallel() const { return current_pool != nullptr; }

void ThreadPool::parallel_for(int n, const std::function<void(int, int)>& body) {
  if (n <= 0) return;
  RunParts(n, [&](int part) { body(part, n); });
}

}  // namespace onnxifi::threads
