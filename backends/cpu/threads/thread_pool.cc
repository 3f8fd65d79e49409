// SPDX-License-Identifier: Apache-2.0
//
// ThreadPool: a worker waits until a job is offered to it, joins in it, and counts itself off when
// no part is left that nobody has begun. The caller does the same, takes back the offers of those
// who have not come, and waits for the others.

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

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// For how long a thread spins before it sleeps, at the least and at the most.
constexpr nanoseconds kMinSpin = std::chrono::microseconds(50);
constexpr nanoseconds kMaxSpin = std::chrono::milliseconds(1);

// Returns once `word` differs from `old`. A step of a plan follows the last within microseconds, so
// sleeping at once would cost more than the work; after `spin` nobody is waiting for this thread,
// and it sleeps. Behind the least time it gives way to whoever else wants its processor.
struct Awaited {
  uint32_t word;
  bool has_slept;
};
Awaited AwaitChange(const std::atomic<uint32_t>& word, uint32_t old, nanoseconds spin) {
  constexpr int kPausesPerLook = 32;
  const auto begin = steady_clock::now();
  for (auto now = begin; now < begin + spin; now = steady_clock::now()) {
    if (now >= begin + kMinSpin) std::this_thread::yield();
    for (int k = 0; k < kPausesPerLook; ++k) {
      if (const uint32_t seen = word.load(std::memory_order_acquire); seen != old) {
        return {seen, false};
      }
      Pause();
    }
  }
  uint32_t now = old;
  while ((now = word.load(std::memory_order_acquire)) == old) {
    word.wait(old, std::memory_order_acquire);
  }
  return {now, true};
}

// Makes what is on offer, if anything is, the calling thread's.
bool TakeOffer(std::atomic<uint32_t>& offers, uint32_t seen) {
  return (seen & 1U) != 0 &&
         offers.compare_exchange_strong(seen, seen + 1, std::memory_order_acq_rel);
}

uint64_t PackParts(uint32_t begin, uint32_t end) {
  return static_cast<uint64_t>(end) << 32 | begin;
}

constexpr int kNoPart = -1;

// A part that nobody has begun, from the front of the thread's own or from the end of another's.
int TakePart(std::atomic<uint64_t>& parts, bool is_own) {
  uint64_t seen = parts.load(std::memory_order_relaxed);
  while (true) {
    const auto begin = static_cast<uint32_t>(seen);
    const auto end = static_cast<uint32_t>(seen >> 32);
    if (begin >= end) return kNoPart;
    const uint64_t left = is_own ? PackParts(begin + 1, end) : PackParts(begin, end - 1);
    if (parts.compare_exchange_weak(seen, left, std::memory_order_relaxed)) {
      return static_cast<int>(is_own ? begin : end - 1);
    }
  }
}

}  // namespace

ThreadPool::Alone::Alone(const ThreadPool& pool) : outer_(current_pool) { current_pool = &pool; }

ThreadPool::Alone::~Alone() { current_pool = outer_; }

ThreadPool::ThreadPool(int thread_count)
    : thread_count_(std::max(1, thread_count)),
      shares_(static_cast<size_t>(thread_count_)),
      spin_ns_(kMinSpin.count()) {}

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
  for (int thread = 1; thread < thread_count_; ++thread) {
    auto worker = std::make_unique<Worker>();
    try {
      worker->thread = std::thread([this, thread, &it = *worker] { Work(it, thread); });
    } catch (const std::system_error&) {
      return;  // the system grants no more threads; those that exist share the work
    }
    workers_.push_back(std::move(worker));
  }
}

nanoseconds ThreadPool::Spin() const {
  return nanoseconds(spin_ns_.load(std::memory_order_relaxed));
}

nanoseconds ThreadPool::AdaptSpin(nanoseconds spin, nanoseconds waking) {
  return std::clamp((spin + 2 * waking) / 2, kMinSpin, kMaxSpin);
}

void ThreadPool::NoteWaking() {
  const nanoseconds since_offer =
      steady_clock::now().time_since_epoch() -
      steady_clock::duration(offered_at_.load(std::memory_order_relaxed));
  spin_ns_.store(AdaptSpin(Spin(), since_offer).count(), std::memory_order_relaxed);
}

void ThreadPool::DoParts(int thread) {
  const InsideLoop inside(this);
  const int threads = job_.threads;
  for (int step = 0; step < threads; ++step) {
    std::atomic<uint64_t>& parts = shares_[static_cast<size_t>((thread + step) % threads)].parts;
    for (int part; (part = TakePart(parts, /*is_own=*/step == 0)) != kNoPart;) {
      job_.run(job_.context, part, thread);
    }
  }
}

void ThreadPool::Work(Worker& worker, int thread) {
  for (uint32_t seen = 0;;) {
    const Awaited awaited = AwaitChange(worker.offers, seen, Spin());
    seen = awaited.word;
    if (is_stopping_.load(std::memory_order_relaxed)) return;
    if (awaited.has_slept) NoteWaking();
    if (!TakeOffer(worker.offers, seen)) continue;
    ++seen;
    DoParts(thread);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
  }
}

template <typename Body>
void ThreadPool::RunParts(int parts, const Body& body) {
  const auto run_alone = [&] {
    const InsideLoop inside(this);
    for (int part = 0; part < parts; ++part) body(part, /*thread=*/0);
  };
  if (parts == 1 || current_pool != nullptr) return run_alone();
  std::unique_lock lock(busy_, std::try_to_lock);
  if (!lock.owns_lock()) {
    spin_ns_.store(kMinSpin.count(), std::memory_order_relaxed);
    ++callers_alone_;
    run_alone();
    --callers_alone_;
    return;
  }
  if (!is_started_) Start();
  // Callers beside this one have processors that workers would take from them.
  const int workers =
      static_cast<int>(workers_.size()) - std::max(callers_alone_.load(std::memory_order_relaxed),
                                                   callers_.load(std::memory_order_relaxed) - 1);
  if (workers <= 0) return run_alone();
  const int threads = std::min(parts, workers + 1);
  for (int thread = 0; thread < threads; ++thread) {
    const int64_t all = parts;
    shares_[static_cast<size_t>(thread)].parts.store(
        PackParts(static_cast<uint32_t>(all * thread / threads),
                  static_cast<uint32_t>(all * (thread + 1) / threads)),
        std::memory_order_relaxed);
  }
  job_.run = [](const void* context, int part, int thread) {
    (*static_cast<const Body*>(context))(part, thread);
  };
  job_.context = &body;
  job_.threads = threads;
  unfinished_.store(static_cast<uint32_t>(threads - 1), std::memory_order_relaxed);
  offered_at_.store(steady_clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  for (int thread = 1; thread < threads; ++thread) {
    std::atomic<uint32_t>& offers = workers_[static_cast<size_t>(thread - 1)]->offers;
    offers.fetch_add(1, std::memory_order_release);
    offers.notify_one();
  }
  DoParts(/*thread=*/0);
  for (int thread = 1; thread < threads; ++thread) {
    std::atomic<uint32_t>& offers = workers_[static_cast<size_t>(thread - 1)]->offers;
    if (TakeOffer(offers, offers.load(std::memory_order_relaxed))) {
      unfinished_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  for (uint32_t left = unfinished_.load(std::memory_order_acquire); left != 0;) {
    left = AwaitChange(unfinished_, left, Spin()).word;
  }
}

int64_t ThreadPool::CountParts(int64_t most) const {
  const int64_t threads = thread_count_;
  if (threads == 1 || most <= threads) return std::min(most, threads);
  return threads * std::min<int64_t>(most / threads, kPartsPerThread);
}

void ThreadPool::For(int64_t count, int64_t grain,
                     const std::function<void(int64_t begin, int64_t end)>& body) {
  if (count <= 0) return;
  const int64_t most = std::max<int64_t>(1, count / std::max<int64_t>(1, grain));
  const int64_t parts = CountParts(most);
  RunParts(static_cast<int>(parts), [&](int part, int /*thread*/) {
    body(count * part / parts, count * (part + 1) / parts);
  });
}

void ThreadPool::ForEachPart(int64_t parts,
                             const std::function<void(int64_t part, int thread)>& body) {
  if (parts > 0) RunParts(static_cast<int>(parts), body);
}

bool ThreadPool::get_in_parallel() const { return current_pool != nullptr; }

void ThreadPool::parallel_for(int n, const std::function<void(int, int)>& body) {
  if (n <= 0) return;
  RunParts(n, [&](int part, int /*thread*/) { body(part, n); });
}

}  // namespace onnxifi::threads
