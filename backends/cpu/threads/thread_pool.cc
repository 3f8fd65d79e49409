// SPDX-License-Identifier: Apache-2.0
//
// ThreadPool: a worker waits until a loop is offered to it, joins in it, and counts itself off when
// no part is left that nobody has begun. The caller does the same, takes back the offers of those
// who have not come, and waits for the others.

#include "backends/cpu/threads/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>

#include "backends/cpu/threads/placement.h"

namespace onnxifi::threads {
namespace {

// The pool whose loop this thread is in; a loop inside it is not split again. oneDNN asks the same
// question.
thread_local const ThreadPool* current_pool = nullptr;

// The first worker that this thread's last loop had, so that callers side by side keep to theirs.
thread_local int last_first = 0;

// When this thread last moved a worker that did not come.
thread_local std::chrono::steady_clock::time_point last_moved;

class InsideLoop {
 public:
  explicit InsideLoop(const ThreadPool* pool) : outer_(current_pool) { current_pool = pool; }
  ~InsideLoop() { current_pool = outer_; }
  InsideLoop(const InsideLoop&) = delete;
  InsideLoop& operator=(const InsideLoop&) = delete;

 private:
  const ThreadPool* outer_;
};

// One more while it lives.
class Counted {
 public:
  explicit Counted(std::atomic<int>& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int>& count_;
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
// A worker that has not come for so long is not merely waking up.
constexpr nanoseconds kAbsence = std::chrono::microseconds(200);
// How often a caller moves workers at the most.
constexpr nanoseconds kBetweenMoves = std::chrono::milliseconds(2);

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

// Whether it is time to move workers that have not come since the offer.
bool IsTimeToMove(steady_clock::time_point offered) {
  const auto now = steady_clock::now();
  if (now < offered + kAbsence || now < last_moved + kBetweenMoves) return false;
  last_moved = now;
  return true;
}

// Makes what is on offer, if anything is, the calling thread's.
bool TakeOffer(std::atomic<uint32_t>& offers, uint32_t seen) {
  return (seen & 1U) != 0 &&
         offers.compare_exchange_strong(seen, seen + 1, std::memory_order_acq_rel);
}

uint64_t PackParts(uint32_t begin, uint32_t end) {
  return static_cast<uint64_t>(end) << 32 | begin;
}

// Of ThreadPool::last_shared_, the bits of a number of callers.
constexpr int64_t kCallersMask = 1023;

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
    : thread_count_(std::max(1, thread_count)), spin_ns_(kMinSpin.count()) {}

ThreadPool::~ThreadPool() {
  is_stopping_.store(true, std::memory_order_relaxed);
  for (const std::unique_ptr<Worker>& worker : workers_) {
    worker->offers.fetch_add(1, std::memory_order_release);
    worker->offers.notify_one();
  }
  for (const std::unique_ptr<Worker>& worker : workers_) worker->thread.join();
}

void ThreadPool::Start() {
  workers_.reserve(static_cast<size_t>(thread_count_ - 1));
  for (int thread = 1; thread < thread_count_; ++thread) {
    auto worker = std::make_unique<Worker>();
    try {
      worker->thread = std::thread([this, &it = *worker] { Work(it); });
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

ThreadPool::Team ThreadPool::TakeWorkers(int most) {
  const int workers = static_cast<int>(workers_.size());
  const auto at = [&](int number) -> std::atomic<bool>& {
    return workers_[static_cast<size_t>(number % workers)]->is_taken;
  };
  // Others may be faster; then there is less to take.
  for (int attempt = 0; most > 0 && attempt < 2; ++attempt) {
    // Those that are enough and nearest behind the last first one, else the longest row of free
    // ones, which may begin in front of it.
    Team free;
    int row = 0;
    for (int step = 0; step < 2 * workers && row < workers && free.size < most; ++step) {
      row = at(last_first + step).load(std::memory_order_relaxed) ? 0 : row + 1;
      if (row > free.size) free = {.first = last_first + step - row + 1, .size = row};
    }
    int taken = 0;
    while (taken < free.size && !at(free.first + taken).exchange(true, std::memory_order_acquire)) {
      ++taken;
    }
    if (taken == 0) continue;
    last_first = free.first % workers;
    return {.first = last_first, .size = taken};
  }
  return {};
}

void ThreadPool::DoParts(Loop& loop, int thread) {
  const InsideLoop inside(this);
  const int threads = loop.threads;
  for (int step = 0; step < threads; ++step) {
    std::atomic<uint64_t>& parts = ShareOf(loop, (thread + step) % threads).parts;
    for (int part; (part = TakePart(parts, /*is_own=*/step == 0)) != kNoPart;) {
      try {
        loop.run(loop.context, part, thread);
      } catch (...) {
        if (!loop.has_thrown.exchange(true)) loop.thrown = std::current_exception();
      }
    }
  }
}

void ThreadPool::Work(Worker& worker) {
  for (uint32_t seen = 0;;) {
    const Awaited awaited = AwaitChange(worker.offers, seen, Spin());
    seen = awaited.word;
    if (is_stopping_.load(std::memory_order_relaxed)) return;
    if (awaited.has_slept) NoteWaking();
    if (!TakeOffer(worker.offers, seen)) continue;
    ++seen;
    Loop& loop = *worker.loop;
    DoParts(loop, worker.number);
    if (loop.unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) loop.unfinished.notify_one();
  }
}

template <typename Body>
void ThreadPool::RunParts(int parts, const Body& body) {
  const auto run_alone = [&] {
    const InsideLoop inside(this);
    for (int part = 0; part < parts; ++part) body(part, /*thread=*/0);
  };
  if (parts == 1 || current_pool != nullptr) return run_alone();
  std::call_once(started_, [this] { Start(); });
  const Counted counted(loops_);
  const int callers = std::max(loops_.load(), CountCallers());
  // Each caller has a processor, and of the workers a share, rounded up: who comes first may have
  // one more.
  const int free = std::max(0, static_cast<int>(workers_.size()) - (callers - 1));
  const Team team = TakeWorkers(std::min(parts - 1, (free + callers - 1) / callers));
  if (team.size == 0) {
    if (callers > 1) spin_ns_.store(kMinSpin.count(), std::memory_order_relaxed);
    return run_alone();
  }
  const int threads = team.size + 1;
  Loop& loop = workers_[static_cast<size_t>(team.first)]->own_loop;
  loop.run = [](const void* context, int part, int thread) {
    (*static_cast<const Body*>(context))(part, thread);
  };
  loop.context = &body;
  loop.first = team.first;
  loop.threads = threads;
  for (int thread = 0; thread < threads; ++thread) {
    const int64_t all = parts;
    ShareOf(loop, thread)
        .parts.store(PackParts(static_cast<uint32_t>(all * thread / threads),
                               static_cast<uint32_t>(all * (thread + 1) / threads)),
                     std::memory_order_relaxed);
  }
  loop.unfinished.store(static_cast<uint32_t>(threads - 1), std::memory_order_relaxed);
  const auto offered = steady_clock::now();
  offered_at_.store(offered.time_since_epoch().count(), std::memory_order_relaxed);
  for (int thread = 1; thread < threads; ++thread) {
    Worker& worker = WorkerOf(loop, thread);
    worker.loop = &loop;
    worker.number = thread;
    worker.offers.fetch_add(1, std::memory_order_release);
    worker.offers.notify_one();
  }
  DoParts(loop, /*thread=*/0);
  std::optional<int> processor;  // from which workers that have not come are moved, if any are
  for (int thread = 1; thread < threads; ++thread) {
    Worker& worker = WorkerOf(loop, thread);
    if (!TakeOffer(worker.offers, worker.offers.load(std::memory_order_relaxed))) continue;
    loop.unfinished.fetch_sub(1, std::memory_order_relaxed);
    if (!processor) processor = IsTimeToMove(offered) ? CurrentProcessor() : kNoProcessor;
    if (*processor != kNoProcessor) MoveFrom(*processor, worker.thread.native_handle());
  }
  for (uint32_t left = loop.unfinished.load(std::memory_order_acquire); left != 0;) {
    left = AwaitChange(loop.unfinished, left, Spin()).word;
  }
  const std::exception_ptr thrown = std::exchange(loop.thrown, nullptr);
  loop.has_thrown = false;
  // The first one last: the loop is in it.
  for (int thread = threads - 1; thread > 0; --thread) {
    WorkerOf(loop, thread).is_taken.store(false, std::memory_order_release);
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

// Who calls in turn is away between two runs for some microseconds. A worker that another caller
// woke up for that time would have its processor when it comes back, and spin there.
void ThreadPool::NoteCallers(int more) {
  const int before = callers_.fetch_add(more);
  if (more > 0 || before < 2) return;
  const int64_t now = steady_clock::now().time_since_epoch().count();
  last_shared_.store((now & ~kCallersMask) | std::min<int64_t>(before, kCallersMask),
                     std::memory_order_relaxed);
}

int ThreadPool::CountCallers() const {
  const int callers = callers_.load(std::memory_order_relaxed);
  const int64_t last_shared = last_shared_.load(std::memory_order_relaxed);
  const int before = static_cast<int>(last_shared & kCallersMask);
  if (before <= callers) return callers;
  const nanoseconds since = steady_clock::now().time_since_epoch() - nanoseconds(last_shared);
  return since < kPauseOfCaller ? before : callers;
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
