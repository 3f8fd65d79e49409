// SPDX-License-Identifier: Apache-2.0
//
// The family Recurrent: what its views are over, what a step costs, and each fault that a step may
// have.

#include "backends/core/program/recurrent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "backends/core/program/cost.h"
#include "backends/core/program/operand_extents.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/recurrent_extents.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/program/verify.h"
#include "backends/core/program/view_extents.h"

namespace onnxifi::program {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTime = 7, kBatch = 3, kHidden = 5;

// Both directions with all reads of the kind; all of its writes are outputs.
Program MakeProgram(Recurrent::Kind kind, bool resets_linear = false) {
  ProgramMaker maker;
  Recurrent recurrent;
  recurrent.kind = kind;
  recurrent.resets_linear = resets_linear;
  recurrent.activations.resize(static_cast<size_t>(2 * recurrent.functions()));
  Step step;
  step.domain = {2, kTime, kBatch, kHidden};
  step.body = recurrent;
  const bool is_lstm = kind == Recurrent::Kind::kLstm;
  for (int read = 0; read < Recurrent::kReads; ++read) {
    View& view = step.reads.emplace_back();
    if (!is_lstm && (read == Recurrent::kCell || read == Recurrent::kPeepholes)) continue;
    if (!resets_linear && read == Recurrent::kHiddenBias) continue;
    const Shape shape = RecurrentReadShape(step, read);
    view =
        maker
            .Input(shape, read == Recurrent::kLengths ? ElementType::kInt32 : ElementType::kFloat32)
            .view;
  }
  for (int write = 0; write < Recurrent::kWrites; ++write) {
    View& view = step.writes.emplace_back();
    if (!is_lstm && write == Recurrent::kLastCell) continue;
    const Operand result = maker.Temporary(RecurrentWriteShape(step, write));
    maker.Output(result);
    view = result.view;
  }
  maker.AddStep(std::move(step));
  return std::move(maker.program);
}

TEST(RecurrentTest, ViewsHaveExtentsOfTheirOwn) {
  const Program program = MakeProgram(Recurrent::Kind::kLstm);
  const Step& step = program.steps[0];
  const Shape reads[] = {{2, kTime, kBatch, 4 * kHidden},
                         {2, 4 * kHidden, kHidden},
                         {2, kBatch, kHidden},
                         {2, kBatch, kHidden},
                         {kBatch},
                         {2, 3 * kHidden},
                         {2, kHidden}};
  const ViewExtents extents(program, step);
  ASSERT_EQ(OperandCount(step), Recurrent::kReads);
  for (int read = 0; read < Recurrent::kReads; ++read) {
    EXPECT_EQ(OperandShape(step, read), reads[read]) << read;
    EXPECT_EQ(extents.OfRead(static_cast<size_t>(read)), reads[read]) << read;
  }
  EXPECT_EQ(extents.OfWrite(Recurrent::kSequence), (Shape{2, kTime, kBatch, kHidden}));
  EXPECT_EQ(extents.OfWrite(Recurrent::kLastHidden), (Shape{2, kBatch, kHidden}));
  EXPECT_EQ(extents.OfWrite(Recurrent::kLastCell), (Shape{2, kBatch, kHidden}));
}

TEST(RecurrentTest, CostIsOfProductsGatesAndEachElementOnce) {
  constexpr int64_t kElements = 2 * kTime * kBatch * kHidden;
  constexpr int64_t kStates = 2 * kBatch * kHidden;
  const auto cost = [](const Program& program) { return CostOf(program, program.steps[0], {}); };
  // 13 operations on an element, 6 of peepholes.
  EXPECT_EQ(cost(MakeProgram(Recurrent::Kind::kLstm)),
            (StepCost{kElements * (2 * 4 * kHidden + 13 + 6),
                      4 * (4 * kElements + 2 * 4 * kHidden * kHidden + 2 * kStates + kBatch +
                           2 * 3 * kHidden),
                      4 * (kElements + 2 * kStates)}));
  EXPECT_EQ(
      cost(MakeProgram(Recurrent::Kind::kGru, /*resets_linear=*/true)),
      (StepCost{kElements * (2 * 3 * kHidden + 11 + 1),
                4 * (3 * kElements + 2 * 3 * kHidden * kHidden + kStates + kBatch + 2 * kHidden),
                4 * (kElements + kStates)}));
  Program last_only = MakeProgram(Recurrent::Kind::kRnn);
  last_only.steps[0].writes[Recurrent::kSequence] = {};
  EXPECT_EQ(cost(last_only).written_bytes, 4 * kStates);
}

TEST(RecurrentTest, LivesAsLongAsOneOfItsResultsIsRead) {
  for (const int read : {Recurrent::kSequence, Recurrent::kLastHidden, Recurrent::kLastCell}) {
    Program program = MakeProgram(Recurrent::Kind::kLstm);
    program.outputs = {program.outputs[static_cast<size_t>(read)]};
    program.steps[0].writes[static_cast<size_t>((read + 1) % 3)] = {};
    RemoveDeadSteps(program);
    EXPECT_EQ(program.steps.size(), 1u) << read;
    program.outputs.clear();
    RemoveDeadSteps(program);
    EXPECT_TRUE(program.steps.empty()) << read;
  }
}

TEST(RecurrentTest, TextTellsTheKindAndItsActivations) {
  Program program = MakeProgram(Recurrent::Kind::kGru, /*resets_linear=*/true);
  program.steps[0].As<Recurrent>()->activations[3] = {CellFunction::kScaledTanh, 0.5, 2};
  const std::string text = ToString(program);
  EXPECT_THAT(text, HasSubstr("Recurrent over"));
  EXPECT_THAT(text, HasSubstr("GRU in float, linear_before_reset"));
  EXPECT_THAT(text, HasSubstr("activation ScaledTanh 0.500000 2.000000"));
}

TEST(RecurrentTest, VerifyNamesEachFault) {
  using Kind = Recurrent::Kind;
  for (const Kind kind : {Kind::kRnn, Kind::kGru, Kind::kLstm}) {
    const base::Status status = Verify(MakeProgram(kind));
    EXPECT_TRUE(status.ok()) << status.Text();
  }
  struct Fault {
    Kind kind;
    const char* sentence;
    std::function<void(Step&, Recurrent&)> make;
  };
  const Fault faults[] = {
      {Kind::kRnn, "domain of rank 3", [](Step& s, Recurrent&) { s.domain.pop_back(); }},
      {Kind::kRnn, "has 3 directions", [](Step& s, Recurrent&) { s.domain[0] = 3; }},
      {Kind::kRnn, "hidden size of a recurrent step is 0",
       [](Step& s, Recurrent&) { s.domain[3] = 0; }},
      {Kind::kRnn, "computes in float16",
       [](Step&, Recurrent& r) { r.type = ElementType::kFloat16; }},
      {Kind::kGru, "3 activations instead of 4",
       [](Step&, Recurrent& r) { r.activations.pop_back(); }},
      {Kind::kGru, "clips at -1", [](Step&, Recurrent& r) { r.clip = -1; }},
      {Kind::kGru, "6 reads and 3 writes", [](Step& s, Recurrent&) { s.reads.pop_back(); }},
      {Kind::kGru, "has no weights",
       [](Step& s, Recurrent&) { s.reads[Recurrent::kWeights] = {}; }},
      {Kind::kGru, "initial cell states, which its kind does not use",
       [](Step& s, Recurrent&) { s.reads[Recurrent::kCell] = s.reads[Recurrent::kHidden]; }},
      {Kind::kGru, "biases of the hidden gate, which its kind does not use",
       [](Step& s, Recurrent&) { s.reads[Recurrent::kHiddenBias] = s.reads[Recurrent::kHidden]; }},
      {Kind::kLstm, "lengths of a recurrent step have type int64, not int32",
       [](Step& s, Recurrent&) { s.reads[Recurrent::kLengths].type = ElementType::kInt64; }},
      {Kind::kLstm, "peepholes of a recurrent step have 1 axes instead of 2",
       [](Step& s, Recurrent&) { s.reads[Recurrent::kPeepholes].strides.pop_back(); }},
      {Kind::kLstm, "last cell states of a recurrent step have 2 axes instead of 3",
       [](Step& s, Recurrent&) { s.writes[Recurrent::kLastCell].strides.pop_back(); }},
  };
  for (const Fault& fault : faults) {
    Program program = MakeProgram(fault.kind);
    // So that no view has another type than its buffer.
    Step& step = program.steps[0];
    fault.make(step, *step.As<Recurrent>());
    for (const View& view : step.reads) {
      if (view.buffer != kNoBuffer) program.buffers[view.buffer].type = view.type;
    }
    const base::Status broken = Verify(program);
    EXPECT_EQ(broken.code(), base::Code::kInternalError) << fault.sentence;
    EXPECT_THAT(std::string(broken.sentence()), HasSubstr(fault.sentence));
  }
}

// Its results are read where they are, and no device is asked about steps before the first.
TEST(RecurrentTest, ExpandsWhatTheDeviceDoesNotPrefer) {
  const auto scans = [](const Program& program) {
    int count = 0;
    for (const Step& step : program.steps) count += step.As<Control>() != nullptr ? 1 : 0;
    return count;
  };
  for (const Recurrent::Kind kind :
       {Recurrent::Kind::kRnn, Recurrent::Kind::kGru, Recurrent::Kind::kLstm}) {
    Program program = MakeProgram(kind);
    ExpandRecurrent(program, [](const Program&, const Step&) { return true; });
    EXPECT_EQ(scans(program), 0);
    ExpandRecurrent(
        program, [](const Program&, const Step&) { return false; }, /*first_step=*/1);
    EXPECT_EQ(scans(program), 0);
    ExpandRecurrent(program, [](const Program&, const Step&) { return false; });
    EXPECT_EQ(scans(program), 2);
    const base::Status status = Verify(program);
    EXPECT_TRUE(status.ok()) << status.Text();
  }
}

}  // namespace
}  // namespace onnxifi::program
