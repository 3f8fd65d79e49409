// SPDX-License-Identifier: Apache-2.0
//
// Executor: programs put together by hand, on the reference: numbers read at a cut, control flow,
// memory kept from run to run, many runs at a time, and runs that fail.

#include "backends/core/execution/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "backends/core/execution/host_boundary.h"
#include "backends/core/execution/testing/far_device.h"
#include "backends/core/execution/testing/run_program.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/program/verify.h"
#include "backends/core/reference/device.h"
#include "backends/core/tensor/convert.h"

namespace onnxifi::execution {
namespace {

using base::Code;
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
using program::Shape;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

Expr Sum(ExprPool&, const std::vector<Expr>& loads) { return loads[0] + loads[1]; }
Expr Double(ExprPool&, const std::vector<Expr>& loads) { return loads[0] * Like(loads[0], 2); }

Tensor Floats(const Extents& extents, const std::vector<float>& values) {
  return Tensor::FromValues<float>(ElementType::kFloat32, extents, values);
}
Tensor Integers(const Extents& extents, const std::vector<int64_t>& values) {
  return Tensor::FromValues<int64_t>(ElementType::kInt64, extents, values);
}
Tensor Bool(bool value) {
  const uint8_t byte = value ? 1 : 0;
  return Tensor::FromValues<uint8_t>(ElementType::kBool, {}, {&byte, 1});
}

Dim NewSymbol(ProgramMaker& maker, const std::string& name, bool is_data = false) {
  return maker.program.dims->NewSymbol(name, is_data);
}

// A plan for the reference and its executor.
struct Ready {
  explicit Ready(const Program& program) {
    const Status sound = program::Verify(program);
    EXPECT_TRUE(sound.ok()) << sound.Text();
    plan = *plan::Plan::Create(program, device, counters);
    executor = std::make_unique<Executor>(*plan);
  }
  Result<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs) {
    TensorOutputs places(plan->program());
    ONNXIFI_RETURN_IF_ERROR(executor->Run(AsInputs(inputs), places));
    return std::move(places.tensors);
  }

  reference::Device device;
  plan::Counters counters;
  std::unique_ptr<plan::Plan> plan;
  std::unique_ptr<Executor> executor;
};

// On a device with memory of its own, whose queue copies what the host's would.
Result<std::vector<Tensor>> RunFar(const Program& program, const std::vector<Tensor>& inputs) {
  FarDevice device;
  plan::Counters counters;
  ONNXIFI_ASSIGN_OR_RETURN(const auto plan, plan::Plan::Create(program, device, counters));
  Executor executor(*plan);
  ONNXIFI_ASSIGN_OR_RETURN(const auto boundary, HostBoundary::Create(executor));
  TensorOutputs places(program);
  ONNXIFI_RETURN_IF_ERROR(boundary->Run(AsInputs(inputs), places));
  return std::move(places.tensors);
}

// count[2] int64, x[N]: out[count[0], N] = x, count[1] times as much in each row as in the one
// before: all that a cut can tell, extents and numbers.
void MakeRepeat(ProgramMaker& maker) {
  const Dim n = NewSymbol(maker, "N");
  const Dim rows = NewSymbol(maker, "rows", /*is_data=*/true);
  const Dim factor = NewSymbol(maker, "factor", /*is_data=*/true);
  const Operand counts = maker.Input({2}, ElementType::kInt64);
  const Operand x = maker.Input({n});
  program::Cut cut;
  cut.first_symbol = rows.node()->symbol;
  cut.count = 2;
  // Behind a step of its own, so that what a device computed is read.
  const Operand computed = maker.Map({2}, {counts}, Double);
  maker.AddStep({{2}, {computed.view}, {}, cut});
  maker.Output(maker.Map({rows, n}, {x}, [factor](ExprPool& pool, const std::vector<Expr>& loads) {
    const Expr power = Binary(ExprOp::kPow, DimExpr(pool, factor), Coordinate(pool, 0));
    return loads[0] * Cast(power, ElementType::kFloat32);
  }));
}

TEST(ExecutorTest, ReadsNumbersAtACut) {
  ProgramMaker maker;
  MakeRepeat(maker);
  Ready ready(maker.program);
  auto outputs = ready.Run({Integers({2}, {1, 5}), Floats({3}, {1, 2, 3})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  EXPECT_EQ((*outputs)[0].extents(), (Extents{2, 3}));
  EXPECT_THAT((*outputs)[0].values<float>(), ElementsAre(1, 2, 3, 10, 20, 30));
  outputs = ready.Run({Integers({2}, {0, 1}), Floats({2}, {1, 2})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  EXPECT_EQ((*outputs)[0].extents(), (Extents{0, 2}));
}

TEST(ExecutorTest, ReadsACutThroughStridesAndGuards) {
  ProgramMaker maker;
  const Dim a = NewSymbol(maker, "a", /*is_data=*/true);
  const Dim b = NewSymbol(maker, "b", /*is_data=*/true);
  const Dim c = NewSymbol(maker, "c", /*is_data=*/true);
  const Operand numbers = maker.Input({4}, ElementType::kInt64);
  // Elements 3 and 1, and one outside, which is 6.
  const Operand picked = *Pad(Slice(numbers, 0, 3, -2, 2), {1}, {0}, tensor::Scalar{.i = 6});
  program::Cut cut;
  cut.first_symbol = a.node()->symbol;
  cut.count = 3;
  maker.AddStep({{3}, {picked.view}, {}, cut});
  maker.Output(maker.Map(
      {a, b, c}, {}, [](ExprPool& pool, const std::vector<Expr>&) { return Coordinate(pool, 2); }));
  Ready ready(maker.program);
  const auto outputs = ready.Run({Integers({4}, {10, 2, 20, 3})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  EXPECT_EQ((*outputs)[0].extents(), (Extents{6, 3, 2}));
}

TEST(ExecutorTest, KeepsMemoryFromRunToRun) {
  ProgramMaker maker;
  const Dim n = NewSymbol(maker, "N");
  const Operand x = maker.Input({n, 2});
  const Operand a = maker.Map({n, 2}, {x}, Double);
  maker.Output(maker.Map({2, n}, {Permute(a, {1, 0})}, Double));
  Ready ready(maker.program);
  const auto run = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(2 * count), 1.5F);
    values[1] = 3;
    const auto outputs = ready.Run({Floats({count, 2}, values)});
    ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
    EXPECT_EQ((*outputs)[0].values<float>()[static_cast<size_t>(count)], 12);
  };
  run(20);
  EXPECT_EQ(ready.counters.allocations, 1u);
  for (const int64_t count : {20, 3, 20}) run(count);
  EXPECT_EQ(ready.counters.allocations, 1u) << "what is there is large enough";
  run(500);
  run(20);
  EXPECT_EQ(ready.counters.allocations, 2u);
}

TEST(ExecutorTest, RunsManyAtATime) {
  ProgramMaker maker;
  MakeRepeat(maker);
  Ready ready(maker.program);
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < 6; ++thread) {
    threads.emplace_back([&ready, &right, thread] {
      for (int64_t k = 0; k < 100; ++k) {
        const int64_t half_rows = 1 + (k + thread) % 3;
        const auto x = static_cast<float>(thread * 100 + k);
        const auto outputs = ready.Run({Integers({2}, {half_rows, 1}), Floats({1}, {x})});
        if (!outputs.ok()) continue;
        const std::span<const float> values = (*outputs)[0].values<float>();
        bool is_right = values.size() == static_cast<size_t>(2 * half_rows);
        for (size_t row = 0; is_right && row < values.size(); ++row) {
          is_right = values[row] == x * static_cast<float>(1 << row);
        }
        right += is_right ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 600);
}

TEST(ExecutorTest, FailsWithoutARunAndRunsAgain) {
  ProgramMaker maker;
  MakeRepeat(maker);
  Ready ready(maker.program);
  class NoOutputs : public OutputAllocator {
   public:
    Result<std::byte*> Allocate(int output, const Extents& extents) override {
      return Status(Code::kNoDeviceMemory, "No room for output " + std::to_string(output) +
                                               " of shape " + tensor::ToString(extents) + ".");
    }
  };
  NoOutputs places;
  const std::vector<Tensor> inputs = {Integers({2}, {1, 1}), Floats({1}, {7})};
  const Status no_room = ready.executor->Run(AsInputs(inputs), places);
  EXPECT_EQ(no_room.code(), Code::kNoDeviceMemory);
  EXPECT_EQ(no_room.sentence(), "No room for output 0 of shape [2, 1].");
  const auto mismatched = ready.Run({Integers({3}, {1, 1, 1}), Floats({1}, {7})});
  EXPECT_EQ(mismatched.status().code(), Code::kMismatchingShape);
  const auto negative = ready.Run({Integers({2}, {-1, 1}), Floats({1}, {7})});
  EXPECT_EQ(negative.status().code(), Code::kMismatchingShape);
  EXPECT_THAT(negative.status().Text(), HasSubstr("-2"));
  const auto outputs = ready.Run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  EXPECT_THAT((*outputs)[0].values<float>(), ElementsAre(7, 14));
}

// ---- Control flow ----

// Adds a control step with an output of `rank` per type; their extents are symbols.
std::vector<Operand> AddControl(ProgramMaker& maker, Control control,
                                const std::vector<std::optional<Operand>>& reads,
                                const std::vector<std::pair<ElementType, int>>& outputs) {
  program::Step step;
  for (const std::optional<Operand>& read : reads) {
    step.reads.push_back(read ? read->view : program::View{});
    control.read_shapes.push_back(read ? read->shape : Shape{});
  }
  std::vector<Operand> made;
  for (const auto& [type, rank] : outputs) {
    Shape shape;
    control.first_symbol.push_back(maker.program.dims->symbol_count());
    for (int axis = 0; axis < rank; ++axis) {
      shape.push_back(NewSymbol(maker, "e" + std::to_string(axis), /*is_data=*/true));
    }
    made.push_back(maker.Temporary(shape, type));
    maker.program.buffers[static_cast<size_t>(made.back().view.buffer)].kind =
        program::Buffer::Kind::kDynamic;
    step.writes.push_back(made.back().view);
  }
  step.body = std::move(control);
  maker.AddStep(std::move(step));
  return made;
}

void AddBody(Control& control, ProgramMaker body, std::vector<int> captures) {
  control.bodies.push_back(std::make_unique<Program>(std::move(body.program)));
  control.captures.push_back(std::move(captures));
}

TEST(ExecutorTest, IfRunsOneBranchWhoseExtentsAreItsOwn) {
  Control control;
  {
    ProgramMaker then_body;
    const Dim n = NewSymbol(then_body, "n");
    const Operand captured = then_body.Input({n});
    then_body.Output(then_body.Map({n}, {captured}, Double));
    AddBody(control, std::move(then_body), {1});
    ProgramMaker else_body;
    const Operand pair = else_body.Input({2});
    else_body.Output(else_body.Map({5}, {Slice(pair, 0, 1, 1, 1)}, Double));
    AddBody(control, std::move(else_body), {2});
  }
  ProgramMaker maker;
  const Dim n = NewSymbol(maker, "N");
  const Operand condition = maker.Input({}, ElementType::kBool);
  const Operand x = maker.Input({n});
  const Operand pair = maker.Input({2});
  const std::vector<Operand> chosen =
      AddControl(maker, std::move(control), {condition, x, pair}, {{ElementType::kFloat32, 1}});
  maker.Output(maker.Map(chosen[0].shape, {chosen[0]}, Double));
  Ready ready(maker.program);
  auto outputs = ready.Run({Bool(true), Floats({3}, {1, 2, 3}), Floats({2}, {5, 7})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  EXPECT_THAT((*outputs)[0].values<float>(), ElementsAre(4, 8, 12));
  outputs = ready.Run({Bool(false), Floats({3}, {1, 2, 3}), Floats({2}, {5, 7})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  EXPECT_THAT((*outputs)[0].values<float>(), ElementsAre(28, 28, 28, 28, 28));
}

// Carries value[N], to which each iteration adds what is captured, and stacks iteration * value;
// goes on while the first element is below 10.
void MakeLoop(ProgramMaker& maker, bool has_trip_count, bool has_condition) {
  Control control;
  control.kind = Control::Kind::kLoop;
  control.carried = 1;
  control.stacked = {{}};
  {
    ProgramMaker body;
    const Dim n = NewSymbol(body, "n");
    const Operand iteration = body.Input({}, ElementType::kInt64);
    body.Input({}, ElementType::kBool);
    const Operand value = body.Input({n});
    const Operand step = body.Input({n});
    const Operand next = body.Map({n}, {value, step}, Sum);
    Operand first{next.view, {}};
    first.view.strides.clear();
    const Operand goes_on = body.Map({}, {first}, [](ExprPool&, const std::vector<Expr>& loads) {
      return loads[0] < Like(loads[0], 10);
    });
    const Operand slice =
        body.Map({n}, {next, iteration}, [](ExprPool&, const std::vector<Expr>& loads) {
          return loads[0] * Cast(loads[1], ElementType::kFloat32);
        });
    for (const Operand& output : {goes_on, next, slice}) body.Output(output);
    AddBody(control, std::move(body), {3});
  }
  const Dim n = NewSymbol(maker, "N");
  const Operand trip_count = maker.Input({}, ElementType::kInt64);
  const Operand condition = maker.Input({}, ElementType::kBool);
  const Operand value = maker.Input({n});
  const Operand step = maker.Input({n});
  const std::vector<Operand> results =
      AddControl(maker, std::move(control),
                 {has_trip_count ? std::optional(trip_count) : std::nullopt,
                  has_condition ? std::optional(condition) : std::nullopt, value, step},
                 {{ElementType::kFloat32, 1}, {ElementType::kFloat32, 2}});
  for (const Operand& result : results) {
    maker.Output(maker.Map(result.shape, {result}, Double));
  }
}

TEST(ExecutorTest, LoopStopsAtTheTripCountOrTheCondition) {
  struct Case {
    bool has_trip_count, has_condition;
    int64_t trip_count;
    bool condition;
    int iterations;
  };
  const Case cases[] = {
      {true, true, 2, true, 2},    {true, true, 100, true, 5}, {true, true, 100, false, 0},
      {true, true, 0, true, 0},    {true, false, 2, false, 2}, {false, true, 1, true, 5},
      {false, false, 1, false, 5}, {true, true, -3, true, 0},
  };
  for (const Case& c : cases) {
    ProgramMaker maker;
    MakeLoop(maker, c.has_trip_count, c.has_condition);
    Ready ready(maker.program);
    const auto outputs = ready.Run({Integers({}, {c.trip_count}), Bool(c.condition),
                                    Floats({2}, {0, 100}), Floats({2}, {2, 1})});
    ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
    const auto count = static_cast<float>(c.iterations);
    EXPECT_THAT((*outputs)[0].values<float>(), ElementsAre(4 * count, 200 + 2 * count));
    if (c.iterations == 0) {
      EXPECT_EQ((*outputs)[1].extents()[0], 0);
      continue;
    }
    ASSERT_EQ((*outputs)[1].extents(), (Extents{c.iterations, 2}));
    for (int64_t k = 0; k < c.iterations; ++k) {
      EXPECT_EQ((*outputs)[1].AsDouble(2 * k), static_cast<double>(2 * k * 2 * (k + 1)));
      EXPECT_EQ((*outputs)[1].AsDouble(2 * k + 1), static_cast<double>(2 * k * (101 + k)));
    }
  }
}

// Carries sum[2] over the columns of x[2, T], from the last to the first, and stacks the sums as
// columns in the order of x; `other`, of a type narrower than a byte, goes along axis 0 and is
// stacked as it comes: slices of three begin within a byte.
void ScanAnyAxisEitherWay(ElementType packed) {
  SCOPED_TRACE(tensor::Name(packed));
  Control control;
  control.kind = Control::Kind::kScan;
  control.carried = 1;
  control.scanned = {{.axis = 1, .reverse = true}, {.axis = 0, .reverse = false}};
  control.stacked = {{.axis = 1, .reverse = true}, {.axis = 0, .reverse = false}};
  {
    ProgramMaker body;
    const Operand sum = body.Input({2});
    const Operand column = body.Input({2});
    const Operand row = body.Input({3}, packed);
    const Operand next = body.Map({2}, {sum, column}, Sum);
    const Operand shown = body.Map({2}, {next}, Double);
    const Operand same =
        body.Map({3}, {row}, [](ExprPool&, const std::vector<Expr>& loads) { return loads[0]; });
    for (const Operand& output : {next, shown, same}) body.Output(output);
    AddBody(control, std::move(body), {});
  }
  ProgramMaker maker;
  const Dim t = NewSymbol(maker, "T");
  const Operand sum = maker.Input({2});
  const Operand x = maker.Input({2, t});
  const Operand other = maker.Input({t, 3}, packed);
  const std::vector<Operand> results =
      AddControl(maker, std::move(control), {sum, x, other},
                 {{ElementType::kFloat32, 1}, {ElementType::kFloat32, 2}, {packed, 2}});
  for (const Operand& result : results) {
    maker.Output(maker.Map(result.shape, {result}, [](ExprPool&, const std::vector<Expr>& loads) {
      return Cast(loads[0], ElementType::kFloat32);
    }));
  }
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6, 7, 8, 10};
  Tensor other_numbers = *Tensor::Allocate(packed, {3, 3});
  for (size_t k = 0; k < numbers.size(); ++k) {
    const tensor::Scalar number =
        CastScalar(ElementType::kFloat64, packed, tensor::Scalar{.f = numbers[k]});
    StoreScalar(packed, other_numbers.mutable_data(), static_cast<int64_t>(k), number);
  }
  std::vector<Tensor> inputs;
  inputs.push_back(Floats({2}, {0, 100}));
  inputs.push_back(Floats({2, 3}, {1, 2, 3, 4, 5, 6}));
  inputs.push_back(std::move(other_numbers));
  Ready ready(maker.program);
  for (const bool is_far : {false, true}) {
    const auto outputs = is_far ? RunFar(maker.program, inputs) : ready.Run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
    EXPECT_THAT((*outputs)[0].values<float>(), ElementsAre(6, 115));
    EXPECT_EQ((*outputs)[1].extents(), (Extents{2, 3}));
    EXPECT_THAT((*outputs)[1].values<float>(), ElementsAre(12, 10, 6, 230, 222, 212));
    EXPECT_EQ((*outputs)[2].extents(), (Extents{3, 3}));
    EXPECT_THAT((*outputs)[2].values<float>(), ElementsAreArray(numbers)) << is_far;
  }
}

TEST(ExecutorTest, ScanWalksAnyAxisEitherWay) {
  for (const ElementType packed : {ElementType::kUint4, ElementType::kFloat6E3M2}) {
    ScanAnyAxisEitherWay(packed);
  }
}

// The numbers of its run, doubled.
void MakeDraws(ProgramMaker& maker) {
  const program::BufferId draws =
      maker.program.AddBuffer({program::Buffer::Kind::kDraws, ElementType::kInt64, {Dim(2)}});
  maker.program.draws->start = 100;
  const Operand numbers{program::DenseView(draws, ElementType::kInt64, {Dim(2)}), {Dim(2)}};
  maker.Output(maker.Map({2}, {numbers}, Double));
}

TEST(ExecutorTest, EachRunDrawsTheNextNumber) {
  ProgramMaker maker;
  MakeDraws(maker);
  Ready ready(maker.program);
  EXPECT_THAT((*ready.Run({}))[0].values<int64_t>(), ElementsAre(0, 200));
  EXPECT_THAT((*ready.Run({}))[0].values<int64_t>(), ElementsAre(2, 202));
}

TEST(ExecutorTest, EachIterationDrawsTheNextNumber) {
  Control control;
  control.kind = Control::Kind::kLoop;
  control.stacked = {{}};
  ProgramMaker body;
  body.Input({}, ElementType::kInt64);
  const Operand condition = body.Input({}, ElementType::kBool);
  body.Output(body.Map({}, {condition},
                       [](ExprPool&, const std::vector<Expr>& loads) { return loads[0]; }));
  MakeDraws(body);
  AddBody(control, std::move(body), {});
  ProgramMaker maker;
  const Operand trip_count = maker.Input({}, ElementType::kInt64);
  const std::vector<Operand> results =
      AddControl(maker, std::move(control), {trip_count, std::nullopt}, {{ElementType::kInt64, 2}});
  maker.Output(maker.Map(results[0].shape, {results[0]}, Double));
  for (const bool is_far : {false, true}) {
    const auto outputs = is_far ? RunFar(maker.program, {Integers({}, {3})})
                                : Ready(maker.program).Run({Integers({}, {3})});
    ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
    const int64_t drawn = is_far ? 12 : 0;
    EXPECT_THAT((*outputs)[0].values<int64_t>(),
                ElementsAre(drawn, drawn + 400, drawn + 4, drawn + 404, drawn + 8, drawn + 408));
  }
}

TEST(ExecutorTest, RunsInAQueueKeepTheirNumbers) {
  ProgramMaker maker;
  MakeDraws(maker);
  FarDevice device;
  plan::Counters counters;
  const auto plan = *plan::Plan::Create(maker.program, device, counters);
  Executor executor(*plan);
  auto boundary = *HostBoundary::Create(executor);
  std::vector<TensorOutputs> places;
  for (int run = 0; run < 4; ++run) places.emplace_back(maker.program);
  for (TensorOutputs& place : places) {
    const Status queued = boundary->Run({}, place, /*profile=*/nullptr, /*strings=*/nullptr,
                                        HostBoundary::End::kQueued);
    ASSERT_TRUE(queued.ok()) << queued.Text();
  }
  boundary.reset();  // waits
  for (int64_t run = 0; run < 4; ++run) {
    EXPECT_THAT(places[static_cast<size_t>(run)].tensors[0].values<int64_t>(),
                ElementsAre(2 * run, 200 + 2 * run));
  }
}

TEST(ExecutorTest, RefusesSlicesOfDifferentExtents) {
  // The body's slice grows with the iteration.
  Control control;
  control.kind = Control::Kind::kLoop;
  control.stacked = {{}};
  {
    ProgramMaker body;
    const Operand iteration = body.Input({}, ElementType::kInt64);
    const Operand condition = body.Input({}, ElementType::kBool);
    const Dim extent = NewSymbol(body, "extent", /*is_data=*/true);
    program::Cut cut;
    cut.first_symbol = extent.node()->symbol;
    cut.count = 1;
    body.AddStep({{1}, {InsertAxis(iteration, 0).view}, {}, cut});
    body.Output(body.Map({}, {condition},
                         [](ExprPool&, const std::vector<Expr>& loads) { return loads[0]; }));
    body.Output(body.Map({extent + Dim(1)}, {}, [](ExprPool& pool, const std::vector<Expr>&) {
      return Coordinate(pool, 0);
    }));
    AddBody(control, std::move(body), {});
  }
  ProgramMaker maker;
  const Operand trip_count = maker.Input({}, ElementType::kInt64);
  const std::vector<Operand> results =
      AddControl(maker, std::move(control), {trip_count, std::nullopt}, {{ElementType::kInt64, 2}});
  maker.Output(maker.Map(results[0].shape, {results[0]}, Double));
  Ready ready(maker.program);
  const auto once = ready.Run({Integers({}, {1})});
  ASSERT_TRUE(once.ok()) << once.status().Text();
  EXPECT_EQ((*once)[0].extents(), (Extents{1, 1}));
  const auto twice = ready.Run({Integers({}, {2})});
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.status().code(), Code::kMismatchingShape);
  EXPECT_EQ(twice.status().sentence(),
            "Iteration 1 stacks a slice of shape [2] on slices of shape [1].");
}

}  // namespace
}  // namespace onnxifi::execution
