// SPDX-License-Identifier: Apache-2.0
//
// Plan: kernels built once, segments between what data tell, symbols from extents, and bindings
// that are computed once and kept. On a device that computes nothing and notes what it is asked.

#include "backends/core/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <string>

#include "backends/core/program/host_function.h"
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
using program::Shape;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using testing::HasSubstr;

class NotingDevice : public device::Device {
 public:
  class HostBlock : public device::Allocation {
   public:
    explicit HostBlock(int64_t size_bytes) : bytes_(static_cast<size_t>(size_bytes)) {}
    std::byte* data() override { return bytes_.data(); }
    int64_t size_bytes() const override { return static_cast<int64_t>(bytes_.size()); }

   private:
    std::vector<std::byte> bytes_;
  };
  class HostMemory : public device::Memory {
   public:
    Result<std::unique_ptr<device::Allocation>> Allocate(int64_t size_bytes) override {
      return std::unique_ptr<device::Allocation>(std::make_unique<HostBlock>(size_bytes));
    }
  };
  class NoteRecipe : public device::Recipe {
   public:
    std::string_view implementation() const override { return "a note"; }
  };
  class NoteKernel : public device::Kernel {
   public:
    explicit NoteKernel(NotingDevice& device) : device_(device) {}
    Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                      device::Addresses constants) override {
      device_.bound_domains.push_back(step.domain);
      device_.constants.assign(constants.begin(), constants.end());
      class Nothing : public device::BoundKernel {
        Status Run(device::Addresses) const override { return base::Ok(); }
      };
      return std::unique_ptr<device::BoundKernel>(std::make_unique<Nothing>());
    }

   private:
    NotingDevice& device_;
  };

  device::Memory& memory() override { return memory_; }
  Result<device::Selection> Select(const device::Facts& facts) const override {
    if (refuses_reductions && facts.step.As<program::Reduce>() != nullptr) {
      return Status(Code::kUnsupportedOperator, "Nothing is ever reduced here.");
    }
    device::Selection selection;
    selection.recipe = std::make_unique<NoteRecipe>();
    return selection;
  }
  Result<std::unique_ptr<device::Kernel>> Build(const device::Recipe&) override {
    if (builds_left == 0) return Status(Code::kNoDeviceResources, "No kernel is left.");
    --builds_left;
    return std::unique_ptr<device::Kernel>(std::make_unique<NoteKernel>(*this));
  }

  bool refuses_reductions = false;
  int builds_left = 1000;
  std::vector<Extents> bound_domains;
  std::vector<std::byte*> constants;

 private:
  HostMemory memory_;
};

Expr Same(ExprPool&, const std::vector<Expr>& loads) { return loads[0]; }
Expr Zero(ExprPool& pool, const std::vector<Expr>&) {
  return IntConstant(pool, ElementType::kInt64, 0);
}

Dim NewSymbol(ProgramMaker& maker, const std::string& name, bool is_data = false) {
  return maker.program.dims->NewSymbol(name, is_data);
}

// Reads the int64 numbers of `operand` as the symbols from `first` on.
void AddCut(ProgramMaker& maker, const Operand& operand, Dim first) {
  program::Cut cut;
  cut.first_symbol = first.node()->symbol;
  cut.count = static_cast<int>(operand.shape[0].constant());
  maker.AddStep({operand.shape, {operand.view}, {}, cut});
}

// x[N, 3] -> a[N, 3] -> b[3, N] -> out[3, N].
void MakeChain(ProgramMaker& maker) {
  const Dim n = NewSymbol(maker, "N");
  const Operand x = maker.Input({n, 3});
  const Operand a = maker.Map({n, 3}, {x}, Same);
  const Operand b = maker.Map({3, n}, {Permute(a, {1, 0})}, Same);
  maker.Output(maker.Map({3, n}, {b}, Same));
}

// x[N] -> a[N] and count[1]; a cut reads count as S; a -> out[S + 2].
struct CutProgram {
  CutProgram() {
    const Dim n = NewSymbol(maker, "N");
    s = NewSymbol(maker, "S", /*is_data=*/true);
    const Operand x = maker.Input({n});
    const Operand a = maker.Map({n}, {x}, Same);
    maker.Output(maker.Map({n * Dim(2)}, {}, Zero));
    const Operand count = maker.Map({1}, {}, Zero);
    AddCut(maker, count, s);
    const Operand part{a.view, {s + Dim(2)}};
    maker.Output(maker.Map({s + Dim(2)}, {part}, Same));
  }
  ProgramMaker maker;
  Dim s;
};

TEST(PlanTest, BuildsAKernelPerStepOnce) {
  CutProgram made;
  NotingDevice device;
  Counters counters;
  const auto plan = Plan::Create(made.maker.program, device, counters);
  ASSERT_TRUE(plan.ok()) << plan.status().Text();
  EXPECT_EQ(made.maker.program.steps.size(), 5u);
  EXPECT_EQ(counters.kernel_builds, 4u) << "all but the cut";
  EXPECT_EQ((*plan)->implementation(0), "a note");
  EXPECT_EQ((*plan)->implementation(3), "") << "the cut runs on no device";
  for (int64_t n = 1; n < 4; ++n) {
    ASSERT_TRUE((*plan)->Bind(0, {n, 0}).ok());
    ASSERT_TRUE((*plan)->Bind(1, {n, 7}).ok());
  }
  EXPECT_EQ(counters.kernel_builds, 4u);
  EXPECT_EQ(counters.bindings, 3u);
}

TEST(PlanTest, PassesOnWhatTheDeviceRefuses) {
  ProgramMaker maker;
  maker.Output(maker.SumRows(maker.Input({2, 3})));
  NotingDevice device;
  Counters counters;
  device.refuses_reductions = true;
  const auto refused = Plan::Create(maker.program, device, counters);
  EXPECT_EQ(refused.status().code(), Code::kUnsupportedOperator);
  EXPECT_EQ(refused.status().sentence(), "Nothing is ever reduced here.");
  device.refuses_reductions = false;
  device.builds_left = 0;
  const auto exhausted = Plan::Create(maker.program, device, counters);
  EXPECT_EQ(exhausted.status().code(), Code::kNoDeviceResources);
  EXPECT_EQ(counters.kernel_builds, 0u);
}

// So that it may run on its caller: three steps that read and write 12 N bytes each.
TEST(PlanTest, CallsABindingTinyByWhatAllOfItsStepsMove) {
  ProgramMaker maker;
  MakeChain(maker);
  NotingDevice device;
  Counters counters;
  const auto plan = *Plan::Create(maker.program, device, counters);
  constexpr int64_t kMaxRows = (int64_t{1} << 20) / 72;
  EXPECT_TRUE((*plan->Bind(0, {0}))->is_tiny);
  EXPECT_TRUE((*plan->Bind(0, {kMaxRows}))->is_tiny);
  EXPECT_FALSE((*plan->Bind(0, {kMaxRows + 1}))->is_tiny);
  EXPECT_FALSE((*plan->Bind(0, {int64_t{1} << 20}))->is_tiny) << "a single step is more already";
}

// Maps of what a classifier computes, not of the input, which is copied, nor what reads text.
TEST(PlanTest, CallsABindingTinyThatOnlyMapsFollow) {
  struct Case {
    bool are_maps;
    bool is_input;
  };
  for (const auto& [are_maps, is_input] : {Case{false, false}, Case{true, true}, {true, false}}) {
    ProgramMaker maker;
    MakeChain(maker);
    const program::View& source =
        is_input ? maker.program.steps[0].reads[0] : maker.program.steps[0].writes[0];
    program::Host host;
    host.function =
        are_maps ? std::make_shared<const program::HostFunction>(program::MakeMaps{.columns = 3})
                 : std::make_shared<const program::HostFunction>(program::CountElements{});
    host.read_shapes = {maker.program.buffers[source.buffer].shape};
    host.first_symbol = {0};
    program::Buffer result;
    result.kind = program::Buffer::Kind::kDynamic;
    result.value = program::ValueType::Sequence(program::ValueType::Map(
        ElementType::kInt64, program::ValueType::Tensor(ElementType::kFloat32, 0)));
    program::Step step;
    step.reads = {source};
    step.writes.emplace_back();
    step.writes[0].buffer = maker.program.AddBuffer(result);
    step.body = std::move(host);
    maker.program.steps.push_back(std::move(step));
    NotingDevice device;
    Counters counters;
    const auto plan = *Plan::Create(maker.program, device, counters);
    EXPECT_EQ((*plan->Bind(0, {5}))->is_tiny, are_maps && !is_input);
    EXPECT_FALSE((*plan->Bind(0, {int64_t{1} << 20}))->is_tiny);
  }
}

// What follows a cut waits for data, however little it is.
TEST(PlanTest, CallsNoPartOfAProgramTiny) {
  CutProgram made;
  NotingDevice device;
  Counters counters;
  const auto plan = *Plan::Create(made.maker.program, device, counters);
  EXPECT_FALSE((*plan->Bind(0, {5, 0}))->is_tiny);
  EXPECT_FALSE((*plan->Bind(1, {5, 3}))->is_tiny);
}

TEST(PlanTest, PutsABoundaryWhereDataTellANumber) {
  CutProgram made;
  NotingDevice device;
  Counters counters;
  const auto plan = *Plan::Create(made.maker.program, device, counters);
  const std::span<const Segment> segments = plan->segments();
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].first_step, 0);
  EXPECT_EQ(segments[0].end_step, 3);
  EXPECT_EQ(segments[1].first_step, 4);
  EXPECT_EQ(segments[1].end_step, 5);
  EXPECT_THAT(segments[0].outputs, testing::ElementsAre(0));
  EXPECT_THAT(segments[1].outputs, testing::ElementsAre(1));
  // 2N is known from the start, S + 2 behind the cut.
  EXPECT_EQ(plan->OutputExtents({5, 0}), (std::vector<Extents>{{10}, {-1}}));

  const auto first = *plan->Bind(0, {5, 0});
  EXPECT_EQ(first->outputs[0].extents, Extents{10});
  EXPECT_EQ(first->boundary.domain, Extents{1});
  const auto second = *plan->Bind(1, {5, 3});
  ASSERT_EQ(second->outputs.size(), 1u);
  EXPECT_EQ(second->outputs[0].index, 1);
  EXPECT_EQ(second->outputs[0].extents, Extents{5});
  EXPECT_EQ(second->steps[0].domain, Extents{5});
}

TEST(PlanTest, BindsViewsAndMemoryToNumbers) {
  ProgramMaker maker;
  MakeChain(maker);
  NotingDevice device;
  Counters counters;
  const auto plan = *Plan::Create(maker.program, device, counters);
  ASSERT_EQ(plan->segments().size(), 1u);
  EXPECT_EQ(plan->segments()[0].temporaries.size(), 2u);
  const auto binding = *plan->Bind(0, {7});
  EXPECT_EQ(device.bound_domains, (std::vector<Extents>{{7, 3}, {3, 7}, {3, 7}}));
  EXPECT_EQ(binding->steps[1].reads[0].strides, (Extents{1, 3})) << "a, transposed";
  EXPECT_EQ(binding->outputs[0].extents, (Extents{3, 7}));
  // a and b are alive together: 84 bytes each, on multiples of 64.
  ASSERT_EQ(binding->placements.size(), 2u);
  const std::set<int64_t> offsets = {binding->placements[0].offset_bytes,
                                     binding->placements[1].offset_bytes};
  EXPECT_EQ(offsets, (std::set<int64_t>{0, 128}));
  EXPECT_EQ(binding->arena_bytes, 256);
}

TEST(PlanTest, GivesEachSegmentMemoryOfItsOwn) {
  CutProgram made;
  NotingDevice device;
  Counters counters;
  const auto plan = *Plan::Create(made.maker.program, device, counters);
  // `a` dies in the last step, which could take over its memory if it were not another segment's
  // and an output.
  const auto first = *plan->Bind(0, {100, 0});
  EXPECT_EQ(first->placements.size(), 2u);
  EXPECT_GE(first->arena_bytes, 400 + 8);
  EXPECT_EQ((*plan->Bind(1, {100, 50}))->arena_bytes, 0);
}

TEST(PlanTest, KeepsBindings) {
  ProgramMaker maker;
  MakeChain(maker);
  NotingDevice device;
  Counters counters;
  const auto plan = *Plan::Create(maker.program, device, counters);
  const auto first = *plan->Bind(0, {1});
  EXPECT_EQ(*plan->Bind(0, {1}), first) << "the same object";
  EXPECT_NE(*plan->Bind(0, {2}), first);
  EXPECT_EQ(counters.bindings, 2u);
  EXPECT_EQ(first->steps[0].domain, (Extents{1, 3})) << "held by whoever uses it";
}

TEST(PlanTest, ForgetsTheBindingsOfAShape) {
  ProgramMaker maker;
  MakeChain(maker);
  NotingDevice device;
  Counters counters;
  const auto plan = *Plan::Create(maker.program, device, counters);
  const std::weak_ptr<const SegmentBinding> first = *plan->Bind(0, {1});
  const auto second = *plan->Bind(0, {2});
  plan->Forget({1});
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(*plan->Bind(0, {2}), second);
  EXPECT_EQ(counters.bindings, 2u);
  EXPECT_TRUE(plan->Bind(0, {1}).ok());
  EXPECT_EQ(counters.bindings, 3u);
  plan->Forget({0});
  EXPECT_NE(*plan->Bind(0, {2}), second) << "0 is any number";
  EXPECT_EQ(second->steps[0].domain, (Extents{2, 3})) << "held by whoever uses it";
}

// How often the second of two equal series of bindings, of the first segment, is computed again.
uint64_t CountRepeatedBindings(const Plan& plan, const Counters& counters, int64_t count) {
  for (int64_t n = 1; n <= count; ++n) EXPECT_TRUE(plan.Bind(0, {n}).ok());
  const uint64_t before = counters.bindings;
  for (int64_t n = 1; n <= count; ++n) {
    const auto binding = plan.Bind(0, {n});
    EXPECT_TRUE(binding.ok());
    EXPECT_EQ((*binding)->steps[0].domain, (Extents{n, 3}));
  }
  return counters.bindings - before;
}

TEST(PlanTest, KeepsMoreBindingsOfFewSteps) {
  ProgramMaker maker;
  MakeChain(maker);  // 3 steps
  NotingDevice device;
  Counters counters;
  const auto plan = *Plan::Create(maker.program, device, counters);
  EXPECT_EQ(CountRepeatedBindings(*plan, counters, 1000), 0u);
}

TEST(PlanTest, SeriesBeyondTheCacheStillFindsBindings) {
  ProgramMaker maker;
  MakeChain(maker);  // 3 steps, which count as 4; of 4096 are 1024 bindings
  NotingDevice device;
  Counters counters;
  const auto plan = *Plan::Create(maker.program, device, counters);
  const uint64_t repeated = CountRepeatedBindings(*plan, counters, 1600);
  EXPECT_GE(repeated, 1600u - 1024u) << "the number kept is bounded";
  EXPECT_LT(repeated, 1300u) << "the oldest binding is not the one that goes";
}

TEST(PlanTest, KeepsAllSegmentsOfAShape) {
  ProgramMaker maker;
  const Dim n = NewSymbol(maker, "N");
  const Dim s = NewSymbol(maker, "S", /*is_data=*/true);
  Operand x = maker.Input({n});
  constexpr int kSegments = 600, kSteps = 8;  // more than 4096 steps
  for (int segment = 0; segment < kSegments; ++segment) {
    for (int step = 0; step < kSteps; ++step) x = maker.Map({n}, {x}, Same);
    AddCut(maker, maker.Map({1}, {}, Zero), s);
  }
  maker.Output(maker.Map({n}, {x}, Same));
  NotingDevice device;
  device.builds_left = kSegments * (kSteps + 1) + 1;
  Counters counters;
  const auto plan = *Plan::Create(maker.program, device, counters);
  const auto bind_all = [&](int64_t extent) {
    for (int segment = 0; segment <= kSegments; ++segment) {
      EXPECT_TRUE(plan->Bind(segment, {extent, 0}).ok());
    }
    return device.bound_domains.size();
  };
  bind_all(3);
  const size_t bound = bind_all(4);
  bind_all(3);
  EXPECT_EQ(bind_all(4), bound);
}

TEST(PlanTest, TakesSymbolsFromTheInputs) {
  ProgramMaker maker;
  const Dim n = NewSymbol(maker, "N");
  const Dim m = NewSymbol(maker, "M");
  const Operand x = maker.Input({n, 3});
  maker.Input({m, n});
  maker.Output(maker.Map({n, 3}, {x}, Same));
  NotingDevice device;
  Counters counters;
  const auto plan = *Plan::Create(maker.program, device, counters);
  const auto symbols_for = [&](const Extents& first, const Extents& second) {
    return plan->SymbolsFor(std::array<Extents, 2>{first, second});
  };
  const auto symbols = symbols_for({4, 3}, {0, 4});
  ASSERT_TRUE(symbols.ok()) << symbols.status().Text();
  EXPECT_EQ(*symbols, (std::vector<int64_t>{4, 0}));

  const auto other_number = symbols_for({4, 3}, {2, 5});
  EXPECT_EQ(other_number.status().code(), Code::kMismatchingShape);
  EXPECT_EQ(other_number.status().sentence(),
            "Axis 1 of input 'in1' is 5 where the graph has 4 (N).");
  EXPECT_EQ(symbols_for({4, 2}, {2, 4}).status().sentence(),
            "Axis 1 of input 'in0' is 2 where the graph has 3.");
  EXPECT_EQ(symbols_for({4, 3, 1}, {2, 4}).status().sentence(),
            "Input 'in0' has 3 axes where the graph has 2.");
}

TEST(PlanTest, ChecksRequirementsWhereTheirNumbersAreKnown) {
  CutProgram made;
  made.maker.program.requirements.push_back(
      {Less(made.s, Dim(9)), Status(Code::kMismatchingShape, "S is too large."), {made.s}});
  NotingDevice device;
  Counters counters;
  const auto plan = *Plan::Create(made.maker.program, device, counters);
  EXPECT_TRUE(plan->Bind(0, {5, 0}).ok());
  EXPECT_TRUE(plan->Bind(1, {5, 8}).ok());
  const auto violated = plan->Bind(1, {5, 9});
  ASSERT_FALSE(violated.ok());
  EXPECT_EQ(violated.status().code(), Code::kMismatchingShape);
  EXPECT_THAT(violated.status().Text(), HasSubstr("S is too large."));
  EXPECT_THAT(violated.status().Text(), HasSubstr("S = 9"));
  EXPECT_EQ(counters.bindings, 1u) << "of the first segment";
}

// Only data tell such extents; kernels would divide by what is left of their product.
TEST(PlanTest, RefusesExtentsWhoseProductOverflows) {
  for (const bool has_temporary : {false, true}) {
    ProgramMaker maker;
    const Dim n = NewSymbol(maker, "N");
    const Shape cube = {n, n, n};
    Operand x = maker.Input({n});
    if (has_temporary) x = maker.Map(cube, {x}, Same);
    maker.Output(maker.Map(cube, {x}, Same));
    NotingDevice device;
    Counters counters;
    const auto plan = *Plan::Create(maker.program, device, counters);
    // 2^60 elements are no more than the largest number; their bytes are.
    for (const int shift : {20, 21, 22, 31}) {
      const auto bound = plan->Bind(0, {int64_t{1} << shift});
      EXPECT_EQ(bound.ok(), shift == 20 && !has_temporary) << shift;
      if (bound.ok()) continue;
      EXPECT_EQ(bound.status().code(), Code::kNoSystemMemory);
      EXPECT_THAT(bound.status().Text(), HasSubstr(has_temporary ? "bytes" : "elements"));
      EXPECT_THAT(bound.status().Text(), HasSubstr("1152921504606846976"));
    }
    ASSERT_TRUE(plan->Bind(0, {5}).ok());
  }
}

TEST(PlanTest, RefusesNegativeExtents) {
  CutProgram made;
  NotingDevice device;
  Counters counters;
  const auto plan = *Plan::Create(made.maker.program, device, counters);
  const auto negative = plan->Bind(1, {5, -3});
  ASSERT_FALSE(negative.ok());
  EXPECT_EQ(negative.status().code(), Code::kMismatchingShape);
  EXPECT_THAT(negative.status().Text(), HasSubstr("comes out as -1"));
}

TEST(PlanTest, HoldsConstantsAndShowsThemToKernels) {
  ProgramMaker maker;
  const std::array<float, 3> values = {1, 2, 3};
  const Operand x = maker.Input({3});
  const Operand constant =
      maker.Constant(Tensor::FromValues<float>(ElementType::kFloat32, {3}, values));
  maker.Output(maker.Map({3}, {x, constant}, [](ExprPool&, const std::vector<Expr>& loads) {
    return loads[0] + loads[1];
  }));
  NotingDevice device;
  Counters counters;
  const auto plan = *Plan::Create(maker.program, device, counters);
  ASSERT_TRUE(plan->Bind(0, {}).ok());
  ASSERT_EQ(device.constants.size(), maker.program.buffers.size());
  EXPECT_EQ(device.constants[static_cast<size_t>(x.view.buffer)], nullptr);
  const std::byte* held = device.constants[static_cast<size_t>(constant.view.buffer)];
  ASSERT_NE(held, nullptr);
  std::array<float, 3> seen{};
  std::memcpy(seen.data(), held, sizeof(seen));
  EXPECT_EQ(seen, values);
}

TEST(PlanTest, PlansTheBodiesOfControlSteps) {
  ProgramMaker maker;
  program::Control control;
  for (const int steps : {1, 2}) {
    ProgramMaker body;
    Operand value = body.Input({3});
    for (int k = 0; k < steps; ++k) value = body.Map({3}, {value}, Same);
    body.Output(value);
    control.bodies.push_back(std::make_unique<program::Program>(std::move(body.program)));
  }
  const Operand condition = maker.Input({}, ElementType::kBool);
  const Operand x = maker.Input({3});
  control.captures = {{1}, {1}};
  control.read_shapes = {{}, {3}};
  const Dim extent = NewSymbol(maker, "E", /*is_data=*/true);
  control.first_symbol = {extent.node()->symbol};
  const Operand out = maker.Temporary({extent});
  maker.program.buffers[static_cast<size_t>(out.view.buffer)].kind =
      program::Buffer::Kind::kDynamic;
  maker.AddStep({{}, {condition.view, x.view}, {out.view}, std::move(control)});
  maker.Output(maker.Map({extent}, {out}, Same));
  NotingDevice device;
  Counters counters;
  const auto plan = *Plan::Create(maker.program, device, counters);
  ASSERT_EQ(plan->bodies(0).size(), 2u);
  EXPECT_EQ(plan->bodies(0)[1]->segments()[0].end_step, 2);
  EXPECT_EQ(counters.kernel_builds, 4u);
  EXPECT_EQ(plan->segments().size(), 2u);
  EXPECT_EQ(plan->OutputExtents({0}), (std::vector<Extents>{{-1}}));
}

}  // namespace
}  // namespace onnxifi::plan
