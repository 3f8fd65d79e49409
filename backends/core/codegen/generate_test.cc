// SPDX-License-Identifier: Apache-2.0
//
// Generate and LoopNest: what a kernel's source depends on and what it does not. That kernels
// compute the right thing is tested by the devices that run them.

#include "backends/core/codegen/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "backends/core/program/testing/program_maker.h"

namespace onnxifi::codegen {
namespace {

using program::Expr;
using program::ExprPool;
using program::Operand;
using program::ProgramMaker;
using program::Shape;
using tensor::ElementType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr Capabilities kAll{.has_float64 = true};

Expr Sum(ExprPool& /*pool*/, const std::vector<Expr>& loads) { return loads[0] + loads[1]; }

struct Made {
  LoopNest loops;
  KernelText text;
  std::vector<int64_t> numbers;
};

// The first step of `program`, whose extents are numbers.
Made Make(const program::Program& program, std::span<const int64_t> dims = {}) {
  const program::Step& step = program.steps[0];
  EXPECT_TRUE(Check(program, step, kAll).ok());
  const device::BoundStep bound = device::Bind(program, step, dims);
  Made made;
  made.loops = MakeLoopNest(FindLoopFacts(program, step), bound);
  made.text = Generate(program, step, /*kernel=*/0, made.loops.form, kAll, OpenClDialect());
  made.numbers = ValuesOf(made.text.numbers, made.loops);
  return made;
}

Made MakeSum(const Shape& shape, const Shape& other) {
  ProgramMaker maker;
  const Operand a = maker.Input(shape);
  const Operand b = maker.Input(other);
  maker.Map(shape, {a, b}, Sum);
  return Make(maker.program);
}

TEST(GenerateTest, ExtentsAreNoText) {
  const Made small = MakeSum({3, 5, 7}, {5, 1});
  const Made large = MakeSum({31, 53, 71}, {53, 1});
  EXPECT_EQ(small.text.source, large.text.source);
  EXPECT_NE(small.numbers, large.numbers);
  EXPECT_EQ(ItemCount(small.text.launch, small.loops), 3 * 5 * 7);
  EXPECT_EQ(ItemCount(large.text.launch, large.loops), 31 * 53 * 71);
}

TEST(GenerateTest, AxesThatAllViewsStepThroughEvenlyAreOne) {
  EXPECT_THAT(MakeSum({3, 5, 7}, {3, 5, 7}).loops.extents, ElementsAre(105));
  EXPECT_THAT(MakeSum({3, 5, 7}, {1}).loops.extents, ElementsAre(105));
  EXPECT_THAT(MakeSum({3, 5, 7}, {7}).loops.extents, ElementsAre(15, 7));
  EXPECT_THAT(MakeSum({3, 5, 7}, {3, 1, 1}).loops.extents, ElementsAre(3, 35));
  EXPECT_THAT(MakeSum({3, 1, 7}, {3, 1, 1}).loops.extents, ElementsAre(3, 7));
  EXPECT_THAT(MakeSum({1, 1}, {1}).loops.extents, IsEmpty());
  EXPECT_THAT(MakeSum({3, 0, 7}, {1}).loops.extents, ElementsAre(0));
}

TEST(GenerateTest, ANamedAxisStaysByItself) {
  ProgramMaker maker;
  const Operand a = maker.Input({3, 5, 7});
  maker.Map({3, 5, 7}, {a}, [](ExprPool& pool, const std::vector<Expr>& loads) {
    return loads[0] + Cast(Coordinate(pool, 1), ElementType::kFloat32);
  });
  const Made made = Make(maker.program);
  EXPECT_THAT(made.loops.extents, ElementsAre(3, 5, 7));
  EXPECT_THAT(made.loops.form.axis_of, ElementsAre(-1, 1, -1));
}

TEST(GenerateTest, ReducedAxesAreJoinedAmongThemselves) {
  ProgramMaker maker;
  maker.SumRows(maker.Input({4, 6, 10}));
  const Made few = Make(maker.program);
  EXPECT_THAT(few.loops.extents, ElementsAre(24, 10));
  EXPECT_EQ(few.loops.form.outer_rank, 1);
  EXPECT_FALSE(few.text.launch.has_group_per_item);
  EXPECT_EQ(ItemCount(few.text.launch, few.loops), 24);
  ProgramMaker longer;
  longer.SumRows(longer.Input({4, 6, 100}));
  const Made many = Make(longer.program);
  EXPECT_TRUE(many.text.launch.has_group_per_item);
  EXPECT_THAT(many.text.source, HasSubstr("barrier"));
}

TEST(GenerateTest, LargeBuffersAreAddressedWithLargeNumbers) {
  EXPECT_THAT(MakeSum({1 << 20, 3}, {3}).text.source, HasSubstr("typedef int idx;"));
  EXPECT_THAT(MakeSum({int64_t{1} << 30, 3}, {3}).text.source, HasSubstr("typedef long idx;"));
}

// The lanes of the form of a cast of rows of `from`, which begin at `offset` and lie `pitch` apart.
int LanesOf(ElementType from, ElementType to, int64_t columns, int64_t pitch, int64_t offset,
            int run_length = 1) {
  ProgramMaker maker;
  Operand rows = maker.Input({3, pitch}, from);
  rows.view.offset = offset;
  rows.shape = {3, columns};
  maker.Map({3, columns}, {rows},
            [to](ExprPool&, const std::vector<Expr>& loads) { return Cast(loads[0], to); });
  const program::Step& step = maker.program.steps[0];
  const device::BoundStep bound = device::Bind(maker.program, step, {});
  const KernelSequence kernels =
      MakeKernelSequence(FindLoopFacts(maker.program, step), bound, {.run_length = run_length});
  return kernels.launches[0].loops.form.lanes;
}

TEST(GenerateTest, AnItemTakes16BytesOfItsNarrowestTypeWhereRowsBeginAtMultiplesOfThem) {
  using enum ElementType;
  EXPECT_EQ(LanesOf(kFloat32, kFloat32, 100, 100, 0), 4);
  EXPECT_EQ(LanesOf(kFloat32, kFloat16, 96, 96, 0), 8);
  EXPECT_EQ(LanesOf(kInt8, kFloat32, 96, 96, 0), 16);
  EXPECT_EQ(LanesOf(kInt64, kFloat64, 96, 96, 0), 2);
  // One row of them all.
  EXPECT_EQ(LanesOf(kFloat32, kFloat32, 101, 101, 0), 4);
  EXPECT_EQ(LanesOf(kFloat32, kFloat32, 100, 104, 4), 4);
  EXPECT_EQ(LanesOf(kFloat32, kFloat32, 100, 104, 1), 1);
  EXPECT_EQ(LanesOf(kFloat32, kFloat32, 100, 103, 0), 1);
  EXPECT_EQ(LanesOf(kFloat32, kFloat16, 100, 104, 0), 1);
  EXPECT_EQ(LanesOf(kInt4, kFloat32, 96, 96, 0), 1);
  EXPECT_EQ(LanesOf(kFloat32, kFloat32, 100, 100, 0, /*run_length=*/64), 1);
}

TEST(GenerateTest, HowItemsAreCutIsTheTunings) {
  constexpr Capabilities kCut{.run_length = 8,
                              .row_parts = 6,
                              .byte_array_padding = 3,
                              .row_group_size = 32,
                              .long_item_group_size = 10};
  ProgramMaker maker;
  maker.SumRows(maker.Input({4, 100}, ElementType::kUint8));
  const program::Step& sum = maker.program.steps[0];
  const KernelSequence sums = MakeKernelSequence(FindLoopFacts(maker.program, sum),
                                                 device::Bind(maker.program, sum, {}), kCut);
  const KernelText rows = Generate(maker.program, sum, sums.launches[0].kernel,
                                   sums.launches[0].loops.form, kCut, OpenClDialect());
  EXPECT_EQ(rows.launch.group_size, 10);
  EXPECT_THAT(rows.source, HasSubstr("[9];"));
  EXPECT_THAT(rows.source, HasSubstr("+ 6 <= "));
  ProgramMaker counted;
  const Operand x = counted.Input({1000});
  const Operand count = counted.Temporary({}, ElementType::kInt64);
  counted.AddStep({x.shape,
                   {x.view},
                   {count.view},
                   program::Index{.kind = program::Index::Kind::kCountNonZero}});
  const program::Step& step = counted.program.steps[0];
  for (const int run_length : {1, 8}) {
    Capabilities cut = kCut;
    cut.run_length = run_length;
    const KernelSequence kernels = MakeKernelSequence(FindLoopFacts(counted.program, step),
                                                      device::Bind(counted.program, step, {}), cut);
    const KernelText text = Generate(counted.program, step, kernels.launches[0].kernel,
                                     kernels.launches[0].loops.form, cut, OpenClDialect());
    // A block is a group's, or an item's.
    EXPECT_EQ(text.launch.group_size, run_length == 1 ? 32 : 10);
  }
}

// Softmax of the sum of `reads` of one type: three loops over a row.
KernelText MakeSoftmax(int64_t columns, int reads, ElementType type,
                       const Capabilities& capabilities) {
  ProgramMaker maker;
  ExprPool& pool = maker.program.exprs;
  program::Step step;
  step.domain = {3, columns};
  Expr x = Constant(pool, type, 0);
  for (int read = 0; read < reads; ++read) {
    step.reads.push_back(maker.Input({3, columns}, type).view);
    x = x + Load(pool, type, read);
  }
  const Expr state = State(pool, type, 0);
  const Expr other = Other(pool, type, 0);
  program::Row row{.axes = 1};
  row.passes.push_back(
      {{{{type, Constant(pool, type, 0).id(), Maximum(state, x).id(), Maximum(state, other).id()}}},
       {state.id()}});
  const Expr power = Unary(program::ExprOp::kExp, x - RowResult(pool, type, 0, 0));
  row.passes.push_back(
      {{{{type, Constant(pool, type, 0).id(), (state + power).id(), (state + other).id()}}},
       {state.id()}});
  row.roots = {(power / RowResult(pool, type, 1, 0)).id()};
  step.writes = {maker.Temporary({3, columns}, type).view};
  step.body = std::move(row);
  maker.AddStep(std::move(step));
  const program::Step& made = maker.program.steps[0];
  const KernelSequence kernels = MakeKernelSequence(
      FindLoopFacts(maker.program, made), device::Bind(maker.program, made, {}), capabilities);
  return Generate(maker.program, made, kernels.launches[0].kernel, kernels.launches[0].loops.form,
                  capabilities, OpenClDialect());
}

int LoadsOf(const KernelText& text, int read) {
  const std::string load = "LOAD(in" + std::to_string(read) + ",";
  int count = 0;
  for (size_t at = 0; (at = text.source.find(load, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(GenerateTest, ARowThatFitsComesFromMemoryOnce) {
  using enum ElementType;
  constexpr Capabilities kGpu{
      .has_float64 = true, .row_group_size = 256, .row_shared_bytes = 48 << 10};
  for (const int64_t columns : {1000, 1025, 4096}) {
    SCOPED_TRACE(columns);
    const KernelText one = MakeSoftmax(columns, 1, kFloat32, kGpu);
    EXPECT_EQ(LoadsOf(one, 0), 1);
    EXPECT_EQ(one.launch.group_size, columns > 1024 ? 256 : 64);
    const KernelText two = MakeSoftmax(columns, 2, kFloat32, kGpu);
    EXPECT_EQ(LoadsOf(two, 0), 1);
    EXPECT_EQ(LoadsOf(two, 1), 1);
    EXPECT_EQ(LoadsOf(MakeSoftmax(columns, 1, kFloat64, kGpu), 0), 1);
  }
  EXPECT_EQ(LoadsOf(MakeSoftmax(4097, 1, kFloat32, kGpu), 0), 3);
  // Of two rows of 32 KiB there is room for one.
  const KernelText large = MakeSoftmax(4096, 2, kFloat64, kGpu);
  EXPECT_EQ(LoadsOf(large, 0), 1);
  EXPECT_EQ(LoadsOf(large, 1), 3);
  // What is merged takes its part of 16 KiB.
  constexpr Capabilities kSmall{.row_shared_bytes = 16 << 10};
  EXPECT_EQ(LoadsOf(MakeSoftmax(4096, 1, kFloat32, kSmall), 0), 3);
  EXPECT_EQ(LoadsOf(MakeSoftmax(1024, 2, kFloat32, kSmall), 0), 1);
}

TEST(GenerateTest, WindowsOfFloat32SumInFloat64WhereThatIsFast) {
  ProgramMaker maker;
  const Operand x = maker.Input({1, 2, 9});
  program::Window window{.kind = program::Window::Kind::kAverage,
                         .in_spatial = {9},
                         .kernel = {3},
                         .strides = {1},
                         .dilations = {1},
                         .pads_begin = {0},
                         .pads_end = {0}};
  window.roots = {Accumulator(maker.program.exprs, ElementType::kFloat32).id()};
  const Operand means = maker.Temporary({1, 2, 7});
  maker.AddStep({means.shape, {x.view}, {means.view}, std::move(window)});
  const program::Step& step = maker.program.steps[0];
  const LoopNest loops =
      MakeLoopNest(FindLoopFacts(maker.program, step), device::Bind(maker.program, step, {}));
  for (const bool is_fast : {false, true}) {
    const Capabilities capabilities{.has_float64 = true, .is_float64_fast = is_fast};
    const KernelText text =
        Generate(maker.program, step, 0, loops.form, capabilities, OpenClDialect());
    // A number of the prelude's is none of the kernel's.
    EXPECT_EQ(text.source.find("AS(f64,") != std::string::npos, is_fast) << text.source;
  }
}

TEST(GenerateTest, Float64IsRefusedWhereThereIsNone) {
  ProgramMaker maker;
  const Operand a = maker.Input({3}, ElementType::kFloat64);
  maker.Map({3}, {a, a}, Sum);
  const program::Step& step = maker.program.steps[0];
  const base::Status refused = Check(maker.program, step, {.has_float64 = false});
  EXPECT_EQ(refused.code(), base::Code::kUnsupportedDatatype);
  EXPECT_THAT(std::string(refused.sentence()), HasSubstr("float64"));
  EXPECT_TRUE(Check(maker.program, step, kAll).ok());
  EXPECT_THAT(Make(maker.program).text.source, HasSubstr("double"));
  EXPECT_THAT(MakeSum({3}, {3}).text.source, Not(HasSubstr("double")));
}

}  // namespace
}  // namespace onnxifi::codegen
