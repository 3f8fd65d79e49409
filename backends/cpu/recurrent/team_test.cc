// SPDX-License-Identifier: Apache-2.0
//
// Team: every unit of every phase is done once, and no phase begins before the one before it ends,
// whoever comes, and when.

#include "backends/cpu/recurrent/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace onnxifi::recurrent {
namespace {

// Counts units, and those that saw another phase than their own.
class Record {
 public:
  Record(int units, int64_t phases)
      : units_(units), done_(static_cast<size_t>(units) * static_cast<size_t>(phases)) {}

  void Do(int unit, int64_t phase) {
    if (finished_.load() < phase * units_ || finished_.load() >= (phase + 1) * units_) ++wrong_;
    ++done_[static_cast<size_t>(phase * units_ + unit)];
    ++finished_;
  }
  void ExpectAll() const {
    EXPECT_EQ(wrong_.load(), 0);
    for (const std::atomic<int>& count : done_) ASSERT_EQ(count.load(), 1);
  }

 private:
  const int units_;
  std::vector<std::atomic<int>> done_;
  std::atomic<int64_t> finished_ = 0;
  std::atomic<int> wrong_ = 0;
};

void RunMembers(int members, int units, int64_t phases, const std::vector<int>& who,
                const std::function<void(int member)>& arrive) {
  Team team(members, units, phases);
  Record record(units, phases);
  std::vector<std::thread> threads;
  for (const int member : who) {
    threads.emplace_back([&, member] {
      arrive(member);
      team.Work(member, [&](int unit, int64_t phase) { record.Do(unit, phase); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  record.ExpectAll();
}

TEST(TeamTest, EveryUnitIsDoneOnceInItsPhase) {
  for (const int members : {1, 2, 3}) {
    for (const int64_t phases : {0, 1, 500}) {
      std::vector<int> who;
      for (int member = 0; member < members; ++member) who.push_back(member);
      RunMembers(members, members, phases, who, [](int) {});
      RunMembers(members, 2 * members, phases, who, [](int) {});
    }
  }
}

TEST(TeamTest, NobodyWaitsForWhoDoesNotCome) {
  RunMembers(3, 3, 200, {0}, [](int) {});
  RunMembers(3, 6, 200, {2}, [](int) {});
  RunMembers(3, 6, 200, {1, 2}, [](int) {});
}

TEST(TeamTest, WhoComesLateJoins) {
  RunMembers(2, 2, 20'000, {0, 1}, [](int member) {
    if (member == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
}

// One after the other on one thread, as where the pool's other threads are taken.
TEST(TeamTest, MembersMayComeOneAfterTheOther) {
  Team team(4, 4, 30);
  Record record(4, 30);
  for (int member = 0; member < 4; ++member) {
    team.Work(member, [&](int unit, int64_t phase) { record.Do(unit, phase); });
  }
  record.ExpectAll();
}

}  // namespace
}  // namespace onnxifi::recurrent
