// SPDX-License-Identifier: Apache-2.0
//
// RunQueue: runs in the order of their calls, none before its input is there, and every
// way in which one can end told by its event.

#include "backends/core/plugin/run_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

namespace onnxifi::plugin {
namespace {

using abi::LocalEvent;
using base::Code;
using base::Status;
using Outputs = abi::RunOutputs;
using std::chrono::milliseconds;

class RunQueueTest : public testing::Test {
 public:
  RunQueueTest() { EXPECT_TRUE(worker.Start().ok()); }

  // Work that notes its number.
  RunQueue::Work Note(int number) {
    return [this, number](Outputs&) {
      std::lock_guard lock(mutex);
      order.push_back(number);
      return base::Ok();
    };
  }
  static std::shared_ptr<LocalEvent> NewInput() {
    return std::make_shared<LocalEvent>(LocalEvent::Origin::kCaller);
  }

  Worker worker;
  std::shared_ptr<RunQueue> queue = std::make_shared<RunQueue>(worker);
  std::mutex mutex;
  std::vector<int> order;
};

TEST_F(RunQueueTest, RunsInTheOrderOfTheCalls) {
  // The first waits for its input; those behind it are ready, and wait for it.
  const auto first_input = NewInput();
  const auto third_input = NewInput();
  EXPECT_TRUE(third_input->Signal().ok());
  const auto first = queue->Add(Note(1), first_input);
  const auto second = queue->Add(Note(2), nullptr);
  const auto third = queue->Add(Note(3), third_input);
  EXPECT_FALSE(third->WaitFor(milliseconds(30)).has_value());
  EXPECT_TRUE(order.empty());
  EXPECT_TRUE(first_input->Signal().ok());
  EXPECT_TRUE(third->Wait().ok());
  EXPECT_TRUE(first->Wait().ok());
  EXPECT_TRUE(second->Wait().ok());
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST_F(RunQueueTest, CarriesOutShortWorkOnItsCaller) {
  std::thread::id where;
  const RunQueue::Work note = [&](Outputs&) {
    where = std::this_thread::get_id();
    return base::Ok();
  };
  EXPECT_TRUE(queue->Add(note, nullptr, RunQueue::RunsOn::kCaller)->Wait().ok());
  EXPECT_EQ(where, std::this_thread::get_id());
  const auto input = NewInput();
  EXPECT_TRUE(input->Signal().ok());
  where = {};
  const auto output = queue->Add(note, input, RunQueue::RunsOn::kCaller);
  EXPECT_TRUE(*output->IsSignalled());
  EXPECT_EQ(where, std::this_thread::get_id());
  // WaitFor does not help.
  EXPECT_TRUE(queue->Add(note, nullptr)->WaitFor(std::chrono::minutes(1))->ok());
  EXPECT_NE(where, std::this_thread::get_id());
}

// Keeps the worker, or whoever helps, at a task until it is opened.
class Gate {
 public:
  RunQueue::Work Work() {
    return [this](Outputs&) {
      entered_.set_value();
      open_.get_future().wait();
      return base::Ok();
    };
  }
  void AwaitEntry() { entered_.get_future().wait(); }
  void Open() { open_.set_value(); }

 private:
  std::promise<void> entered_, open_;
};

TEST_F(RunQueueTest, AWaiterCarriesOutWhatNobodyHasBegun) {
  // A queue whose worker was never started stands for one that has not woken up.
  const Worker asleep;
  const auto alone = std::make_shared<RunQueue>(asleep);
  std::thread::id where;
  const auto output = alone->Add(
      [&](Outputs&) {
        where = std::this_thread::get_id();
        return Status(Code::kInternalError, "The work failed.");
      },
      nullptr);
  EXPECT_FALSE(output->WaitFor(milliseconds(20)).has_value());
  EXPECT_EQ(output->Wait().code(), Code::kInternalError);
  EXPECT_EQ(where, std::this_thread::get_id());
  // Again, as nothing is left to do.
  EXPECT_EQ(output->Wait().code(), Code::kInternalError);
}

TEST_F(RunQueueTest, AWaiterLeavesWhatIsNotNextToTheWorker) {
  Gate gate;
  const auto other = std::make_shared<RunQueue>(worker);
  const auto first = queue->Add(gate.Work(), nullptr);
  gate.AwaitEntry();
  std::thread::id where;
  const auto second = other->Add(
      [&](Outputs&) {
        where = std::this_thread::get_id();
        return base::Ok();
      },
      nullptr);
  std::thread waiter([&] {
    EXPECT_TRUE(second->Wait().ok());
    EXPECT_NE(where, std::this_thread::get_id());
  });
  EXPECT_FALSE(second->WaitFor(milliseconds(30)).has_value());
  gate.Open();
  waiter.join();
  EXPECT_TRUE(first->Wait().ok());
}

// What is submitted while a waiter helps is not forgotten.
TEST_F(RunQueueTest, TheWorkerGoesOnWhereAHelperEnds) {
  for (int round = 0; round < 2000; ++round) {
    const auto first = queue->Add(Note(1), nullptr);
    std::thread helper;
    if (round % 100 == 0) helper = std::thread([&] { EXPECT_TRUE(first->Wait().ok()); });
    const auto second = queue->Add(Note(2), nullptr);
    if (round % 2 == 0) {
      EXPECT_TRUE(first->Wait().ok());
    }
    EXPECT_TRUE(second->WaitFor(std::chrono::minutes(1)).has_value());
    if (helper.joinable()) helper.join();
  }
  ASSERT_EQ(order.size(), 4000);
  for (size_t k = 0; k < order.size(); ++k) EXPECT_EQ(order[k], k % 2 == 0 ? 1 : 2);
}

TEST_F(RunQueueTest, AWorkerEndsOnlyAfterWhatAHelperCarriesOut) {
  Gate gate;
  auto own = std::make_unique<Worker>();
  const auto alone = std::make_shared<RunQueue>(*own);
  const auto output = alone->Add(gate.Work(), nullptr);
  std::thread helper([&] { EXPECT_TRUE(output->Wait().ok()); });
  gate.AwaitEntry();
  EXPECT_TRUE(own->Start().ok());
  std::atomic<bool> is_gone = false;
  std::thread destroyer([&] {
    own = nullptr;
    is_gone = true;
  });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(is_gone);
  gate.Open();
  destroyer.join();
  helper.join();
}

// Not before its turn, and not before its input.
TEST_F(RunQueueTest, LeavesShortWorkThatHasToWaitToTheWorker) {
  const auto first_input = NewInput();
  const auto first = queue->Add(Note(1), first_input, RunQueue::RunsOn::kCaller);
  const auto second = queue->Add(Note(2), nullptr, RunQueue::RunsOn::kCaller);
  EXPECT_FALSE(second->WaitFor(milliseconds(30)).has_value());
  EXPECT_TRUE(first_input->Signal().ok());
  EXPECT_TRUE(second->Wait().ok());
  EXPECT_TRUE(first->Wait().ok());
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(RunQueueTest, GivesShortWorkTheStatusOfItsInput) {
  const auto input = NewInput();
  input->Complete(Status(Code::kInternalError, "The input is lost."));
  const auto output = queue->Add(Note(1), input, RunQueue::RunsOn::kCaller);
  EXPECT_EQ(output->Wait().code(), Code::kInternalError);
  EXPECT_TRUE(order.empty());
  queue->Drain();
}

TEST_F(RunQueueTest, AQueueThatWaitsHoldsUpNoOther) {
  const auto input = NewInput();
  const auto waiting = queue->Add(Note(1), input);
  const auto other = std::make_shared<RunQueue>(worker);
  EXPECT_TRUE(other->Add(Note(2), nullptr)->Wait().ok());
  EXPECT_TRUE(input->Signal().ok());
  EXPECT_TRUE(waiting->Wait().ok());
  EXPECT_EQ(order, (std::vector<int>{2, 1}));
}

TEST_F(RunQueueTest, NeverRunsTwoOfAQueueAtATime) {
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  std::atomic<int> done = 0;
  const auto work = [&](Outputs&) {
    const int now = ++running;
    most = std::max(most.load(), now);
    std::this_thread::yield();
    --running;
    ++done;
    return base::Ok();
  };
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int k = 0; k < 100; ++k) {
        const auto input = NewInput();
        queue->Add(work, input);
        EXPECT_TRUE(input->Signal().ok());
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  queue->Drain();
  EXPECT_EQ(done, 400);
  EXPECT_EQ(most, 1);
}

// Memory of one run, by a number: runs of one number share it.
class NumberedFootprint final : public RunQueue::Footprint {
 public:
  explicit NumberedFootprint(int number, int64_t own_bytes = 100)
      : number_(number), own_bytes_(own_bytes) {}
  bool IsApartFrom(const RunQueue::Footprint& other) const override {
    return number_ != static_cast<const NumberedFootprint&>(other).number_;
  }
  int64_t own_bytes() const override { return own_bytes_; }

 private:
  const int number_;
  const int64_t own_bytes_;
};

class RunsSideBySide : public RunQueueTest {
 public:
  // On a thread of its own, so that it is another caller.
  std::shared_ptr<LocalEvent> AddAsAnother(RunQueue::Work work,
                                           const RunQueue::Footprint* footprint,
                                           RunQueue::RunsOn runs_on = RunQueue::RunsOn::kWorker) {
    std::shared_ptr<LocalEvent> output;
    std::thread caller([&] { output = wide->Add(std::move(work), nullptr, runs_on, footprint); });
    caller.join();
    return output;
  }

  std::shared_ptr<RunQueue> wide =
      std::make_shared<RunQueue>(worker, RunQueue::Limits{.at_once = 2});
  const NumberedFootprint here{1};
  const NumberedFootprint there{2};
};

TEST_F(RunsSideBySide, OfSeveralCallersApartFromEachOther) {
  Gate gate;
  const auto first = wide->Add(gate.Work(), nullptr, RunQueue::RunsOn::kWorker, &here);
  gate.AwaitEntry();
  // The worker is at the first; whoever waits carries out the second.
  EXPECT_TRUE(AddAsAnother(Note(2), &there)->Wait().ok());
  EXPECT_TRUE(*AddAsAnother(Note(3), &there, RunQueue::RunsOn::kCaller)->IsSignalled());
  EXPECT_FALSE(*first->IsSignalled());
  gate.Open();
  EXPECT_TRUE(first->Wait().ok());
  EXPECT_EQ(order, (std::vector<int>{2, 3}));
}

TEST_F(RunsSideBySide, NotInTheSameMemory) {
  Gate gate;
  const auto first = wide->Add(gate.Work(), nullptr, RunQueue::RunsOn::kWorker, &here);
  gate.AwaitEntry();
  const auto second = AddAsAnother(Note(2), &here, RunQueue::RunsOn::kCaller);
  EXPECT_FALSE(second->WaitFor(milliseconds(30)).has_value());
  // Nor past one that waits for its turn there.
  const auto third = AddAsAnother(Note(3), &here);
  EXPECT_FALSE(third->WaitFor(milliseconds(30)).has_value());
  EXPECT_TRUE(AddAsAnother(Note(4), &there)->Wait().ok());
  gate.Open();
  EXPECT_TRUE(third->Wait().ok());
  EXPECT_TRUE(first->Wait().ok());
  EXPECT_TRUE(second->Wait().ok());
  EXPECT_EQ(order, (std::vector<int>{4, 2, 3}));
}

// A thread that queues several runs and waits for the last has them all.
TEST_F(RunsSideBySide, NotOfOneCaller) {
  Gate gate;
  const auto first = wide->Add(gate.Work(), nullptr, RunQueue::RunsOn::kWorker, &here);
  gate.AwaitEntry();
  const auto second = wide->Add(Note(2), nullptr, RunQueue::RunsOn::kCaller, &there);
  EXPECT_FALSE(second->WaitFor(milliseconds(30)).has_value());
  gate.Open();
  EXPECT_TRUE(second->Wait().ok());
  EXPECT_TRUE(*first->IsSignalled());
}

TEST_F(RunsSideBySide, NotWithoutAFootprint) {
  Gate gate;
  const auto first = wide->Add(gate.Work(), nullptr, RunQueue::RunsOn::kWorker, &here);
  gate.AwaitEntry();
  const auto second = AddAsAnother(Note(2), nullptr);
  const auto third = AddAsAnother(Note(3), &there);
  EXPECT_FALSE(second->WaitFor(milliseconds(30)).has_value());
  EXPECT_FALSE(third->WaitFor(milliseconds(30)).has_value());
  gate.Open();
  EXPECT_TRUE(third->Wait().ok());
  EXPECT_TRUE(first->Wait().ok());
  EXPECT_EQ(order, (std::vector<int>{2, 3}));
}

TEST_F(RunsSideBySide, MoreOfLittleMemory) {
  wide = std::make_shared<RunQueue>(
      worker, RunQueue::Limits{.at_once = 2, .small_at_once = 4, .small_bytes = 130});
  const NumberedFootprint footprints[] = {NumberedFootprint(1, 100), NumberedFootprint(2, 10),
                                          NumberedFootprint(3, 10)};
  std::array<Gate, 3> gates;
  std::vector<std::thread> threads;
  for (size_t k = 0; k < gates.size(); ++k) {
    threads.emplace_back([&, k] {
      (void)wide->Add(gates[k].Work(), nullptr, RunQueue::RunsOn::kCaller, &footprints[k]);
    });
    gates[k].AwaitEntry();
  }
  // Those under way have 120 bytes. One that fits does not pass one that has waited before.
  const NumberedFootprint large(4, 11), small(5, 10);
  const auto waiting = AddAsAnother(Note(4), &large, RunQueue::RunsOn::kCaller);
  const auto behind = AddAsAnother(Note(5), &small, RunQueue::RunsOn::kCaller);
  EXPECT_FALSE(waiting->WaitFor(milliseconds(30)).has_value());
  EXPECT_FALSE(behind->WaitFor(milliseconds(30)).has_value());
  for (Gate& gate : gates) gate.Open();
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(waiting->Wait().ok());
  EXPECT_TRUE(behind->Wait().ok());
  EXPECT_EQ(order.size(), 2U);
}

TEST_F(RunsSideBySide, NoMoreThanThereMayBeOfLittleMemory) {
  wide = std::make_shared<RunQueue>(
      worker, RunQueue::Limits{.at_once = 2, .small_at_once = 3, .small_bytes = 1000});
  const NumberedFootprint footprints[] = {NumberedFootprint(1), NumberedFootprint(2),
                                          NumberedFootprint(3)};
  std::array<Gate, 3> gates;
  std::vector<std::thread> threads;
  for (size_t k = 0; k < gates.size(); ++k) {
    threads.emplace_back([&, k] {
      (void)wide->Add(gates[k].Work(), nullptr, RunQueue::RunsOn::kCaller, &footprints[k]);
    });
    gates[k].AwaitEntry();
  }
  const NumberedFootprint fourth(4);
  const auto waiting = AddAsAnother(Note(4), &fourth, RunQueue::RunsOn::kCaller);
  EXPECT_FALSE(waiting->WaitFor(milliseconds(30)).has_value());
  for (Gate& gate : gates) gate.Open();
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(waiting->Wait().ok());
}

// Threads that wait for their turn wake up when it comes, whatever the worker does.
TEST_F(RunsSideBySide, AsManyAsThereMayBe) {
  constexpr int kCallers = 6;
  constexpr int kRuns = 300;
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  std::atomic<int> done = 0;
  std::vector<std::atomic<int>> in_place(kCallers / 2);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      // Two callers each write the same memory.
      const int place = caller / 2;
      for (int k = 0; k < kRuns; ++k) {
        const auto footprint = std::make_shared<NumberedFootprint>(place);
        const auto work = [&, footprint, place](Outputs&) {
          EXPECT_EQ(++in_place[static_cast<size_t>(place)], 1);
          const int now = ++running;
          int before = most;
          while (before < now && !most.compare_exchange_weak(before, now)) continue;
          std::this_thread::yield();
          --running;
          --in_place[static_cast<size_t>(place)];
          ++done;
          return base::Ok();
        };
        const auto runs_on = k % 3 == 0 ? RunQueue::RunsOn::kWorker : RunQueue::RunsOn::kCaller;
        const auto output = wide->Add(work, nullptr, runs_on, footprint.get());
        EXPECT_TRUE(k % 5 == 0 ? output->WaitFor(std::chrono::minutes(1))->ok()
                               : output->Wait().ok());
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  wide->Drain();
  EXPECT_EQ(done, kCallers * kRuns);
  EXPECT_EQ(most, 2);
}

// A caller who signals an event by hand frees those who wait for it.
TEST_F(RunsSideBySide, AndNobodyWaitsForARunWhoseEventIsSignalled) {
  const auto input = NewInput();
  const auto first = wide->Add(Note(1), input);
  const auto second = AddAsAnother(Note(2), &there);
  std::atomic<bool> is_free = false;
  std::thread waiter([&] {
    EXPECT_TRUE(second->Wait().ok());
    is_free = true;
  });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(is_free);
  EXPECT_TRUE(second->Signal().ok());
  waiter.join();
  EXPECT_TRUE(order.empty());
  EXPECT_TRUE(input->Signal().ok());
  wide->Drain();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

// Nor does the input that comes after that hold up anybody.
TEST_F(RunsSideBySide, AndNobodyWaitsForOneWhoseInputComesAfterItsSignal) {
  const auto input = NewInput();
  const auto input_of_first = NewInput();
  const auto first = wide->Add(Note(1), input_of_first, RunQueue::RunsOn::kWorker, &here);
  std::shared_ptr<LocalEvent> second;
  std::thread([&] { second = wide->Add(Note(2), input, RunQueue::RunsOn::kWorker, &here); }).join();
  EXPECT_TRUE(second->Signal().ok());
  EXPECT_TRUE(input->Signal().ok());
  std::atomic<bool> is_free = false;
  std::thread waiter([&] {
    EXPECT_TRUE(second->Wait().ok());
    is_free = true;
  });
  for (int k = 0; k < 1000 && !is_free; ++k) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_TRUE(is_free);
  EXPECT_TRUE(input_of_first->Signal().ok());
  waiter.join();
  wide->Drain();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(RunsSideBySide, AndWaitForTheirInputs) {
  const auto input = NewInput();
  const auto output = wide->Add(Note(1), input, RunQueue::RunsOn::kCaller, &here);
  std::thread waiter([&] { EXPECT_TRUE(output->Wait().ok()); });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_TRUE(input->Signal().ok());
  waiter.join();
  EXPECT_EQ(order, std::vector<int>{1});
}

// A queue of another graph on the same worker.
TEST_F(RunsSideBySide, BesideThoseOfOtherGraphs) {
  Gate gate;
  const auto other = std::make_shared<RunQueue>(worker, RunQueue::Limits{.at_once = 2});
  const auto first = other->Add(gate.Work(), nullptr);
  gate.AwaitEntry();
  EXPECT_TRUE(wide->Add(Note(2), nullptr)->Wait().ok());
  gate.Open();
  EXPECT_TRUE(first->Wait().ok());
}

TEST_F(RunQueueTest, PassesOnTheStatusAndTheShapes) {
  const auto failed = queue->Add(
      [](Outputs& outputs) {
        outputs.shapes.push_back({"y", ONNXIFI_DATATYPE_FLOAT32, true, {4}});
        return Status(Code::kMismatchingShape, "It does not fit.");
      },
      nullptr);
  const auto done = queue->Add(
      [](Outputs& outputs) {
        outputs.shapes.push_back({"y", ONNXIFI_DATATYPE_FLOAT32, true, {2, 3}});
        return base::Ok();
      },
      nullptr);
  EXPECT_EQ(failed->Wait().code(), Code::kMismatchingShape);
  EXPECT_EQ(failed->Wait().sentence(), "It does not fit.");
  EXPECT_TRUE(done->Wait().ok());
  const auto shapes = done->OutputShapes();
  ASSERT_TRUE(shapes.ok());
  ASSERT_EQ(shapes->size(), 1u);
  EXPECT_EQ((*shapes)[0].extents, (std::vector<int64_t>{2, 3}));
}

TEST_F(RunQueueTest, TurnsExceptionsIntoStatuses) {
  const auto no_memory = queue->Add([](Outputs&) -> Status { throw std::bad_alloc(); }, nullptr);
  const auto fault =
      queue->Add([](Outputs&) -> Status { throw std::runtime_error("a fault"); }, nullptr);
  const auto next = queue->Add(Note(3), nullptr);
  EXPECT_EQ(no_memory->Wait().code(), Code::kNoSystemMemory);
  EXPECT_EQ(fault->Wait().code(), Code::kInternalError);
  EXPECT_THAT(fault->Wait().Text(), testing::HasSubstr("a fault"));
  EXPECT_TRUE(next->Wait().ok());
  EXPECT_EQ(order, std::vector<int>{3});
}

TEST_F(RunQueueTest, SkipsTheWorkWhenItsInputFails) {
  const auto producer = std::make_shared<LocalEvent>(LocalEvent::Origin::kRun);
  const auto dependent = queue->Add(Note(1), producer);
  const auto abandoned_input = NewInput();
  const auto abandoned = queue->Add(Note(2), abandoned_input);
  const auto next = queue->Add(Note(3), nullptr);
  producer->Complete(Status(Code::kNoDeviceMemory, "The device has 0 bytes left."));
  abandoned_input->Abandon();
  EXPECT_EQ(dependent->Wait().code(), Code::kNoDeviceMemory);
  EXPECT_EQ(abandoned->Wait().code(), Code::kInvalidEvent);
  EXPECT_TRUE(next->Wait().ok());
  EXPECT_EQ(order, std::vector<int>{3});
}

TEST_F(RunQueueTest, DrainWaitsForAllRuns) {
  queue->Drain();  // of an empty queue returns
  std::atomic<bool> is_done = false;
  const auto input = NewInput();
  queue->Add(Note(1), input);
  queue->Add(
      [&is_done](Outputs&) {
        std::this_thread::sleep_for(milliseconds(20));
        is_done = true;
        return base::Ok();
      },
      nullptr);
  std::thread caller([&input] {
    std::this_thread::sleep_for(milliseconds(10));
    EXPECT_TRUE(input->Signal().ok());
  });
  queue->Drain();
  EXPECT_TRUE(is_done);
  caller.join();
}

TEST_F(RunQueueTest, ReleasesWhatTheWorkHeldBeforeTheNextRun) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  const auto first =
      queue->Add([held](Outputs&) { return *held == 1 ? base::Ok() : Status(); }, nullptr);
  held.reset();
  bool is_released = false;
  const auto second = queue->Add(
      [&](Outputs&) {
        is_released = watched.expired();
        return base::Ok();
      },
      nullptr);
  EXPECT_TRUE(second->Wait().ok());
  EXPECT_TRUE(is_released);
}

}  // namespace
}  // namespace onnxifi::plugin
