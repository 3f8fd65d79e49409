// SPDX-License-Identifier: Apache-2.0
//
// Recordings: what runs put into a queue is recorded at the second run and replayed from the third
// on; lengths in turn, memory that grows, many threads, and each call of recording failing once.
// The far device counts memory that goes before a recording that names it.

#include "backends/core/execution/recordings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/core/execution/host_boundary.h"
#include "backends/core/execution/testing/far_device.h"
#include "backends/core/execution/testing/run_program.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/program/verify.h"

namespace onnxifi::execution {
namespace {

using base::Result;
using base::Status;
using program::Control;
using program::Dim;
using program::Expr;
using program::ExprOp;
using program::ExprPool;
using program::Operand;
using program::Program;
using program::ProgramMaker;
using tensor::ElementType;
using tensor::Tensor;

Expr Double(ExprPool&, const std::vector<Expr>& loads) { return loads[0] * Like(loads[0], 2); }
Expr Sum(ExprPool&, const std::vector<Expr>& loads) { return loads[0] + loads[1]; }

Tensor Floats(const std::vector<float>& values) {
  return Tensor::FromValues<float>(ElementType::kFloat32, {static_cast<int64_t>(values.size())},
                                   values);
}
Tensor Integers(const std::vector<int64_t>& values) {
  return Tensor::FromValues<int64_t>(ElementType::kInt64, {static_cast<int64_t>(values.size())},
                                     values);
}

// x[N]: 4 * x[N - 1 - k] + x[k] + 3, by way of two temporaries and a constant.
Program MakeMirror() {
  ProgramMaker maker;
  const Dim n = maker.program.dims->NewSymbol("N", /*is_data=*/false);
  const Operand x = maker.Input({n});
  const Operand three = maker.Constant(Floats({3}));
  const Operand twice = maker.Map({n}, {x}, Double);
  const Operand four_times = maker.Map({n}, {twice}, Double);
  const Operand mirrored = Slice(four_times, 0, n - 1, -1, n);
  const Operand sum = maker.Map({n}, {mirrored, x}, Sum);
  maker.Output(maker.Map({n}, {sum, three}, Sum));
  return std::move(maker.program);
}
constexpr int kMirrorKernels = 4;

std::vector<float> Numbers(int64_t length, int seed) {
  std::vector<float> values;
  for (int64_t k = 0; k < length; ++k) {
    values.push_back(static_cast<float>((k * 37 + seed * 101 + 11) % 1009));
  }
  return values;
}

std::vector<float> Mirrored(const std::vector<float>& x) {
  std::vector<float> values;
  for (size_t k = 0; k < x.size(); ++k) values.push_back(4 * x[x.size() - 1 - k] + x[k] + 3);
  return values;
}

// A program made ready for the far device.
class Ready {
 public:
  Ready(FarDevice& device, Program program) : device_(device), program_(std::move(program)) {
    const Status sound = program::Verify(program_);
    EXPECT_TRUE(sound.ok()) << sound.Text();
    plan_ = *plan::Plan::Create(program_, device, counters_);
    executor_ = std::make_unique<Executor>(*plan_);
    boundary_ = *HostBoundary::Create(*executor_);
  }

  Result<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs,
                                  RunProfile* profile = nullptr) {
    TensorOutputs places(program_);
    ONNXIFI_RETURN_IF_ERROR(boundary_->Run(AsInputs(inputs), places, profile));
    return std::move(places.tensors);
  }

  // Of MakeMirror's program, with other numbers each time.
  testing::AssertionResult Mirrors(int64_t length) {
    const std::vector<float> x = Numbers(length, ++seed_);
    const auto outputs = Run({Floats(x)});
    if (!outputs.ok()) return testing::AssertionFailure() << outputs.status().Text();
    const std::vector<float> expected = Mirrored(x);
    if (std::ranges::equal((*outputs)[0].values<float>(), expected)) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << "wrong numbers at length " << length;
  }

  const plan::Counters& counters() const { return counters_; }
  const plan::Plan& plan() const { return *plan_; }
  HostBoundary& boundary() { return *boundary_; }
  int recordings() const { return boundary_->recordings()->count(); }
  FarDevice& device() { return device_; }

 private:
  FarDevice& device_;
  const Program program_;
  std::atomic<int> seed_ = 0;
  plan::Counters counters_;
  std::unique_ptr<plan::Plan> plan_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<HostBoundary> boundary_;
};

TEST(RecordingsTest, TheSecondRunIsRecordedAndTheThirdReplayed) {
  FarDevice device;
  {
    Ready ready(device, MakeMirror());
    ASSERT_TRUE(ready.Mirrors(9));
    EXPECT_EQ(ready.counters().recordings, 0u);
    EXPECT_EQ(device.enqueued_count(), kMirrorKernels);
    ASSERT_TRUE(ready.Mirrors(9));
    EXPECT_EQ(ready.counters().recordings, 1u);
    EXPECT_EQ(device.enqueued_count(), 2 * kMirrorKernels);
    const uint64_t allocations = ready.counters().allocations;
    for (int run = 0; run < 20; ++run) ASSERT_TRUE(ready.Mirrors(9));
    EXPECT_EQ(ready.counters().recordings, 1u);
    EXPECT_EQ(device.enqueued_count(), 2 * kMirrorKernels) << "replayed, not put in again";
    EXPECT_EQ(ready.counters().allocations, allocations);
    EXPECT_EQ(ready.counters().submissions, 22u) << "one per run";
    EXPECT_EQ(device.recording_count(), 1);
  }
  EXPECT_EQ(device.recording_count(), 0);
  EXPECT_EQ(device.mistake_count(), 0);
}

TEST(RecordingsTest, ProfiledRunsAreNeitherRecordedNorReplayed) {
  FarDevice device;
  Ready ready(device, MakeMirror());
  const auto profiled = [&] {
    RunProfile profile;
    EXPECT_TRUE(ready.Run({Floats(Numbers(9, 1))}, &profile).ok());
    EXPECT_EQ(profile.steps.size(), static_cast<size_t>(kMirrorKernels));
  };
  for (int run = 0; run < 3; ++run) profiled();
  EXPECT_EQ(ready.counters().recordings, 0u);
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(ready.Mirrors(9));
  EXPECT_EQ(ready.counters().recordings, 1u);
  const int64_t enqueued = device.enqueued_count();
  profiled();
  EXPECT_EQ(device.enqueued_count(), enqueued + kMirrorKernels);
}

TEST(RecordingsTest, FiftyLengthsInTurn) {
  FarDevice device;
  {
    Ready ready(device, MakeMirror());
    for (int round = 0; round < 3; ++round) {
      for (int64_t length = 50; length > 0; --length) {
        ASSERT_TRUE(ready.Mirrors(length));
        EXPECT_LE(device.recording_count(), Recordings::kMaxRecordings);
      }
    }
    // Each twice, so that each is recorded.
    for (int64_t length = 50; length > 0; --length) {
      for (int run = 0; run < 3; ++run) ASSERT_TRUE(ready.Mirrors(length));
      EXPECT_LE(device.recording_count(), Recordings::kMaxRecordings);
    }
    EXPECT_EQ(ready.recordings(), Recordings::kMaxRecordings);
    EXPECT_EQ(device.recording_count(), Recordings::kMaxRecordings);
  }
  EXPECT_EQ(device.recording_count(), 0);
  EXPECT_EQ(device.mistake_count(), 0);
}

TEST(RecordingsTest, TheLeastRecentlyUsedGoesFirst) {
  FarDevice device;
  Ready ready(device, MakeMirror());
  ASSERT_TRUE(ready.Mirrors(100));  // all others fit into its memory
  for (int64_t length = 1; length <= Recordings::kMaxRecordings; ++length) {
    for (int run = 0; run < 2; ++run) ASSERT_TRUE(ready.Mirrors(length));
  }
  EXPECT_EQ(ready.counters().recordings, 8u);
  ASSERT_TRUE(ready.Mirrors(1));
  for (int run = 0; run < 2; ++run) ASSERT_TRUE(ready.Mirrors(50));
  EXPECT_EQ(ready.counters().recordings, 9u);
  const int64_t enqueued = device.enqueued_count();
  for (const int64_t kept : {1, 3, 4, 5, 6, 7, 8, 50}) ASSERT_TRUE(ready.Mirrors(kept));
  EXPECT_EQ(device.enqueued_count(), enqueued);
  ASSERT_TRUE(ready.Mirrors(2));
  EXPECT_EQ(device.enqueued_count(), enqueued + kMirrorKernels) << "that of 2 went";
}

TEST(RecordingsTest, ARecordingGoesBeforeTheMemoryThatGrows) {
  FarDevice device;
  {
    Ready ready(device, MakeMirror());
    for (int64_t length = 1; length < 3000; length = length * 3 / 2 + 1) {
      for (int run = 0; run < 4; ++run) ASSERT_TRUE(ready.Mirrors(length));
      EXPECT_LE(ready.recordings(), 2);
      ASSERT_TRUE(ready.Mirrors(1));
    }
    EXPECT_EQ(device.recording_count(), ready.recordings());
  }
  EXPECT_EQ(device.recording_count(), 0);
  EXPECT_EQ(device.mistake_count(), 0);
}

TEST(RecordingsTest, EightThreadsRunOneGraph) {
  FarDevice device;
  {
    Ready ready(device, MakeMirror());
    std::atomic<int> right = 0;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 8; ++thread) {
      threads.emplace_back([&, thread] {
        for (int run = 0; run < 60; ++run) {
          // Runs of one length mostly; others grow and shrink.
          const int64_t length = run % 4 == 3 ? 1 + (thread * 13 + run * 7) % 40 : 12;
          right += ready.Mirrors(length) ? 1 : 0;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 480);
    EXPECT_GT(ready.counters().recordings, 0u);
    EXPECT_LE(ready.recordings(), Recordings::kMaxRecordings);
    EXPECT_EQ(device.recording_count(), ready.recordings());
  }
  EXPECT_EQ(device.recording_count(), 0);
  EXPECT_EQ(device.mistake_count(), 0);
}

TEST(RecordingsTest, AFaultInAnyCallOfRecordingIsNoFailedRun) {
  bool has_failed = true;
  int calls = 0;
  for (; has_failed; ++calls) {
    FarDevice device;
    {
      Ready ready(device, MakeMirror());
      device.FailCall(calls);
      for (int run = 0; run < 5; ++run) {
        ASSERT_TRUE(ready.Mirrors(9)) << "call " << calls << ", run " << run;
      }
      has_failed = device.has_failed();
      // The fault is over, and the recording it hit is made anew.
      for (int run = 0; run < 3; ++run) ASSERT_TRUE(ready.Mirrors(9)) << "call " << calls;
      EXPECT_EQ(device.recording_count(), 1) << "call " << calls;
      EXPECT_EQ(ready.recordings(), 1) << "call " << calls;
    }
    EXPECT_EQ(device.recording_count(), 0) << "call " << calls;
    EXPECT_EQ(device.mistake_count(), 0) << "call " << calls;
  }
  // Begin, a call per kernel, end, and four replays; then one without a fault.
  EXPECT_EQ(calls, 1 + kMirrorKernels + 1 + 4 + 1);
}

TEST(RecordingsTest, SegmentsBehindACutAreRecordedToo) {
  // counts[1] int64, x[N]: the rows that a device computed, each x.
  ProgramMaker maker;
  const Dim n = maker.program.dims->NewSymbol("N", /*is_data=*/false);
  const Dim rows = maker.program.dims->NewSymbol("rows", /*is_data=*/true);
  const Operand counts = maker.Input({1}, ElementType::kInt64);
  const Operand x = maker.Input({n});
  program::Cut cut;
  cut.first_symbol = rows.node()->symbol;
  cut.count = 1;
  const Operand computed = maker.Map({1}, {counts}, Double);
  maker.AddStep({{1}, {computed.view}, {}, cut});
  maker.Output(maker.Map({rows, n}, {x}, Double));
  FarDevice device;
  Ready ready(device, std::move(maker.program));
  for (const int64_t half : {3, 3, 3, 2, 2, 2, 3, 3}) {
    const auto outputs = ready.Run({Integers({half}), Floats({1, 2})});
    ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
    EXPECT_EQ((*outputs)[0].extents(), (tensor::Extents{2 * half, 2}));
    for (int64_t k = 0; k < 4 * half; ++k) {
      EXPECT_EQ((*outputs)[0].values<float>()[static_cast<size_t>(k)], k % 2 == 0 ? 2 : 4);
    }
  }
  EXPECT_EQ(ready.counters().recordings, 3u);
  EXPECT_EQ(device.mistake_count(), 0);
}

// Four lengths in turn, as of callers with four buffers: each segment keeps its recordings,
// however many segments there are.
TEST(RecordingsTest, SegmentsDoNotTakeRecordingsFromEachOther) {
  ProgramMaker maker;
  const Dim n = maker.program.dims->NewSymbol("N", /*is_data=*/false);
  Operand count = maker.Input({1}, ElementType::kInt64);
  const Operand x = maker.Input({n});
  constexpr int kCuts = 3;
  for (int k = 0; k < kCuts; ++k) {
    const Dim rows = maker.program.dims->NewSymbol("rows" + std::to_string(k), /*is_data=*/true);
    count = maker.Map({1}, {count}, Double);
    program::Cut cut;
    cut.first_symbol = rows.node()->symbol;
    cut.count = 1;
    maker.AddStep({{1}, {count.view}, {}, cut});
    maker.Output(maker.Map({rows, n}, {x}, Double));
  }
  FarDevice device;
  {
    Ready ready(device, std::move(maker.program));
    const auto run = [&](int64_t length) {
      const auto outputs = ready.Run({Integers({1}), Floats(Numbers(length, 5))});
      ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
      EXPECT_EQ((*outputs)[kCuts - 1].extents(), (tensor::Extents{1 << kCuts, length}));
    };
    run(100);  // all others fit into its memory
    for (int round = 0; round < 2; ++round) {
      for (int64_t length = 5; length < 9; ++length) run(length);
    }
    const uint64_t recorded = ready.counters().recordings;
    EXPECT_EQ(ready.recordings(), static_cast<int>(recorded));
    EXPECT_GT(recorded, static_cast<uint64_t>(Recordings::kMaxRecordings));
    const int64_t enqueued = device.enqueued_count();
    for (int round = 0; round < 3; ++round) {
      for (int64_t length = 5; length < 9; ++length) run(length);
    }
    EXPECT_EQ(ready.counters().recordings, recorded);
    EXPECT_EQ(device.enqueued_count(), enqueued);
  }
  EXPECT_EQ(device.mistake_count(), 0);
}

TEST(RecordingsTest, WhatReadsTheResultOfAControlStepIsNotRecorded) {
  ProgramMaker maker;
  const Dim n = maker.program.dims->NewSymbol("N", /*is_data=*/false);
  const Operand condition = maker.Input({}, ElementType::kBool);
  const Operand x = maker.Input({n});
  Control control;
  for (int body = 0; body < 2; ++body) {
    ProgramMaker inner;
    const Dim m = inner.program.dims->NewSymbol("m", /*is_data=*/false);
    const Operand captured = inner.Input({m});
    inner.Output(inner.Map({m}, {captured}, Double));
    control.bodies.push_back(std::make_unique<Program>(std::move(inner.program)));
    control.captures.push_back({1});
  }
  program::Step step;
  for (const Operand& read : {condition, x}) {
    step.reads.push_back(read.view);
    control.read_shapes.push_back(read.shape);
  }
  control.first_symbol.push_back(maker.program.dims->symbol_count());
  const Operand chosen = maker.Temporary({maker.program.dims->NewSymbol("e", /*is_data=*/true)});
  maker.program.buffers[static_cast<size_t>(chosen.view.buffer)].kind =
      program::Buffer::Kind::kDynamic;
  step.writes.push_back(chosen.view);
  step.body = std::move(control);
  maker.AddStep(std::move(step));
  maker.Output(maker.Map(chosen.shape, {chosen}, Double));
  FarDevice device;
  Ready ready(device, std::move(maker.program));
  const uint8_t yes = 1;
  const Tensor is_true = Tensor::FromValues<uint8_t>(ElementType::kBool, {}, {&yes, 1});
  for (int run = 0; run < 5; ++run) {
    const auto outputs = ready.Run({is_true, Floats({1, 2})});
    ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
    EXPECT_EQ((*outputs)[0].values<float>()[1], 8);
  }
  EXPECT_EQ(ready.counters().recordings, 0u);
  EXPECT_EQ(device.mistake_count(), 0);
}

// Runs in memory of the device that is the caller's.
class RunInside {
 public:
  explicit RunInside(Ready& ready, int64_t length)
      : ready_(ready),
        x_(*ready.device().memory().Allocate(4 * length)),
        y_(*ready.device().memory().Allocate(4 * length)),
        length_(length) {}

  Status Run() {
    class Places : public OutputAllocator {
     public:
      explicit Places(std::byte* place) : place_(place) {}
      Result<std::byte*> Allocate(int, const tensor::Extents&) override { return place_; }
      bool IsInside(int) const override { return true; }

     private:
      std::byte* const place_;
    };
    Places places(y_->data());
    const InputTensor input{x_->data(), {length_}, nullptr, nullptr, /*is_inside=*/true};
    return ready_.boundary().Run({&input, 1}, places);
  }
  void Forget() {
    for (const auto& memory : {x_.get(), y_.get()}) {
      ready_.boundary().recordings()->Forget(memory->data(), memory->size_bytes());
    }
  }

 private:
  Ready& ready_;
  const std::unique_ptr<device::Allocation> x_;
  const std::unique_ptr<device::Allocation> y_;
  const int64_t length_;
};

TEST(RecordingsTest, ARecordingGoesBeforeTheCallersMemory) {
  FarDevice device;
  Ready ready(device, MakeMirror());
  for (int caller = 0; caller < 3; ++caller) {
    RunInside inside(ready, 16);
    for (int run = 0; run < 4; ++run) ASSERT_TRUE(inside.Run().ok());
    EXPECT_EQ(ready.recordings(), 1);
    inside.Forget();
    EXPECT_EQ(device.recording_count(), 0);
  }
  EXPECT_EQ(ready.counters().recordings, 3u);
  EXPECT_EQ(ready.counters().copies, 0u);
  EXPECT_EQ(device.mistake_count(), 0);
  {
    RunInside inside(ready, 16);
    for (int run = 0; run < 2; ++run) ASSERT_TRUE(inside.Run().ok());
  }
  EXPECT_GT(device.mistake_count(), 0) << "the far device sees memory that goes too early";
}

TEST(RecordingsTest, ARecordingGoesBeforeTheArenaAlone) {
  FarDevice device;
  Ready ready(device, MakeMirror());
  RunInside small(ready, 16);
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(small.Run().ok());
  EXPECT_EQ(ready.recordings(), 1);
  RunInside large(ready, 1000);
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(large.Run().ok());
  EXPECT_EQ(ready.recordings(), 1) << "that of the arena before is gone";
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(small.Run().ok());
  EXPECT_EQ(ready.recordings(), 2);
  EXPECT_EQ(device.mistake_count(), 0);
  small.Forget();
  large.Forget();
}

}  // namespace
}  // namespace onnxifi::execution
