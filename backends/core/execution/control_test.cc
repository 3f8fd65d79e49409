// SPDX-License-Identifier: Apache-2.0
//
// Control steps run by themselves, on the reference: how often a body runs, what it is given each
// time, and what becomes of its outputs. How a program feeds them is tested with the executor.

#include "backends/core/execution/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backends/core/execution/testing/run_program.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/program/verify.h"
#include "backends/core/reference/device.h"

namespace onnxifi::execution {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::Control;
using program::Dim;
using program::Expr;
using program::ExprPool;
using program::Operand;
using program::ProgramMaker;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using testing::ElementsAre;
using testing::IsEmpty;

Expr Same(ExprPool& /*pool*/, const std::vector<Expr>& loads) { return loads[0]; }
Expr Sum(ExprPool& /*pool*/, const std::vector<Expr>& loads) { return loads[0] + loads[1]; }

Tensor Floats(const Extents& extents, const std::vector<float>& values) {
  return Tensor::FromValues<float>(ElementType::kFloat32, extents, values);
}
Tensor Integer(int64_t value) {
  return Tensor::FromValues<int64_t>(ElementType::kInt64, {}, {&value, 1});
}
Tensor Bool(bool value) {
  const uint8_t byte = value ? 1 : 0;
  return Tensor::FromValues<uint8_t>(ElementType::kBool, {}, {&byte, 1});
}

std::vector<float> ValuesOf(const OwnedTensor& tensor) {
  const auto* values = reinterpret_cast<const float*>(tensor.data());
  return {values, values + tensor::ElementCount(tensor.extents)};
}

// A control step whose bodies are planned for the reference.
class ControlStep {
 public:
  explicit ControlStep(Control::Kind kind) { control.kind = kind; }

  // `captures`: positions among the reads.
  void AddBody(ProgramMaker body, std::vector<int> captures = {}) {
    const Status sound = program::Verify(body.program);
    EXPECT_TRUE(sound.ok()) << sound.Text();
    control.bodies.push_back(std::make_unique<program::Program>(std::move(body.program)));
    control.captures.push_back(std::move(captures));
    plans_.push_back(*plan::Plan::Create(*control.bodies.back(), kit_->device, kit_->counters));
    executors_.push_back(std::make_unique<Executor>(*plans_.back()));
  }
  Result<std::vector<OwnedTensor>> Run(const std::vector<std::optional<Tensor>>& reads) const {
    std::vector<InputTensor> inputs;
    for (const std::optional<Tensor>& read : reads) {
      inputs.push_back(read ? InputTensor{read->data(), read->extents()} : InputTensor{});
    }
    return RunControlStep(control, executors_, inputs);
  }

  Control control;

 private:
  // What plans refer to; stays where it is when the step is moved.
  struct Kit {
    reference::Device device;
    plan::Counters counters;
  };
  std::unique_ptr<Kit> kit_ = std::make_unique<Kit>();
  std::vector<std::unique_ptr<plan::Plan>> plans_;
  std::vector<std::unique_ptr<PlanRunner>> executors_;
};

// The inputs that every body of a Loop has.
struct LoopInputs {
  explicit LoopInputs(ProgramMaker& body)
      : iteration(body.Input({}, ElementType::kInt64)),
        condition(body.Input({}, ElementType::kBool)) {}
  Operand iteration;
  Operand condition;
};

// Reads a number in `operand` as an extent; the run fails where it is negative.
Dim CutAt(ProgramMaker& maker, const Operand& operand) {
  const Dim extent = maker.program.dims->NewSymbol("extent", /*is_data=*/true);
  program::Cut cut;
  cut.first_symbol = extent.node()->symbol;
  cut.count = 1;
  maker.AddStep({{1}, {InsertAxis(operand, 0).view}, {}, cut});
  return extent;
}

// ---- If ----

TEST(ControlTest, IfRunsNothingOfTheOtherBranch) {
  ControlStep step(Control::Kind::kIf);
  for (const int captured : {1, 2}) {
    ProgramMaker body;
    const Operand count = body.Input({}, ElementType::kInt64);
    body.Output(body.Map({CutAt(body, count)}, {}, [](ExprPool& pool, const std::vector<Expr>&) {
      return Cast(program::Coordinate(pool, 0), ElementType::kFloat32);
    }));
    step.AddBody(std::move(body), {captured});
  }
  // The body that reads -1 would fail.
  const auto then_result = step.Run({Bool(true), Integer(3), Integer(-1)});
  ASSERT_TRUE(then_result.ok()) << then_result.status().Text();
  EXPECT_THAT(ValuesOf((*then_result)[0]), ElementsAre(0, 1, 2));
  const auto else_result = step.Run({Bool(false), Integer(-1), Integer(2)});
  ASSERT_TRUE(else_result.ok()) << else_result.status().Text();
  EXPECT_THAT(ValuesOf((*else_result)[0]), ElementsAre(0, 1));
  EXPECT_EQ(step.Run({Bool(true), Integer(-1), Integer(2)}).status().code(),
            Code::kMismatchingShape);
}

// ---- Loop ----

// Carries x[2], adds 1 to it each time and stacks what it was; goes on while iteration < `last`.
ControlStep CountingLoop(int64_t last) {
  ControlStep step(Control::Kind::kLoop);
  step.control.carried = 1;
  step.control.stacked = {{}};
  ProgramMaker body;
  const LoopInputs inputs(body);
  const Operand x = body.Input({2});
  body.Output(body.Map({}, {inputs.iteration}, [last](ExprPool&, const std::vector<Expr>& loads) {
    return loads[0] < Like(loads[0], static_cast<double>(last));
  }));
  body.Output(body.Map({2}, {x}, [](ExprPool&, const std::vector<Expr>& loads) {
    return loads[0] + Like(loads[0], 1);
  }));
  body.Output(body.Map({2}, {x}, Same));
  step.AddBody(std::move(body));
  return step;
}

TEST(ControlTest, LoopWithoutATripGivesTheFirstValuesAndEmptyStacks) {
  const ControlStep step = CountingLoop(100);
  const std::optional<Tensor> x = Floats({2}, {5, 7});
  for (const auto& [trip_count, condition] :
       {std::pair(Integer(0), Bool(true)), std::pair(Integer(-2), Bool(true)),
        std::pair(Integer(9), Bool(false))}) {
    const auto results = step.Run({trip_count, condition, x});
    ASSERT_TRUE(results.ok()) << results.status().Text();
    ASSERT_EQ(results->size(), 2u);
    EXPECT_THAT(ValuesOf((*results)[0]), ElementsAre(5, 7));
    EXPECT_NE((*results)[0].data(), x->data()) << "the caller's memory may be gone by then";
    EXPECT_EQ((*results)[1].extents, (Extents{0, 2}));
  }
}

// Slices of [n, 2 n + 1, what only an iteration reads], for x[n].
TEST(ControlTest, LoopWithoutATripStacksSlicesOfTheExtentsOfItsInputs) {
  ControlStep step(Control::Kind::kLoop);
  step.control.carried = 1;
  step.control.stacked = {{}};
  ProgramMaker body;
  const LoopInputs inputs(body);
  const Dim n = body.program.dims->NewSymbol("n", /*is_data=*/false);
  const Operand x = body.Input({n});
  const Dim read = CutAt(body, inputs.iteration);
  body.Output(body.Map({}, {inputs.condition}, Same));
  body.Output(body.Map({n}, {x}, Same));
  body.Output(
      body.Map({n, Dim(2) * n + 1, read + 1}, {}, [](ExprPool& pool, const std::vector<Expr>&) {
        return Cast(program::Coordinate(pool, 0), ElementType::kFloat32);
      }));
  step.AddBody(std::move(body));
  const auto none = step.Run({Integer(0), Bool(true), Floats({3}, {5, 7, 9})});
  ASSERT_TRUE(none.ok()) << none.status().Text();
  EXPECT_EQ((*none)[1].extents, (Extents{0, 3, 7, 0}));
  const auto one = step.Run({Integer(1), Bool(true), Floats({3}, {5, 7, 9})});
  ASSERT_TRUE(one.ok()) << one.status().Text();
  EXPECT_EQ((*one)[1].extents, (Extents{1, 3, 7, 1}));
}

TEST(ControlTest, LoopEndsAfterTheIterationThatSaysSo) {
  const ControlStep step = CountingLoop(2);
  for (const std::optional<Tensor>& trip_count : {std::optional(Integer(100)), {}}) {
    const auto results = step.Run({trip_count, Bool(true), Floats({2}, {5, 7})});
    ASSERT_TRUE(results.ok()) << results.status().Text();
    EXPECT_THAT(ValuesOf((*results)[0]), ElementsAre(8, 10));
    EXPECT_EQ((*results)[1].extents, (Extents{3, 2}));
    EXPECT_THAT(ValuesOf((*results)[1]), ElementsAre(5, 7, 6, 8, 7, 9));
  }
  const auto fewer = step.Run({Integer(1), std::nullopt, Floats({2}, {5, 7})});
  ASSERT_TRUE(fewer.ok()) << fewer.status().Text();
  EXPECT_THAT(ValuesOf((*fewer)[1]), ElementsAre(5, 7));
}

TEST(ControlTest, LoopHandsAllCarriedValuesOnAtOnce) {
  ControlStep step(Control::Kind::kLoop);
  step.control.carried = 2;
  ProgramMaker body;
  const LoopInputs inputs(body);
  const Operand a = body.Input({});
  const Operand b = body.Input({});
  body.Output(body.Map({}, {inputs.condition}, Same));
  body.Output(body.Map({}, {b}, Same));
  body.Output(body.Map({}, {a, b}, Sum));
  step.AddBody(std::move(body));
  // Fibonacci's numbers: wrong as soon as one value is seen before the other is handed on.
  const auto results = step.Run({Integer(6), Bool(true), Floats({}, {0}), Floats({}, {1})});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_THAT(ValuesOf((*results)[0]), ElementsAre(8));
  EXPECT_THAT(ValuesOf((*results)[1]), ElementsAre(13));
}

TEST(ControlTest, LoopCarriesValuesThatGrow) {
  ControlStep step(Control::Kind::kLoop);
  step.control.carried = 1;
  ProgramMaker body;
  const Dim n = body.program.dims->NewSymbol("n", /*is_data=*/false);
  const LoopInputs inputs(body);
  const Operand x = body.Input({n});
  const Operand longer = *Pad(x, {0}, {1}, tensor::Scalar{});
  body.Output(body.Map({}, {inputs.condition}, Same));
  body.Output(body.Map(longer.shape, {longer, inputs.iteration},
                       [](ExprPool&, const std::vector<Expr>& loads) {
                         return loads[0] + Cast(loads[1], ElementType::kFloat32);
                       }));
  step.AddBody(std::move(body));
  const auto results = step.Run({Integer(3), std::nullopt, Floats({1}, {10})});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_THAT(ValuesOf((*results)[0]), ElementsAre(13, 3, 3, 2));
}

TEST(ControlTest, LoopGivesWhatItCapturesToEveryIteration) {
  ControlStep step(Control::Kind::kLoop);
  step.control.carried = 1;
  ProgramMaker body;
  const LoopInputs inputs(body);
  const Operand x = body.Input({});
  const Operand factor = body.Input({});
  const Operand summand = body.Input({});
  body.Output(body.Map({}, {inputs.condition}, Same));
  body.Output(body.Map({}, {x, factor, summand}, [](ExprPool&, const std::vector<Expr>& loads) {
    return loads[0] * loads[1] + loads[2];
  }));
  // In another order than they are read in.
  step.AddBody(std::move(body), {4, 3});
  const auto results =
      step.Run({Integer(3), std::nullopt, Floats({}, {1}), Floats({}, {5}), Floats({}, {10})});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_THAT(ValuesOf((*results)[0]), ElementsAre(1555));
}

TEST(ControlTest, LoopFailsWithTheIterationThatFails) {
  ControlStep step(Control::Kind::kLoop);
  step.control.carried = 2;
  ProgramMaker body;
  const Dim n = body.program.dims->NewSymbol("n", /*is_data=*/false);
  const LoopInputs inputs(body);
  const Operand count = body.Input({}, ElementType::kInt64);
  body.Input({n});
  const Dim extent = CutAt(body, count);
  body.Output(body.Map({}, {inputs.condition}, Same));
  body.Output(body.Map({}, {count}, [](ExprPool&, const std::vector<Expr>& loads) {
    return loads[0] - Like(loads[0], 1);
  }));
  body.Output(body.Map({extent}, {}, [](ExprPool& pool, const std::vector<Expr>&) {
    return Cast(program::Coordinate(pool, 0), ElementType::kFloat32);
  }));
  step.AddBody(std::move(body));
  const auto whole = step.Run({Integer(2), std::nullopt, Integer(2), Floats({1}, {9})});
  ASSERT_TRUE(whole.ok()) << whole.status().Text();
  EXPECT_THAT(ValuesOf((*whole)[1]), ElementsAre(0));
  EXPECT_EQ(step.Run({Integer(4), std::nullopt, Integer(2), Floats({1}, {9})}).status().code(),
            Code::kMismatchingShape);
}

// ---- Scan ----

// Carries the sum of the slices of x[2, T], seen as `scanned` says, and stacks the sums.
ControlStep SummingScan(Control::ScanInput scanned, Control::ScanInput stacked) {
  ControlStep step(Control::Kind::kScan);
  step.control.carried = 1;
  step.control.scanned = {scanned};
  step.control.stacked = {stacked};
  ProgramMaker body;
  const Operand sum = body.Input({2});
  const Operand slice = body.Input({2});
  const Operand next = body.Map({2}, {sum, slice}, Sum);
  body.Output(next);
  body.Output(body.Map({2}, {next}, Same));
  step.AddBody(std::move(body));
  return step;
}

TEST(ControlTest, ScanReadsAndStacksInDirectionsOfTheirOwn) {
  struct Case {
    Control::ScanInput scanned, stacked;
    std::vector<float> stack;
  };
  const Case cases[] = {
      {{1, false}, {0, false}, {1, 10, 3, 30, 7, 70}},
      {{1, true}, {0, false}, {4, 40, 6, 60, 7, 70}},
      {{1, false}, {0, true}, {7, 70, 3, 30, 1, 10}},
      {{1, true}, {1, false}, {4, 6, 7, 40, 60, 70}},
      {{1, false}, {1, true}, {7, 3, 1, 70, 30, 10}},
  };
  for (const Case& c : cases) {
    const ControlStep step = SummingScan(c.scanned, c.stacked);
    const auto results = step.Run({Floats({2}, {0, 0}), Floats({2, 3}, {1, 2, 4, 10, 20, 40})});
    ASSERT_TRUE(results.ok()) << results.status().Text();
    EXPECT_THAT(ValuesOf((*results)[0]), ElementsAre(7, 70));
    EXPECT_EQ((*results)[1].extents, c.stacked.axis == 0 ? (Extents{3, 2}) : (Extents{2, 3}));
    EXPECT_EQ(ValuesOf((*results)[1]), c.stack);
  }
}

TEST(ControlTest, ScanOverNothingGivesTheFirstValuesAndEmptyStacks) {
  const ControlStep step = SummingScan({1, false}, {1, false});
  const std::optional<Tensor> sum = Floats({2}, {5, 7});
  const auto results = step.Run({sum, Floats({2, 0}, {})});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_THAT(ValuesOf((*results)[0]), ElementsAre(5, 7));
  EXPECT_NE((*results)[0].data(), sum->data()) << "the caller's memory may be gone by then";
  EXPECT_EQ((*results)[1].extents, (Extents{2, 0}));
  EXPECT_THAT(ValuesOf((*results)[1]), IsEmpty());
}

TEST(ControlTest, ScanGivesWhatItCapturesToEveryIteration) {
  ControlStep step(Control::Kind::kScan);
  step.control.scanned = {{.axis = 0, .reverse = false}};
  step.control.stacked = {{.axis = 0, .reverse = false}};
  ProgramMaker body;
  const Operand slice = body.Input({});
  const Operand captured = body.Input({2});
  body.Output(body.Map({2}, {captured, slice}, Sum));
  step.AddBody(std::move(body), {1});
  const auto results = step.Run({Floats({2}, {1, 2}), Floats({2}, {10, 20})});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_EQ((*results)[0].extents, (Extents{2, 2}));
  EXPECT_THAT(ValuesOf((*results)[0]), ElementsAre(11, 21, 12, 22));
}

}  // namespace
}  // namespace onnxifi::execution
