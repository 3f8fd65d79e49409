// SPDX-License-Identifier: Apache-2.0
//
// Tests of the thread pool: every index once, from whatever thread and depth the loop is called.

#include "backends/cpu/threads/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace onnxifi::threads {
namespace {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

Ranges RangesOf(ThreadPool& pool, int64_t count, int64_t grain) {
  std::mutex mutex;
  Ranges ranges;
  pool.For(count, grain, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    ranges.emplace_back(begin, end);
  });
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

TEST(ThreadPoolTest, CoversEveryIndexOnceInRangesOfTheGrain) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int64_t count : {0, 1, 2, 3, 7, 8, 9, 100, 1001}) {
      for (int64_t grain : {0, 1, 3, 50, 5000}) {
        const Ranges ranges = RangesOf(pool, count, grain);
        int64_t next = 0;
        for (size_t k = 0; k < ranges.size(); ++k) {
          EXPECT_EQ(ranges[k].first, next);
          EXPECT_LT(ranges[k].first, ranges[k].second);
          if (k + 1 < ranges.size()) {
            EXPECT_GE(ranges[k].second - ranges[k].first, grain);
          }
          next = ranges[k].second;
        }
        EXPECT_EQ(next, count);
        EXPECT_LE(static_cast<int>(ranges.size()), threads * ThreadPool::kPartsPerThread);
        if (static_cast<int>(ranges.size()) > threads) {
          EXPECT_EQ(static_cast<int>(ranges.size()) % threads, 0);
        }
      }
    }
  }
}

TEST(ThreadPoolTest, CutsTheSameLoopInTheSamePlaces) {
  ThreadPool pool(3);
  const Ranges first = RangesOf(pool, 1000, 10);
  EXPECT_EQ(first.size(), 12u);
  for (int repeat = 0; repeat < 20; ++repeat) EXPECT_EQ(RangesOf(pool, 1000, 10), first);
}

TEST(ThreadPoolTest, UsesAsManyThreadsAsItHas) {
  ThreadPool pool(3);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  // Nobody leaves before all three are there, so no thread can have done two parts.
  std::latch all_here(3);
  pool.For(3, 1, [&](int64_t, int64_t) {
    all_here.arrive_and_wait();
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(threads.size(), 3u);
  EXPECT_TRUE(threads.contains(std::this_thread::get_id()));
}

// One thread stands still in its first part; the others do all the rest, of its own too.
TEST(ThreadPoolTest, LeavesWhatALateThreadHasNotBegunToOthers) {
  ThreadPool pool(3);
  constexpr int kParts = 12;
  std::atomic<int> done = 0;
  std::vector<std::atomic<int>> calls(kParts);
  pool.ForEachPart(kParts, [&](int64_t part, int /*thread*/) {
    ++calls[static_cast<size_t>(part)];
    if (part == 0) {
      while (done < kParts - 1) std::this_thread::yield();
    } else {
      ++done;
    }
  });
  for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1);
}

TEST(ThreadPoolTest, GivesPartsAtTheSameTimeThreadsOfTheirOwn) {
  ThreadPool pool(3);
  std::vector<std::atomic<bool>> is_taken(3);
  std::atomic<int> wrong = 0;
  for (int repeat = 0; repeat < 200; ++repeat) {
    pool.ForEachPart(17, [&](int64_t /*part*/, int thread) {
      if (is_taken[static_cast<size_t>(thread)].exchange(true)) ++wrong;
      std::this_thread::yield();
      is_taken[static_cast<size_t>(thread)] = false;
    });
  }
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPoolTest, RunsALoopInsideALoopOnItsOwnThread) {
  ThreadPool pool(4);
  std::atomic<int64_t> sum = 0;
  std::atomic<int> foreign = 0;
  pool.For(40, 1, [&](int64_t begin, int64_t end) {
    EXPECT_TRUE(pool.get_in_parallel());
    const std::thread::id outer = std::this_thread::get_id();
    for (int64_t k = begin; k < end; ++k) {
      pool.For(10, 1, [&](int64_t inner_begin, int64_t inner_end) {
        if (std::this_thread::get_id() != outer) ++foreign;
        sum += inner_end - inner_begin;
      });
    }
  });
  EXPECT_EQ(sum, 400);
  EXPECT_EQ(foreign, 0);
  EXPECT_FALSE(pool.get_in_parallel());
}

TEST(ThreadPoolTest, ServesCallersAtTheSameTime) {
  ThreadPool pool(3);
  constexpr int kCallers = 6;
  constexpr int kRounds = 300;
  std::vector<int64_t> sums(kCallers, 0);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&pool, &sum = sums[static_cast<size_t>(caller)]] {
      for (int loop = 0; loop < kRounds; ++loop) {
        std::atomic<int64_t> partial = 0;
        pool.For(100, 1, [&](int64_t begin, int64_t end) {
          for (int64_t k = begin; k < end; ++k) partial += k;
        });
        sum += partial;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const int64_t sum : sums) EXPECT_EQ(sum, 4950 * kRounds);
}

// Whoever computes a run beside another one has its loops to itself, between them too.
TEST(ThreadPoolTest, KeepsLoopsOfRunsSideBySideOnTheirThreads) {
  ThreadPool pool(2);
  const std::thread::id here = std::this_thread::get_id();
  std::atomic<int> elsewhere = 0;
  const auto loop = [&] {
    pool.For(8, 1, [&](int64_t, int64_t) {
      elsewhere += std::this_thread::get_id() == here ? 0 : 1;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    });
  };
  const device::Parallel::Caller caller(&pool);
  {
    const device::Parallel::Caller other(&pool);
    for (int round = 0; round < 50; ++round) loop();
    EXPECT_EQ(elsewhere, 0);
  }
  // A worker joins sooner or later, where the system grants one.
  for (int round = 0; round < 10000 && elsewhere == 0; ++round) loop();
  EXPECT_GT(elsewhere, 0);
}

// Who is between two runs still counts, so that nobody takes its processor meanwhile.
TEST(ThreadPoolTest, KeepsLoopsOnTheirThreadsWhileAnotherCallerPauses) {
  using std::chrono::steady_clock;
  ThreadPool pool(2);
  const std::thread::id here = std::this_thread::get_id();
  const auto spin_until = [](steady_clock::time_point end) {
    while (steady_clock::now() < end) {
    }
  };
  const device::Parallel::Caller caller(&pool);
  int in_time = 0;
  for (int attempt = 0; attempt < 1000 && in_time < 20; ++attempt) {
    { const device::Parallel::Caller other(&pool); }
    const steady_clock::time_point end = steady_clock::now() + ThreadPool::kPauseOfCaller / 2;
    std::atomic<int> elsewhere = 0;
    pool.For(8, 1, [&](int64_t, int64_t) {
      elsewhere += std::this_thread::get_id() == here ? 0 : 1;
      spin_until(steady_clock::now() + std::chrono::microseconds(100));
    });
    // The loop may have begun too late where others have the processor.
    const steady_clock::time_point ended = steady_clock::now();
    if (ended - std::chrono::microseconds(800) > end) continue;
    ++in_time;
    EXPECT_EQ(elsewhere, 0);
  }
  EXPECT_GT(in_time, 0);
}

// Threads that wait for one another, but not for ever.
class Meeting {
 public:
  explicit Meeting(int count) : count_(count) {}
  void Come() {
    ++here_;
    for (int k = 0; k < 10'000 && here_ < count_; ++k) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_GE(here_, count_);
  }

 private:
  const int count_;
  std::atomic<int> here_ = 0;
};

// Two loops at the same time, each on two of the four threads.
TEST(ThreadPoolTest, DividesItsWorkersAmongCallers) {
  ThreadPool pool(4);
  const device::Parallel::Caller first(&pool), second(&pool);
  for (int repeat = 0; repeat < 50 && !HasFailure(); ++repeat) {
    Meeting meeting(4);
    const auto run = [&] {
      pool.ForEachPart(2, [&](int64_t part, int thread) {
        EXPECT_EQ(part, thread);
        meeting.Come();
      });
    };
    std::thread other(run);
    run();
    other.join();
  }
}

// A caller whose last workers stood just in front of another one's takes free ones elsewhere.
TEST(ThreadPoolTest, FindsWorkersThatAreFree) {
  ThreadPool pool(5);
  const auto hold = [&](int64_t parts, std::latch& begun, std::latch& may_end) {
    return std::thread([&pool, parts, &begun, &may_end] {
      pool.ForEachPart(parts, [&](int64_t, int) {
        begun.count_down();
        may_end.wait();
      });
    });
  };
  std::latch three_begun(4), three_may_end(1), one_begun(2), one_may_end(1);
  std::thread three = hold(4, three_begun, three_may_end);
  three_begun.wait();
  pool.ForEachPart(2, [](int64_t, int) {});  // the fourth worker
  three_may_end.count_down();
  three.join();
  std::thread one = hold(2, one_begun, one_may_end);
  one_begun.wait();
  Meeting meeting(3);
  pool.ForEachPart(3, [&](int64_t, int) { meeting.Come(); });
  one_may_end.count_down();
  one.join();
}

// Of parts on any thread, and of those of a caller alone.
TEST(ThreadPoolTest, WhatPartsThrowArrivesOnceAllAreDone) {
  ThreadPool pool(3);
  for (const int64_t thrower : {0, 1, 5}) {
    std::atomic<int> done = 0;
    const auto body = [&](int64_t part, int) {
      if (part == thrower) throw std::runtime_error("no");
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      ++done;
    };
    EXPECT_THROW(pool.ForEachPart(6, body), std::runtime_error);
    EXPECT_EQ(done, 5) << thrower;
    const ThreadPool::Alone alone(pool);
    EXPECT_THROW(pool.ForEachPart(6, body), std::runtime_error);
  }
  Meeting meeting(3);
  pool.ForEachPart(3, [&](int64_t, int) { meeting.Come(); });
}

// Of the three workers each other caller has one's processor, and the rest is divided, rounded up.
TEST(ThreadPoolTest, LeavesOtherCallersTheirShares) {
  ThreadPool pool(4);
  std::vector<std::unique_ptr<device::Parallel::Caller>> callers;
  for (const size_t most : {4u, 2u, 2u, 1u, 1u}) {
    callers.push_back(std::make_unique<device::Parallel::Caller>(&pool));
    std::mutex mutex;
    std::set<std::thread::id> threads;
    for (int repeat = 0; repeat < 100; ++repeat) {
      pool.For(16, 1, [&](int64_t, int64_t) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
      });
    }
    EXPECT_LE(threads.size(), most) << callers.size() << " callers";
    EXPECT_GE(threads.size(), std::min<size_t>(most, 2)) << callers.size() << " callers";
  }
}

// One caller is in a loop alone, begun while another had the worker: the other's next loops stay on
// their thread until it is done.
TEST(ThreadPoolTest, GivesWayToOtherCallers) {
  ThreadPool pool(2);
  std::latch both_here(2), other_is_alone(1), other_may_end(1);
  std::thread other;
  pool.For(2, 1, [&](int64_t begin, int64_t) {
    both_here.arrive_and_wait();
    if (begin != 0) return;
    other = std::thread([&] {
      pool.For(2, 1, [&](int64_t part, int64_t) {
        if (part != 0) return;
        other_is_alone.count_down();
        other_may_end.wait();
      });
    });
    other_is_alone.wait();
  });
  const std::thread::id caller = std::this_thread::get_id();
  for (int repeat = 0; repeat < 3; ++repeat) {
    pool.For(8, 1, [&](int64_t, int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(std::this_thread::get_id(), caller) << repeat;
    });
  }
  other_may_end.count_down();
  other.join();
  std::latch again(2);
  pool.For(2, 1, [&](int64_t, int64_t) { again.arrive_and_wait(); });
}

TEST(ThreadPoolTest, SpinsAboutAsLongAsWakingUpTakes) {
  using std::chrono::microseconds;
  std::chrono::nanoseconds spin = microseconds(50);
  EXPECT_EQ(ThreadPool::AdaptSpin(spin, microseconds(5)), microseconds(50));
  for (int repeat = 0; repeat < 20; ++repeat) spin = ThreadPool::AdaptSpin(spin, microseconds(150));
  EXPECT_NEAR(static_cast<double>(spin.count()), 300e3, 1e3);
  EXPECT_EQ(ThreadPool::AdaptSpin(spin, microseconds(60'000)), microseconds(1000));
  for (int repeat = 0; repeat < 20; ++repeat) spin = ThreadPool::AdaptSpin(spin, microseconds(10));
  EXPECT_EQ(spin, microseconds(50));
}

TEST(ThreadPoolTest, CutsALoopIntoAsManyPartsForEachThread) {
  ThreadPool pool(3);
  EXPECT_EQ(pool.CountParts(1), 1);
  EXPECT_EQ(pool.CountParts(2), 2);
  EXPECT_EQ(pool.CountParts(3), 3);
  EXPECT_EQ(pool.CountParts(8), 6);
  EXPECT_EQ(pool.CountParts(1000), 3 * ThreadPool::kPartsPerThread);
  EXPECT_EQ(pool.ThreadsOf(2), 2);
  EXPECT_EQ(pool.ThreadsOf(12), 3);
  EXPECT_EQ(ThreadPool(1).CountParts(1000), 1);
}

// The sleeping workers have to be woken, the spinning ones to notice.
TEST(ThreadPoolTest, FindsItsWorkersAfterAPause) {
  ThreadPool pool(2);
  for (int pause_us : {0, 10, 200, 2000}) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
      std::latch both_here(2);
      pool.For(2, 1, [&](int64_t, int64_t) { both_here.arrive_and_wait(); });
    }
  }
}

TEST(ThreadPoolTest, GivesOneDnnEveryPartWhateverTheirNumber) {
  ThreadPool pool(3);
  for (int parts : {0, 1, 2, 3, 4, 17}) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(parts));
    pool.parallel_for(parts, [&](int part, int of) {
      EXPECT_EQ(of, parts);
      ++calls[static_cast<size_t>(part)];
    });
    for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1);
  }
}

TEST(ThreadPoolTest, StartsAndEndsWithoutWork) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    ThreadPool idle(4);
    ThreadPool used(4);
    used.For(4, 1, [](int64_t, int64_t) {});
  }
}

TEST(ThreadPoolTest, StaysOnItsCallerWhileThatIsAlone) {
  ThreadPool pool(3);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> elsewhere = 0;
  const auto count = [&](int64_t, int64_t) { elsewhere += std::this_thread::get_id() != caller; };
  {
    const ThreadPool::Alone alone(pool);
    EXPECT_TRUE(pool.get_in_parallel());
    pool.For(100, 1, count);
    EXPECT_EQ(elsewhere, 0);
  }
  EXPECT_FALSE(pool.get_in_parallel());
  std::latch begun(3);  // keeps the caller from taking the other two's parts
  pool.For(3, 1, [&](int64_t begin, int64_t end) {
    begun.arrive_and_wait();
    count(begin, end);
  });
  EXPECT_EQ(elsewhere, 2);
}

// What a worker's signal handler does below, and the test's word that it may go on.
std::atomic<bool> is_held = false;
std::atomic<bool> may_go_on = false;

void HoldWorker(int) {
  is_held = true;
  while (!may_go_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(ThreadPoolTest, DoesNotWaitForAWorkerThatHasNotBegun) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer keeps signals back from a thread that waits.";
#endif
  ThreadPool pool(2);
  const pthread_t caller = pthread_self();
  pthread_t worker = caller;
  std::latch begun(2);
  pool.For(2, 1, [&](int64_t, int64_t) {
    if (pthread_equal(pthread_self(), caller) == 0) worker = pthread_self();
    begun.arrive_and_wait();
  });
  ASSERT_EQ(pthread_equal(worker, caller), 0);
  const auto old_handler = std::signal(SIGUSR1, HoldWorker);
  ASSERT_EQ(pthread_kill(worker, SIGUSR1), 0);
  while (!is_held) std::this_thread::yield();
  // As if another process had the worker's processor: the caller does its parts, of several loops
  // one after the other.
  for (int repeat = 1; repeat <= 3; ++repeat) EXPECT_EQ(RangesOf(pool, 10 * repeat, 1).size(), 8u);
  may_go_on = true;
  std::signal(SIGUSR1, old_handler);
  // Afterwards the worker takes part again.
  std::latch again(2);
  std::atomic<int> elsewhere = 0;
  pool.For(2, 1, [&](int64_t, int64_t) {
    again.arrive_and_wait();
    elsewhere += pthread_equal(pthread_self(), caller) == 0;
  });
  EXPECT_EQ(elsewhere, 1);
}

}  // namespace
}  // namespace onnxifi::threads
