// SPDX-License-Identifier: Apache-2.0
//
// The kernels of a recurrence on the tested device, compared with the reference: hidden units
// around the items of a group, every kind and direction, sequences that end early, more time steps
// than a driver goes through in one launch.

#include <string>
#include <utility>

#include "backends/core/codegen/testing/step_fixture.h"
#include "backends/core/program/recurrent_extents.h"
#include "backends/core/program/verify.h"

namespace onnxifi::codegen {
namespace {

using program::CellFunction;
using program::Recurrent;
using program::View;
using reference::RandomStep;
using tensor::ElementType;
using tensor::Extents;
using Kind = Recurrent::Kind;

class RecurrentTest : public StepTest {
 protected:
  void SetUp() override;
};

struct Problem {
  Kind kind = Kind::kLstm;
  int64_t directions = 2, time = 3, batch = 2, hidden = 5;
  ElementType type = kFloat;
  bool is_reverse = false;
  bool resets_linear = false;
  bool couples_gates = false;
  bool has_all = true;                // every optional read
  bool differs_by_direction = false;  // in its activations
  float clip = 0;
};

RandomStep Make(const Problem& p, uint32_t seed) {
  StepMaker make(seed);
  Recurrent recurrent;
  recurrent.kind = p.kind;
  recurrent.type = p.type;
  recurrent.is_reverse = p.is_reverse;
  recurrent.resets_linear = p.resets_linear;
  recurrent.couples_gates = p.couples_gates;
  recurrent.clip = p.clip;
  for (int64_t direction = 0; direction < p.directions; ++direction) {
    for (int k = 0; k < recurrent.functions(); ++k) {
      const bool is_gate = k == 0 && p.kind != Kind::kRnn;
      const CellFunction plain = is_gate ? CellFunction::kSigmoid : CellFunction::kTanh;
      const CellFunction other = is_gate ? CellFunction::kHardSigmoid : CellFunction::kScaledTanh;
      const bool is_other = p.differs_by_direction && direction == 1;
      recurrent.activations.push_back({is_other ? other : plain, 0.5F, 0.25F});
    }
  }
  make.step.domain = {p.directions, p.time, p.batch, p.hidden};
  make.step.body = recurrent;
  const auto extents_of = [](const program::Shape& shape) {
    Extents extents;
    for (const program::Dim& dim : shape) extents.push_back(dim.constant());
    return extents;
  };
  for (int read = 0; read < Recurrent::kReads; ++read) {
    View& view = make.step.reads.emplace_back();
    const bool is_needed = read == Recurrent::kProjected || read == Recurrent::kWeights;
    const bool is_of_lstm = read == Recurrent::kCell || read == Recurrent::kPeepholes;
    if (!is_needed && !p.has_all) continue;
    if (is_of_lstm && p.kind != Kind::kLstm) continue;
    if (read == Recurrent::kHiddenBias && !p.resets_linear) continue;
    const Extents extents = extents_of(program::RecurrentReadShape(make.step, read));
    view = make.Buffer(extents, read == Recurrent::kLengths ? ElementType::kInt32 : p.type);
    if (read != Recurrent::kWeights) continue;
    // So that sums stay where gates are not all closed or open.
    tensor::Tensor& weights = make.made.buffers.back();
    for (int64_t k = 0; k < weights.element_count(); ++k) {
      const double small = weights.AsDouble(k) / static_cast<double>(p.hidden);
      tensor::StoreScalar(p.type, weights.mutable_data(), k, tensor::Scalar{.f = small});
    }
  }
  for (int write = 0; write < Recurrent::kWrites; ++write) {
    View& view = make.step.writes.emplace_back();
    if (write == Recurrent::kLastCell && p.kind != Kind::kLstm) continue;
    view = make.Buffer(extents_of(program::RecurrentWriteShape(make.step, write)), p.type);
  }
  make.FinishStep(1e-4);
  const base::Status verified = Verify(make.made.program);
  EXPECT_TRUE(verified.ok()) << verified.Text();
  return std::move(make.made);
}

// Where groups are a processor's, no recurrence runs by these kernels.
void RecurrentTest::SetUp() {
  StepTest::SetUp();
  if (IsSkipped()) return;
  const RandomStep step = Make({}, 0);
  if (!device_->PrefersRecurrent({step.program, step.program.steps[0]})) {
    GTEST_SKIP() << "The device prefers a scan over time.";
  }
}

TEST_F(RecurrentTest, IsRightAroundTheItemsOfAGroup) {
  uint32_t seed = 0;
  for (const int64_t hidden : {1, 127, 128, 129, 300}) {
    for (const Kind kind : {Kind::kRnn, Kind::kGru, Kind::kLstm}) {
      SCOPED_TRACE(testing::Message()
                   << hidden << " hidden units, kind " << static_cast<int>(kind));
      const Problem problem{.kind = kind,
                            .directions = 1 + seed % 2,
                            .hidden = hidden,
                            .is_reverse = seed % 3 == 0,
                            .resets_linear = kind == Kind::kGru && seed % 2 == 0,
                            .couples_gates = kind == Kind::kLstm && seed % 2 == 0};
      ExpectRight(Make(problem, seed++), "generated");
    }
  }
}

TEST_F(RecurrentTest, DoesBothOrdersOfAReset) {
  for (const bool resets_linear : {false, true}) {
    ExpectRight(Make({.kind = Kind::kGru, .resets_linear = resets_linear}, 1), "generated");
  }
}

TEST_F(RecurrentTest, ActivationsMayDifferByDirection) {
  ExpectRight(Make({.kind = Kind::kLstm, .differs_by_direction = true, .clip = 0.75F}, 2),
              "generated");
}

TEST_F(RecurrentTest, NeedsNothingOptional) {
  ExpectRight(Make({.kind = Kind::kLstm, .has_all = false}, 3), "generated");
  ExpectRight(Make({.kind = Kind::kGru, .resets_linear = true, .has_all = false}, 4), "generated");
}

TEST_F(RecurrentTest, WithoutTimeStepsOrRowsStatesAreHandedOn) {
  ExpectRight(Make({.time = 0}, 5), "generated");
  ExpectRight(Make({.batch = 0}, 6), "generated");
}

// Of more rounds than a driver of 65,535 goes through.
TEST_F(RecurrentTest, GoesOnWhereALaunchEnds) {
  ExpectRight(Make({.kind = Kind::kLstm, .time = 300, .batch = 1, .hidden = 130}, 7), "generated");
}

TEST_F(RecurrentTest, ComputesInFloat64WhereTheDeviceDoes) {
  const RandomStep step = Make({.kind = Kind::kLstm, .type = ElementType::kFloat64}, 8);
  if (!has_float64_) GTEST_SKIP() << "The device has no float64.";
  ExpectRight(step, "generated");
}

TEST_F(RecurrentTest, TooManyStatesAreRefused) {
  const RandomStep step = Make({.kind = Kind::kRnn, .time = 1, .batch = 1, .hidden = 1025}, 9);
  const device::Facts facts{step.program, step.program.steps[0]};
  const auto selection = device_->Select(facts);
  ASSERT_FALSE(selection.ok());
  EXPECT_EQ(selection.status().code(), base::Code::kUnsupportedShape);
  EXPECT_EQ(selection.status().sentence(), "The hidden size of 1025 exceeds the limit of 1024.");
  EXPECT_FALSE(device_->PrefersRecurrent(facts));
}

}  // namespace
}  // namespace onnxifi::codegen
