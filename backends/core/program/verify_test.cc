// SPDX-License-Identifier: Apache-2.0
//
// Verify: a program that holds is accepted, and each way of breaking it is named.

#include "backends/core/program/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace onnxifi::program {
namespace {

using testing::HasSubstr;

constexpr ElementType kFloat = ElementType::kFloat32;

// out = max over the last axis of (x + y), as a Reduce.
Program MakeReduce() {
  Program program;
  const Shape shape = {3, 4};
  for (int k = 0; k < 2; ++k) {
    program.AddBuffer({Buffer::Kind::kInput, kFloat, shape, k});
    program.inputs.push_back({"in" + std::to_string(k), k, shape});
  }
  program.AddBuffer({Buffer::Kind::kTemporary, kFloat, {3}});
  program.outputs.push_back({"out", 2, {3}});
  ExprPool& pool = program.exprs;
  const Expr state = State(pool, kFloat, 0);
  const Expr element = Load(pool, kFloat, 0) + Load(pool, kFloat, 1);
  Reduce reduce;
  reduce.axes = 1;
  reduce.reduction.states.push_back({kFloat, Constant(pool, kFloat, -1e30).id(),
                                     Maximum(state, element).id(),
                                     Maximum(state, Other(pool, kFloat, 0)).id()});
  reduce.roots = {state.id()};
  Step step;
  step.domain = shape;
  step.reads = {DenseView(0, kFloat, shape), DenseView(1, kFloat, shape)};
  step.writes = {DenseView(2, kFloat, {3})};
  step.body = std::move(reduce);
  program.steps.push_back(std::move(step));
  return program;
}

TEST(VerifyTest, AcceptsASoundProgram) {
  const base::Status status = Verify(MakeReduce());
  EXPECT_TRUE(status.ok()) << status.Text();
}

TEST(VerifyTest, NamesEachFault) {
  struct Fault {
    const char* sentence;
    std::function<void(Program&)> make;
  };
  auto reduction = [](Program& p) -> Reduction::State& {
    return p.steps[0].As<Reduce>()->reduction.states[0];
  };
  const Fault faults[] = {
      {"Buffer 9 does not exist", [](Program& p) { p.steps[0].reads[0].buffer = 9; }},
      {"of type float.", [](Program& p) { p.steps[0].reads[0].type = ElementType::kFloat16; }},
      {"A writing view has a guard",
       [](Program& p) {
         p.steps[0].writes[0].guards.push_back({{1}, 0, 3});
       }},
      {"is written", [](Program& p) { p.steps[0].writes[0].buffer = 1; }},
      {"coefficients",
       [](Program& p) {
         p.steps[0].reads[0].guards.push_back({{1}, 0, 3});
       }},
      {"has 1 axes, not 2", [](Program& p) { p.steps[0].reads[1].strides.pop_back(); }},
      {"Read 1 does not exist", [](Program& p) { p.steps[0].reads.pop_back(); }},
      {"1 roots are computed for 0 writes", [](Program& p) { p.steps[0].writes.clear(); }},
      {"axes of a domain", [](Program& p) { p.steps[0].As<Reduce>()->axes = 3; }},
      {"State 1 is read where there is none",
       [&](Program& p) { reduction(p).update = State(p.exprs, kFloat, 1).id(); }},
      {"An element is loaded where none may be",
       [&](Program& p) { reduction(p).init = Load(p.exprs, kFloat, 0).id(); }},
      {"gets a value of type double",
       [&](Program& p) { reduction(p).init = Constant(p.exprs, ElementType::kFloat64, 0).id(); }},
      {"Coordinate 1 is read where there are 1",
       [](Program& p) {
         p.steps[0].As<Reduce>()->roots[0] = Cast(Coordinate(p.exprs, 1), kFloat).id();
       }},
      {"gets a root of type double",
       [](Program& p) {
         p.steps[0].As<Reduce>()->roots[0] = Constant(p.exprs, ElementType::kFloat64, 0).id();
       }},
      {"a type that is only stored",
       [](Program& p) {
         const Expr half = Constant(p.exprs, ElementType::kFloat16, 1);
         p.steps[0].As<Reduce>()->roots[0] = Cast(-half, kFloat).id();
       }},
      {"An accumulator is read",
       [](Program& p) { p.steps[0].As<Reduce>()->roots[0] = Accumulator(p.exprs, kFloat).id(); }},
      {"Expression -1 does not exist", [](Program& p) { p.steps[0].As<Reduce>()->roots[0] = -1; }},
      {"Port 'out' names buffer 7", [](Program& p) { p.outputs[0].buffer = 7; }},
      {"input or constant 5", [](Program& p) { p.buffers[0].index = 5; }},
  };
  for (const Fault& fault : faults) {
    Program program = MakeReduce();
    fault.make(program);
    const base::Status status = Verify(program);
    EXPECT_EQ(status.code(), base::Code::kInternalError) << fault.sentence;
    EXPECT_THAT(std::string(status.sentence()), HasSubstr(fault.sentence));
  }
}

// [3, 5] queries x [5, 7] keys, [7, 11] values.
Program MakeAttention() {
  Program program;
  const Shape shapes[] = {{3, 5}, {5, 7}, {7, 11}};
  Step step;
  for (int k = 0; k < 3; ++k) {
    program.AddBuffer({Buffer::Kind::kInput, kFloat, shapes[k], k});
    program.inputs.push_back({"in" + std::to_string(k), k, shapes[k]});
    step.reads.push_back(DenseView(k, kFloat, shapes[k]));
  }
  program.AddBuffer({Buffer::Kind::kTemporary, kFloat, {3, 11}});
  step.writes = {DenseView(3, kFloat, {3, 11})};
  step.domain = {3, 11};
  ExprPool& pool = program.exprs;
  Attention attention;
  attention.keys = 7;
  attention.width = 5;
  attention.query_prologue = Load(pool, kFloat, 0).id();
  attention.key_prologue = Load(pool, kFloat, 1).id();
  attention.value_prologue = Load(pool, kFloat, 2).id();
  attention.score = Accumulator(pool, kFloat).id();
  attention.roots = {Accumulator(pool, kFloat).id()};
  step.body = std::move(attention);
  program.steps.push_back(std::move(step));
  return program;
}

TEST(VerifyTest, NamesEachFaultOfAttention) {
  const base::Status status = Verify(MakeAttention());
  EXPECT_TRUE(status.ok()) << status.Text();
  struct Fault {
    const char* sentence;
    std::function<void(Program&, Attention&)> make;
  };
  const Fault faults[] = {
      {"fewer than three operands", [](Program& p, Attention&) { p.steps[0].reads.resize(2); }},
      {"domain of rank 1", [](Program& p, Attention&) { p.steps[0].domain = {3}; }},
      {"Expression -1 does not exist", [](Program&, Attention& a) { a.score = kNoExpr; }},
      {"Expression -1 does not exist", [](Program&, Attention& a) { a.key_prologue = kNoExpr; }},
      {"the score of type double, not float32",
       [](Program& p, Attention& a) {
         a.score = Cast(Expr(&p.exprs, a.score), ElementType::kFloat64).id();
       }},
      {"0 roots are computed for 1 writes", [](Program&, Attention& a) { a.roots.clear(); }},
  };
  for (const Fault& fault : faults) {
    Program program = MakeAttention();
    fault.make(program, *program.steps[0].As<Attention>());
    const base::Status broken = Verify(program);
    EXPECT_EQ(broken.code(), base::Code::kInternalError) << fault.sentence;
    EXPECT_THAT(std::string(broken.sentence()), HasSubstr(fault.sentence));
  }
}

}  // namespace
}  // namespace onnxifi::program
