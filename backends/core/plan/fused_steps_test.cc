// SPDX-License-Identifier: Apache-2.0
//
// Fused steps: which steps can be fused, that what they share memory with is not overwritten, and
// that a plan binds them together.

#include "backends/core/plan/fused_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/plan/plan.h"
#include "backends/core/program/testing/program_maker.h"

namespace onnxifi::plan {
namespace {

using base::Result;
using base::Status;
using program::BufferId;
using program::Operand;
using program::ProgramMaker;
using tensor::ElementType;

class MapMaker : public ProgramMaker {
 public:
  // The sum of all.
  Operand Sum(const std::vector<Operand>& reads) {
    return Map({4, 4}, reads, [](program::ExprPool& pool, const std::vector<program::Expr>& loads) {
      program::Expr sum = program::Constant(pool, ElementType::kFloat32, 1);
      for (const program::Expr& load : loads) sum = sum + load;
      return sum;
    });
  }
  int CountFusableStepsAt(int step) const {
    return CountFusableSteps(program, program::BufferUses(program), step);
  }
};

TEST(FusedStepsTest, GoesOnWhileWhatIsWrittenIsReadByTheNextStepAlone) {
  MapMaker maker;
  const Operand x = maker.Input({4, 4});
  const Operand a = maker.Sum({x});     // 0
  const Operand b = maker.Sum({a, x});  // 1
  const Operand c = maker.Sum({b});     // 2
  const Operand d = maker.Sum({x, c});  // 3: not its first read
  const Operand e = maker.Sum({d});     // 4: read twice
  const Operand f = maker.Sum({e, e});  // 5: an output
  const Operand g = maker.Sum({f});     // 6: read by two
  const Operand h = maker.Sum({g});     // 7: not by the next one
  const Operand i = maker.Sum({g});     // 8
  const Operand j = maker.Sum({h, i});  // 9
  maker.Output(f);
  maker.Output(j);
  std::vector<int> lengths;
  for (int step = 0; step < 10; ++step) lengths.push_back(maker.CountFusableStepsAt(step));
  EXPECT_THAT(lengths, testing::ElementsAre(3, 2, 1, 2, 1, 1, 1, 1, 1, 1));
}

TEST(FusedStepsTest, IsShownInPartsWhereItIsLong) {
  MapMaker maker;
  Operand x = maker.Input({4, 4});
  for (int step = 0; step < 2 * kMaxFusedSteps; ++step) x = maker.Sum({x});
  maker.Output(x);
  EXPECT_EQ(maker.CountFusableStepsAt(0), kMaxFusedSteps);
  EXPECT_EQ(maker.CountFusableStepsAt(2 * kMaxFusedSteps - 3), 3);
}

const BufferLifetime* Find(const std::vector<BufferLifetime>& lifetimes, const Operand& operand) {
  for (const BufferLifetime& lifetime : lifetimes) {
    if (lifetime.buffer == operand.view.buffer) return &lifetime;
  }
  return nullptr;
}

TEST(FusedStepsTest, KeepsWhatItsFirstStepReadsUntilItsLastIsDone) {
  MapMaker maker;
  const Operand x = maker.Input({4, 4});
  const Operand before = maker.Sum({x});     // 0
  const Operand a = maker.Sum({before});     // 1
  const Operand b = maker.Sum({a});          // 2
  const Operand last = maker.Sum({b});       // 3: in place of `before`, whose memory all share
  const Operand behind = maker.Sum({last});  // 4
  maker.Output(maker.Sum({behind}));         // 5
  std::vector<BufferLifetime> lifetimes = FindLifetimes(maker.program);
  ASSERT_EQ(Find(lifetimes, last)->shares, before.view.buffer);
  JoinLifetimes(maker.program, 1, 4, lifetimes);
  EXPECT_EQ(Find(lifetimes, a), nullptr);
  EXPECT_EQ(Find(lifetimes, b), nullptr);
  EXPECT_GE(Find(lifetimes, before)->last_use, 3);
  EXPECT_EQ(Find(lifetimes, last)->first_write, 1);
  EXPECT_EQ(Find(lifetimes, last)->last_use, 4);
  EXPECT_EQ(Find(lifetimes, last)->shares, program::kNoBuffer);
  const ArenaLayout layout = LayOutArena(lifetimes, std::vector<int64_t>(lifetimes.size(), 64));
  const auto offset = [&](const Operand& operand) {
    return layout.offsets[static_cast<size_t>(Find(lifetimes, operand) - lifetimes.data())];
  };
  EXPECT_NE(offset(before), offset(last));
}

TEST(FusedStepsTest, NothingSharesTheMemoryOfIntermediates) {
  MapMaker maker;
  const Operand x = maker.Input({4, 4});
  const Operand a = maker.Sum({x});       // 0
  const Operand b = maker.Sum({a});       // 1: in place of a
  const Operand behind = maker.Sum({b});  // 2: so is this
  maker.Output(maker.Sum({behind}));      // 3
  std::vector<BufferLifetime> lifetimes = FindLifetimes(maker.program);
  ASSERT_EQ(Find(lifetimes, behind)->shares, a.view.buffer);
  JoinLifetimes(maker.program, 0, 2, lifetimes);
  EXPECT_EQ(Find(lifetimes, b)->shares, program::kNoBuffer);
  EXPECT_EQ(Find(lifetimes, behind)->shares, program::kNoBuffer);
}

// Does three fusable steps at once, and any step alone.
class JoiningDevice final : public device::Device {
 public:
  struct JoinedRecipe final : device::Recipe {
    explicit JoinedRecipe(int of) : steps(of) {}
    std::string_view implementation() const override { return steps > 1 ? "joined" : "single"; }
    bool TakesAnyAddress(int read) const override { return steps > 1 && read == 3; }
    int steps;
  };
  class Bound final : public device::BoundKernel {
   public:
    explicit Bound(int steps) : steps_(steps) {}
    // Of fused steps, what the second of them reads second.
    bool ReadsAtRun(int read) const override { return steps_ == 1 || read == 2; }
    Status Run(device::Addresses /*addresses*/) const override { return base::Ok(); }

   private:
    const int steps_;
  };
  class JoinedKernel final : public device::Kernel {
   public:
    JoinedKernel(JoiningDevice& device, int steps) : device_(device), steps_(steps) {}
    Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                      device::Addresses /*constants*/) override {
      EXPECT_EQ(steps_, 1);
      device_.bound.push_back({step.step->node});
      return std::unique_ptr<device::BoundKernel>(std::make_unique<Bound>(1));
    }
    Result<std::unique_ptr<device::BoundKernel>> BindFused(
        std::span<const device::BoundStep> steps, device::Addresses /*constants*/) override {
      EXPECT_EQ(steps_, static_cast<int>(steps.size()));
      device_.bound.emplace_back();
      for (const device::BoundStep& step : steps) device_.bound.back().push_back(step.step->node);
      return std::unique_ptr<device::BoundKernel>(
          std::make_unique<Bound>(static_cast<int>(steps.size())));
    }

   private:
    JoiningDevice& device_;
    const int steps_;
  };

  device::Memory& memory() override { return memory_; }
  Result<device::Selection> Select(const device::Facts& /*facts*/) const override {
    device::Selection selection;
    selection.recipe = std::make_unique<JoinedRecipe>(1);
    return selection;
  }
  device::FusedSelection SelectFused(device::FusableSteps fusable) const override {
    device::FusedSelection found;
    if (fusable.size() < 3) {
      found.selection.rejected.emplace_back(base::Code::kUnsupportedShape, "Too short.");
      return found;
    }
    found.steps = 3;
    found.selection.recipe = std::make_unique<JoinedRecipe>(3);
    return found;
  }
  Result<std::unique_ptr<device::Kernel>> Build(const device::Recipe& recipe) override {
    const int steps = static_cast<const JoinedRecipe&>(recipe).steps;
    return std::unique_ptr<device::Kernel>(std::make_unique<JoinedKernel>(*this, steps));
  }

  std::vector<std::vector<int>> bound;  // the nodes of each

 private:
  class HostMemory final : public device::Memory {
   public:
    Result<std::unique_ptr<device::Allocation>> Allocate(int64_t /*size_bytes*/) override {
      return Status(base::Code::kNoSystemMemory, "Nobody asks for any.");
    }
  };
  HostMemory memory_;
};

TEST(FusedStepsTest, APlanHasOneKernelForIt) {
  MapMaker maker;
  const Operand x = maker.Input({4, 4});
  const auto constant = [&] {
    return maker.Constant(tensor::Tensor::FromValues<float>(ElementType::kFloat32, {4, 4},
                                                            std::vector<float>(16, 1.F)));
  };
  const Operand kept = constant(), packed = constant();
  const Operand a = maker.Sum({x});          // 0
  const Operand b = maker.Sum({a, kept});    // 1: reads 1 and 2 of the fused steps
  const Operand c = maker.Sum({b, packed});  // 2: reads 3 and 4
  const Operand d = maker.Sum({c});          // 3: what is left
  const Operand e = maker.Sum({d});          // 4
  maker.Output(e);
  JoiningDevice device;
  Counters counters;
  auto plan = Plan::Create(maker.program, device, counters);
  ASSERT_TRUE(plan.ok()) << plan.status().Text();
  EXPECT_EQ(counters.kernel_builds, 3);
  EXPECT_EQ((*plan)->step_count(0), 3);
  EXPECT_EQ((*plan)->step_count(1), 0);
  EXPECT_EQ((*plan)->step_count(3), 1);
  EXPECT_EQ((*plan)->implementation(0), "joined");
  EXPECT_EQ((*plan)->implementation(2), "");
  EXPECT_EQ((*plan)->implementation(3), "single");
  ASSERT_EQ((*plan)->rejected(3).size(), 1u);
  EXPECT_EQ((*plan)->rejected(3)[0].sentence(), "Too short.");

  const Status prepared = (*plan)->Prepare();
  ASSERT_TRUE(prepared.ok()) << prepared.Text();
  EXPECT_THAT(device.bound, testing::ElementsAre(testing::ElementsAre(0, 1, 2),
                                                 testing::ElementsAre(3), testing::ElementsAre(4)));
  EXPECT_NE((*plan)->constants()[kept.view.buffer], nullptr);
  EXPECT_EQ((*plan)->constants()[packed.view.buffer], nullptr) << "the kernel has taken it";
  const auto binding = (*plan)->Bind(0, {});
  ASSERT_TRUE(binding.ok()) << binding.status().Text();
  ASSERT_EQ((*binding)->kernels.size(), 5u);
  EXPECT_NE((*binding)->kernels[0], nullptr);
  EXPECT_EQ((*binding)->kernels[1], nullptr);
  EXPECT_EQ((*binding)->kernels[2], nullptr);
  std::vector<BufferId> placed;
  for (const auto& placement : (*binding)->placements) placed.push_back(placement.buffer);
  EXPECT_THAT(placed, testing::UnorderedElementsAre(c.view.buffer, d.view.buffer));
}

}  // namespace
}  // namespace onnxifi::plan
