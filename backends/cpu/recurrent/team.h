// SPDX-License-Identifier: Apache-2.0
//
// Team: threads that go through the phases of one piece of work together. A phase has units, which
// may be done side by side, and begins when the one before it is finished. Threads stay for all
// phases and meet by spinning, so that a phase may be as short as a microsecond.

#ifndef ONNXIFI_BACKENDS_CPU_RECURRENT_TEAM_H_
#define ONNXIFI_BACKENDS_CPU_RECURRENT_TEAM_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

namespace onnxifi::recurrent {

// Unit u belongs to member u % members, whose caches have what it needs. Nobody waits for a member
// that has not come: its units are done by the others, as are those that a member who has lost its
// processor has not begun. So any of the members, one at least, get the work done, and a member
// that comes late joins where the others are. Threads: all.
class Team {
 public:
  static constexpr int kMaxMembers = 32;
  static constexpr int kMaxUnits = 2 * kMaxMembers;

  // 1 <= members <= kMaxMembers; members <= units <= kMaxUnits.
  Team(int members, int units, int64_t phases)
      : members_(members), units_(units), phases_(phases) {}
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int members() const { return members_; }

  // The part of member `member`, on its thread: calls run(unit, phase), and returns when all
  // phases are finished. What units of a phase wrote is there in the next.
  template <typename Run>
  void Work(int member, const Run& run) {
    is_present_[static_cast<size_t>(member)].store(true, std::memory_order_relaxed);
    while (true) {
      const int64_t done = done_.load(std::memory_order_acquire);
      const int64_t phase = done / units_;
      if (phase >= phases_) return;
      for (int unit = member; unit < units_; unit += members_) Take(unit, phase, run);
      for (int unit = 0; unit < units_; ++unit) {
        if (!is_present_[static_cast<size_t>(unit % members_)].load(std::memory_order_relaxed)) {
          Take(unit, phase, run);
        }
      }
      Await((phase + 1) * units_, phase, run);
    }
  }

 private:
  // On a line of its own, so that one member's do not disturb another.
  struct alignas(64) Unit {
    std::atomic<int64_t> begun = 0;  // phases
  };

  // Does the unit if nobody has begun it in this phase.
  template <typename Run>
  bool Take(int unit, int64_t phase, const Run& run) {
    std::atomic<int64_t>& begun = all_[static_cast<size_t>(unit)].begun;
    int64_t expected = phase;
    if (begun.load(std::memory_order_relaxed) != phase ||
        !begun.compare_exchange_strong(expected, phase + 1, std::memory_order_relaxed)) {
      return false;
    }
    run(unit, phase);
    done_.fetch_add(1, std::memory_order_acq_rel);
    return true;
  }

  // Returns when so many units are done. After a while takes what others have not begun.
  template <typename Run>
  void Await(int64_t target, int64_t phase, const Run& run) {
    constexpr int kPauses = 500;
    while (true) {
      for (int k = 0; k < kPauses; ++k) {
        if (done_.load(std::memory_order_acquire) >= target) return;
        Pause();
      }
      bool has_taken = false;
      for (int unit = 0; unit < units_; ++unit) has_taken |= Take(unit, phase, run);
      // Whoever works may need this processor.
      if (!has_taken) std::this_thread::yield();
    }
  }

  static void Pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
  }

  const int members_;
  const int units_;
  const int64_t phases_;
  std::array<Unit, kMaxUnits> all_;
  alignas(64) std::atomic<int64_t> done_ = 0;  // units, of all phases
  alignas(64) std::array<std::atomic<bool>, kMaxMembers> is_present_ = {};
};

}  // namespace onnxifi::recurrent

#endif  // ONNXIFI_BACKENDS_CPU_RECURRENT_TEAM_H_
