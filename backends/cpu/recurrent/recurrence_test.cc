// SPDX-License-Identifier: Apache-2.0
//
// Recurrences that are large enough for several threads, on the CPU device, compared with the
// reference: both directions, more rows than registers hold, sequences that end early.

#include "backends/cpu/recurrent/recurrence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "backends/core/program/recurrent_extents.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/reference/random_step.h"
#include "backends/cpu/device.h"

namespace onnxifi::cpu {
namespace {

using program::Activation;
using program::CellFunction;
using program::Operand;
using program::Recurrent;
using Kind = Recurrent::Kind;
using tensor::ElementType;
using tensor::Extents;

struct Case {
  Kind kind = Kind::kLstm;
  int64_t directions = 2, time = 12, batch = 3, hidden = 131;
  bool resets_linear = false;
  bool has_lengths = false;
  bool has_constant_weights = true;
};

// Every read of the kind.
reference::RandomStep MakeStep(const Case& of) {
  program::ProgramMaker maker;
  reference::RandomStep made;
  int seed = 0;
  const auto number = [&seed](int64_t k, double scale) {
    return static_cast<float>(scale * std::sin(seed + 1.7 * static_cast<double>(k * k % 10007)));
  };
  Recurrent recurrent;
  recurrent.kind = of.kind;
  recurrent.resets_linear = of.resets_linear;
  for (int64_t direction = 0; direction < of.directions; ++direction) {
    for (int function = 0; function < recurrent.functions(); ++function) {
      const bool is_gate = function == 0 && of.kind != Kind::kRnn;
      recurrent.activations.push_back(
          {is_gate ? CellFunction::kSigmoid : CellFunction::kTanh, 0, 0});
    }
  }
  program::Step step;
  step.domain = {of.directions, of.time, of.batch, of.hidden};
  step.body = recurrent;
  const auto read = [&](int position, double scale) {
    ++seed;
    const program::Shape shape = program::RecurrentReadShape(step, position);
    Extents extents;
    for (const program::Dim& dim : shape) extents.push_back(dim.constant());
    const bool is_int = position == Recurrent::kLengths;
    tensor::Tensor tensor =
        *tensor::Tensor::Allocate(is_int ? ElementType::kInt32 : ElementType::kFloat32, extents);
    for (int64_t k = 0; k < tensor.element_count(); ++k) {
      if (is_int) {
        reinterpret_cast<int32_t*>(tensor.mutable_data())[k] =
            static_cast<int32_t>((k * 5 + 3) % (of.time + 1));
      } else {
        reinterpret_cast<float*>(tensor.mutable_data())[k] = number(k, scale);
      }
    }
    made.buffers.push_back(*tensor::Tensor::Allocate(tensor.type(), extents));
    std::copy_n(tensor.data(), tensor.size_bytes(), made.buffers.back().mutable_data());
    const bool is_constant = position == Recurrent::kWeights && of.has_constant_weights;
    const Operand operand =
        is_constant ? maker.Constant(std::move(tensor)) : maker.Input(shape, tensor.type());
    step.reads.resize(static_cast<size_t>(position));
    step.reads.push_back(operand.view);
  };
  read(Recurrent::kProjected, 1);
  read(Recurrent::kWeights, 3 / static_cast<double>(of.hidden));
  read(Recurrent::kHidden, 0.9);
  if (of.kind == Kind::kLstm) read(Recurrent::kCell, 0.9);
  if (of.has_lengths) read(Recurrent::kLengths, 0);
  if (of.kind == Kind::kLstm) read(Recurrent::kPeepholes, 0.3);
  if (of.resets_linear) read(Recurrent::kHiddenBias, 0.5);
  step.reads.resize(Recurrent::kReads);
  for (int write = 0; write < Recurrent::kWrites; ++write) {
    program::View& view = step.writes.emplace_back();
    if (write == Recurrent::kLastCell && of.kind != Kind::kLstm) continue;
    const program::Shape shape = program::RecurrentWriteShape(step, write);
    Extents extents;
    for (const program::Dim& dim : shape) extents.push_back(dim.constant());
    view = maker.Temporary(shape).view;
    made.buffers.push_back(*tensor::Tensor::Allocate(ElementType::kFloat32, extents));
  }
  maker.AddStep(std::move(step));
  made.program = std::move(maker.program);
  made.tolerance = 2e-5;
  return made;
}

void ExpectAsReference(const Case& of, int thread_count) {
  base::Result<std::unique_ptr<Device>> device = Device::Create(
      std::make_shared<threads::ThreadPool>(thread_count), base::Log(base::LogLevel::kWarning));
  ASSERT_TRUE(device.ok()) << device.status().Text();
  const reference::RandomStep step = MakeStep(of);
  const program::Step& only = step.program.steps[0];
  const auto selection = (*device)->Select({step.program, only});
  ASSERT_TRUE(selection.ok()) << selection.status().Text();
  ASSERT_EQ(selection->recipe->implementation(), "recurrent");
  reference::Device reference;
  const auto expected = reference::RunStep(reference, step);
  ASSERT_TRUE(expected.ok()) << expected.status().Text();
  // A second run finds what the first left.
  for (int run = 0; run < 2; ++run) {
    const auto actual = reference::RunStep(**device, step);
    ASSERT_TRUE(actual.ok()) << actual.status().Text();
    const auto difference = reference::FindDifference(step, *expected, *actual);
    EXPECT_FALSE(difference.has_value()) << *difference;
  }
}

TEST(RecurrenceTest, ThreadsShareDirectionsAndHiddenUnits) {
  for (const int thread_count : {1, 2, 3, 4}) {
    for (const int64_t directions : {1, 2}) {
      for (const Kind kind : {Kind::kRnn, Kind::kGru, Kind::kLstm}) {
        SCOPED_TRACE(std::to_string(thread_count) + " threads, kind " +
                     std::to_string(static_cast<int>(kind)));
        ExpectAsReference({.kind = kind, .directions = directions}, thread_count);
      }
      ExpectAsReference({.kind = Kind::kGru, .directions = directions, .resets_linear = true},
                        thread_count);
    }
  }
}

TEST(RecurrenceTest, RowsEndWhereTheirSequencesDo) {
  for (const Kind kind : {Kind::kGru, Kind::kLstm}) {
    for (const int64_t batch : {1, 8, 19}) {
      ExpectAsReference({.kind = kind, .batch = batch, .has_lengths = true}, 2);
    }
  }
}

TEST(RecurrenceTest, WeightsMayBeComputed) {
  ExpectAsReference({.kind = Kind::kGru, .has_constant_weights = false}, 2);
  ExpectAsReference({.kind = Kind::kLstm, .hidden = 7, .has_constant_weights = false}, 1);
}

}  // namespace
}  // namespace onnxifi::cpu
