// SPDX-License-Identifier: Apache-2.0
//
// Plan::Prepare: which constants stay and which are given back, and that kernels are bound by all
// threads, once each. On a device whose kernels say themselves what they read when they run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backends/core/plan/plan.h"
#include "backends/core/program/testing/program_maker.h"

namespace onnxifi::plan {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::Dim;
using program::Expr;
using program::ExprPool;
using program::Operand;
using program::ProgramMaker;
using tensor::ElementType;
using tensor::Tensor;

// Three threads that share a loop's indices without looking at them.
class Threads final : public device::Parallel {
 public:
  void For(int64_t count, int64_t, const std::function<void(int64_t, int64_t)>& body) override {
    std::vector<std::thread> threads;
    for (int64_t k = 0; k < 3; ++k) {
      threads.emplace_back([&, k] { body(count * k / 3, count * (k + 1) / 3); });
    }
    for (std::thread& thread : threads) thread.join();
  }
};

// A kernel of it reads the constants at run time that the node of its step is told to.
class PackingDevice final : public device::Device {
 public:
  device::Memory& memory() override { return memory_; }
  Result<device::Selection> Select(const device::Facts& facts) const override {
    device::Selection selection;
    selection.recipe = std::make_unique<StepRecipe>(facts.step.node, takes_any_address);
    return selection;
  }
  Result<std::unique_ptr<device::Kernel>> Build(const device::Recipe& recipe) override {
    const int node = static_cast<const StepRecipe&>(recipe).node;
    return std::unique_ptr<device::Kernel>(std::make_unique<PackingKernel>(*this, node));
  }
  device::Parallel* parallel() override { return has_threads ? &threads_ : nullptr; }

  // Of the nodes: whose operands may lie anywhere.
  std::set<int> takes_any_address;
  // Addresses of constants that were told to rest.
  std::vector<const std::byte*> resting() const { return memory_.resting; }
  // reads_at_run[node][read]; missing: everything.
  std::vector<std::vector<bool>> reads_at_run;
  bool has_threads = false;
  int failing_node = -1;
  int throwing_node = -1;
  std::array<std::atomic<int>, 100> binds{};  // by node
  std::atomic<bool> has_missed_a_constant = false;

 private:
  struct StepRecipe final : device::Recipe {
    StepRecipe(int of, const std::set<int>& anywhere)
        : node(of), is_anywhere(anywhere.contains(of)) {}
    std::string_view implementation() const override { return "packing"; }
    bool TakesAnyAddress(int) const override { return is_anywhere; }
    int node;
    bool is_anywhere;
  };
  class BoundPacking final : public device::BoundKernel {
   public:
    explicit BoundPacking(std::vector<bool> reads) : reads_(std::move(reads)) {}
    Status Run(device::Addresses) const override { return base::Ok(); }
    bool ReadsAtRun(int read) const override {
      return static_cast<size_t>(read) >= reads_.size() || reads_[static_cast<size_t>(read)];
    }

   private:
    const std::vector<bool> reads_;
  };
  class PackingKernel final : public device::Kernel {
   public:
    PackingKernel(PackingDevice& device, int node) : device_(device), node_(node) {}
    Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                      device::Addresses constants) override {
      const auto node = static_cast<size_t>(node_);
      ++device_.binds[node];
      if (node_ == device_.failing_node) return Status(Code::kNoDeviceMemory, "It is full.");
      if (node_ == device_.throwing_node) throw std::runtime_error("a kernel's own");
      for (const program::View& read : step.step->reads) {
        const bool is_constant = step.program->buffers[static_cast<size_t>(read.buffer)].kind ==
                                 program::Buffer::Kind::kConstant;
        if (is_constant && constants[static_cast<size_t>(read.buffer)] == nullptr) {
          device_.has_missed_a_constant = true;
        }
      }
      std::vector<bool> reads;
      if (node < device_.reads_at_run.size()) reads = device_.reads_at_run[node];
      return std::unique_ptr<device::BoundKernel>(std::make_unique<BoundPacking>(reads));
    }

   private:
    PackingDevice& device_;
    const int node_;
  };
  // Only holds constants.
  class NoMemory final : public device::Memory {
   public:
    Result<std::unique_ptr<device::Allocation>> Allocate(int64_t) override {
      return Status(Code::kNoDeviceMemory, "Nobody asks for any.");
    }
    Result<std::unique_ptr<device::Allocation>> Hold(const Tensor& constant) override {
      return std::unique_ptr<device::Allocation>(std::make_unique<Held>(constant, resting));
    }
    std::vector<const std::byte*> resting;

   private:
    class Held final : public device::Allocation {
     public:
      Held(Tensor tensor, std::vector<const std::byte*>& resting)
          : tensor_(std::move(tensor)), resting_(resting) {}
      std::byte* data() override { return tensor_.mutable_data(); }
      int64_t size_bytes() const override { return tensor_.size_bytes(); }
      void Rest() override { resting_.push_back(tensor_.data()); }

     private:
      Tensor tensor_;
      std::vector<const std::byte*>& resting_;
    };
  };

  NoMemory memory_;
  Threads threads_;
};

// A constant and whether anybody still holds its data.
struct Watched {
  Watched() : data(std::make_shared<std::array<float, 3>>()), life(data) {}
  Tensor Take() {
    const auto* bytes = reinterpret_cast<const std::byte*>(data->data());
    return Tensor::Borrow(ElementType::kFloat32, {3}, bytes, std::move(data));
  }
  bool IsAlive() const { return !life.expired(); }
  std::shared_ptr<std::array<float, 3>> data;
  std::weak_ptr<std::array<float, 3>> life;
};

Expr Sum(ExprPool&, const std::vector<Expr>& loads) {
  Expr sum = loads[0];
  for (size_t k = 1; k < loads.size(); ++k) sum = sum + loads[k];
  return sum;
}

std::unique_ptr<Plan> MakePlan(ProgramMaker& maker, PackingDevice& device, Counters& counters) {
  auto plan = Plan::Create(maker.program, device, counters);
  EXPECT_TRUE(plan.ok()) << plan.status().Text();
  for (Tensor& constant : maker.program.constants) constant = {};
  return *std::move(plan);
}

TEST(PrepareTest, GivesBackWhatNoKernelReads) {
  ProgramMaker maker;
  const Operand x = maker.Input({3});
  Watched packed, read_once, read_by_one;
  const Operand a = maker.Constant(packed.Take());
  const Operand b = maker.Constant(read_once.Take());
  const Operand c = maker.Constant(read_by_one.Take());
  const Operand first = maker.Map({3}, {x, a, b}, Sum);
  maker.Output(maker.Map({3}, {first, a, c, c}, Sum));
  PackingDevice device;
  device.reads_at_run = {{true, false, true}, {true, false, false, true}};
  Counters counters;
  const auto plan = MakePlan(maker, device, counters);
  EXPECT_TRUE(packed.IsAlive() && read_once.IsAlive() && read_by_one.IsAlive());
  ASSERT_TRUE(plan->Prepare().ok());
  EXPECT_FALSE(packed.IsAlive()) << "both kernels have taken what they need";
  EXPECT_TRUE(read_once.IsAlive());
  EXPECT_TRUE(read_by_one.IsAlive()) << "one read of two is enough";
  EXPECT_EQ(plan->constants()[static_cast<size_t>(a.view.buffer)], nullptr);
  EXPECT_NE(plan->constants()[static_cast<size_t>(b.view.buffer)], nullptr);
  EXPECT_FALSE(device.has_missed_a_constant);

  // Bound once, and found again however often it is asked for.
  const auto binding = plan->Bind(0, {});
  ASSERT_TRUE(binding.ok());
  EXPECT_EQ(*plan->Bind(0, {}), *binding);
  EXPECT_EQ(device.binds[0], 1);
  EXPECT_EQ(counters.bindings, 1u);
}

TEST(PrepareTest, KeepsAConstantUntilItsLastStepIsBound) {
  ProgramMaker maker;
  const Operand x = maker.Input({3});
  Watched shared;
  const Operand a = maker.Constant(shared.Take());
  const Operand first = maker.Map({3}, {x, a}, Sum);
  maker.Output(maker.Map({3}, {first, a}, Sum));
  PackingDevice device;
  device.reads_at_run = {{true, false}};  // the second reads it at run time
  Counters counters;
  const auto plan = MakePlan(maker, device, counters);
  ASSERT_TRUE(plan->Prepare().ok());
  EXPECT_TRUE(shared.IsAlive());
}

TEST(PrepareTest, KeepsConstantsThatAreOutputsOrReadByControlSteps) {
  ProgramMaker maker;
  const Operand x = maker.Input({3});
  Watched output, captured;
  const Operand a = maker.Constant(output.Take());
  const Operand b = maker.Constant(captured.Take());
  maker.Output(maker.Map({3}, {x, a, b}, Sum));
  maker.Output(a);
  program::Control control;  // without results
  ProgramMaker body;
  control.bodies.push_back(std::make_unique<program::Program>(std::move(body.program)));
  control.captures = {{}};
  control.read_shapes = {{3}};
  maker.AddStep({{}, {b.view}, {}, std::move(control)});
  PackingDevice device;
  device.reads_at_run = {{true, false, false}};
  Counters counters;
  const auto plan = MakePlan(maker, device, counters);
  ASSERT_TRUE(plan->Prepare().ok());
  EXPECT_TRUE(output.IsAlive());
  EXPECT_TRUE(captured.IsAlive());
}

TEST(PrepareTest, KeepsEverythingWhereExtentsAreBoundLater) {
  ProgramMaker maker;
  const Dim n = maker.program.dims->NewSymbol("N", /*is_data=*/false);
  const Operand x = maker.Input({n, 3});
  Watched weights;
  const Operand a = maker.Constant(weights.Take());
  maker.Output(maker.Map({n, 3}, {x, a}, Sum));
  PackingDevice device;
  device.reads_at_run = {{true, false}};
  Counters counters;
  const auto plan = MakePlan(maker, device, counters);
  ASSERT_TRUE(plan->Prepare().ok());
  EXPECT_EQ(device.binds[0], 0);
  for (const int64_t rows : {2, 5}) ASSERT_TRUE(plan->Bind(0, {rows}).ok());
  EXPECT_EQ(device.binds[0], 2);
  EXPECT_TRUE(weights.IsAlive());
  EXPECT_FALSE(device.has_missed_a_constant);
}

TEST(PrepareTest, LetsRestWhatTheFirstBindingDoesNotReadWhereExtentsAreBoundLater) {
  ProgramMaker maker;
  const Dim n = maker.program.dims->NewSymbol("N", /*is_data=*/false);
  const Operand x = maker.Input({n, 3});
  Watched packed, read_once;
  const Operand a = maker.Constant(packed.Take());
  const Operand b = maker.Constant(read_once.Take());
  const Operand first = maker.Map({n, 3}, {x, a, b}, Sum);
  maker.Output(maker.Map({n, 3}, {first, b}, Sum));
  PackingDevice device;
  device.reads_at_run = {{true, false, true}, {true, true}};
  Counters counters;
  const auto plan = MakePlan(maker, device, counters);
  ASSERT_TRUE(plan->Prepare().ok());
  EXPECT_TRUE(device.resting().empty());
  for (const int64_t rows : {2, 5, 2}) ASSERT_TRUE(plan->Bind(0, {rows}).ok());
  EXPECT_EQ(device.resting(),
            std::vector<const std::byte*>{plan->constants()[static_cast<size_t>(a.view.buffer)]});
}

// Three floats, some bytes from where floats may lie.
class OddFloats {
 public:
  explicit OddFloats(size_t shift) : shift_(shift) {
    std::memcpy(data(), kNumbers, sizeof(kNumbers));
  }
  Tensor Take() { return Tensor::Borrow(ElementType::kFloat32, {3}, data(), nullptr); }
  std::byte* data() { return bytes_ + shift_; }

  static constexpr float kNumbers[] = {1.5F, -2, 3};

 private:
  alignas(16) std::byte bytes_[16] = {};
  const size_t shift_;
};

TEST(PrepareTest, CopiesWhatLiesAtOddAddressesUnlessAllWhoReadItTakeIt) {
  for (size_t shift = 0; shift < 4; ++shift) {
    ProgramMaker maker;
    const Operand x = maker.Input({3});
    OddFloats by_first(shift), by_both(shift);
    const Operand a = maker.Constant(by_first.Take());
    const Operand b = maker.Constant(by_both.Take());
    const Operand first = maker.Map({3}, {x, a, b}, Sum);
    maker.Output(maker.Map({3}, {first, b}, Sum));
    PackingDevice device;
    device.takes_any_address = {0};
    Counters counters;
    const auto plan = MakePlan(maker, device, counters);
    const std::byte* const of_a = plan->constants()[static_cast<size_t>(a.view.buffer)];
    const std::byte* const of_b = plan->constants()[static_cast<size_t>(b.view.buffer)];
    EXPECT_EQ(of_a, by_first.data());
    EXPECT_EQ(of_b == by_both.data(), shift == 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(of_b) % alignof(float), 0);
    std::array<float, 3> copied{};
    std::memcpy(copied.data(), of_b, sizeof(copied));
    EXPECT_THAT(copied, testing::ElementsAreArray(OddFloats::kNumbers));
  }
}

TEST(PrepareTest, LeavesRequirementsToWhoBinds) {
  ProgramMaker maker;
  const Operand x = maker.Input({3});
  Watched weights;
  const Operand a = maker.Constant(weights.Take());
  maker.Output(maker.Map({3}, {x, a}, Sum));
  maker.program.requirements.push_back(
      {Dim(0), Status(Code::kMismatchingShape, "It never holds."), {}});
  PackingDevice device;
  device.reads_at_run = {{true, false}};
  Counters counters;
  const auto plan = MakePlan(maker, device, counters);
  EXPECT_TRUE(plan->Prepare().ok());
  EXPECT_TRUE(weights.IsAlive());
  EXPECT_EQ(plan->Bind(0, {}).status().code(), Code::kMismatchingShape);
  EXPECT_EQ(counters.bindings, 0u);
}

// A chain of `steps` Maps, each with a constant of its own.
void MakeLongChain(ProgramMaker& maker, std::vector<Watched>& constants) {
  Operand value = maker.Input({3});
  for (Watched& constant : constants) {
    value = maker.Map({3}, {value, maker.Constant(constant.Take())}, Sum);
  }
  maker.Output(value);
}

TEST(PrepareTest, BindsEachKernelOnceOnAllThreads) {
  ProgramMaker maker;
  std::vector<Watched> constants(60);
  MakeLongChain(maker, constants);
  PackingDevice device;
  device.has_threads = true;
  device.reads_at_run.assign(60, {true, false});
  device.reads_at_run[41] = {true, true};
  Counters counters;
  const auto plan = MakePlan(maker, device, counters);
  ASSERT_TRUE(plan->Prepare().ok());
  const auto binding = *plan->Bind(0, {});
  ASSERT_EQ(binding->kernels.size(), 60u);
  for (size_t k = 0; k < 60; ++k) {
    EXPECT_EQ(device.binds[k], 1) << k;
    ASSERT_NE(binding->kernels[k], nullptr) << k;
    EXPECT_EQ(constants[k].IsAlive(), k == 41) << k;
    EXPECT_EQ(binding->kernels[k]->ReadsAtRun(1), k == 41) << "in the order of the steps";
  }
  EXPECT_FALSE(device.has_missed_a_constant);
}

TEST(PrepareTest, TellsWhatFailsOnAnotherThread) {
  for (const bool throws : {false, true}) {
    ProgramMaker maker;
    std::vector<Watched> constants(40);
    MakeLongChain(maker, constants);
    PackingDevice device;
    device.has_threads = true;
    device.reads_at_run.assign(40, {true, false});
    (throws ? device.throwing_node : device.failing_node) = 37;
    Counters counters;
    const auto plan = MakePlan(maker, device, counters);
    if (throws) {
      EXPECT_THROW(static_cast<void>(plan->Prepare().ok()), std::runtime_error);
    } else {
      const Status status = plan->Prepare();
      EXPECT_EQ(status.code(), Code::kNoDeviceMemory);
      EXPECT_EQ(status.sentence(), "It is full.");
    }
  }
}

}  // namespace
}  // namespace onnxifi::plan
