// SPDX-License-Identifier: Apache-2.0
//
// MakeRecurrent: every kind, direction and activation, with and without what is optional, of odd
// extents around the vectors that kernels take at a time.

#include <algorithm>
#include <utility>

#include "backends/core/reference/random_step/family.h"
#include "backends/core/tensor/convert.h"

namespace onnxifi::reference {

using program::Activation;
using program::CellFunction;
using program::Recurrent;
using tensor::ElementType;
using tensor::Extents;

namespace {

// Those that leave states bounded are drawn more often.
Activation MakeActivation(StepMaker& make, bool is_gate) {
  if (make.Chance(60)) return {is_gate ? CellFunction::kSigmoid : CellFunction::kTanh, 0, 0};
  Activation activation;
  activation.function = static_cast<CellFunction>(make.Roll(0, 10));
  activation.alpha = static_cast<float>(make.Uniform(0.2, 0.6));
  activation.beta = static_cast<float>(make.Uniform(0.2, 0.6));
  return activation;
}

bool IsBounded(const Activation& activation) {
  switch (activation.function) {
    case CellFunction::kSigmoid:
    case CellFunction::kTanh:
    case CellFunction::kHardSigmoid:
    case CellFunction::kScaledTanh:
    case CellFunction::kSoftsign:
      return true;
    default:
      return false;
  }
}

// A dense buffer of its own.
program::View PlainView(StepMaker& make, ElementType type, const Extents& extents, bool is_input) {
  const program::BufferId buffer = make.AddBuffer(type, extents, is_input, Data::kModerate);
  return program::DenseView(buffer, type, program::Shape(extents.begin(), extents.end()));
}

}  // namespace

void MakeRecurrent(StepMaker& make) {
  Recurrent recurrent;
  recurrent.kind =
      make.Pick({Recurrent::Kind::kRnn, Recurrent::Kind::kGru, Recurrent::Kind::kLstm});
  recurrent.type = make.Chance(85) ? kFloat32 : kFloat64;
  recurrent.is_reverse = make.Chance(30);
  const bool is_lstm = recurrent.kind == Recurrent::Kind::kLstm;
  const bool is_gru = recurrent.kind == Recurrent::Kind::kGru;
  recurrent.couples_gates = is_lstm && make.Chance(30);
  recurrent.resets_linear = is_gru && make.Chance(50);
  if (make.Chance(30)) recurrent.clip = static_cast<float>(make.Uniform(0.2, 1.5));
  const int64_t directions = make.Roll(1, 2);
  const int64_t hidden = make.Chance(25)   ? make.Roll(1, 7)
                         : make.Chance(70) ? make.Roll(8, 40)
                                           : make.Roll(41, 90);
  int64_t time = 0, batch = 0;
  {
    const StepMaker::Numbers numbers(make);
    time = make.Chance(3) ? 0 : make.Roll(1, 9);
    batch = make.Chance(3) ? 0 : make.Chance(40) ? 1 : make.Roll(2, 17);
  }
  for (int64_t direction = 0; direction < directions; ++direction) {
    for (int function = 0; function < recurrent.functions(); ++function) {
      const bool is_gate = function == 0 && recurrent.kind != Recurrent::Kind::kRnn;
      recurrent.activations.push_back(MakeActivation(make, is_gate));
    }
  }
  // Gates above 1 have states grow from time step to time step, and differences with them.
  if (recurrent.clip == 0 && !std::ranges::all_of(recurrent.activations, IsBounded)) {
    recurrent.clip = static_cast<float>(make.Uniform(0.2, 1.0));
  }
  make.step.domain = {program::Dim(directions), make.MakeZeroOr(time), make.MakeZeroOr(batch),
                      program::Dim(hidden)};
  const int64_t gates = recurrent.gates() * hidden;
  const ElementType type = recurrent.type;
  // As kernels get the largest tensors.
  const bool is_plain = make.Chance(65);
  // What is scaled keeps sums within about 1.
  const auto read = [&](Recurrent::Read position, bool is_there, ElementType of,
                        const Extents& extents, double scale) {
    make.step.reads.resize(static_cast<size_t>(position));
    if (!is_there) {
      make.step.reads.emplace_back();
      return;
    }
    const Data data = of == ElementType::kInt32 ? Data::kSmall : Data::kModerate;
    if (position == Recurrent::kProjected && is_plain) {
      make.step.reads.push_back(PlainView(make, of, extents, /*is_input=*/true));
    } else {
      make.AddRead(of, extents, data);
    }
    if (scale == 1) return;
    make.step.reads.back().fill.f *= scale;
    tensor::Tensor& buffer = make.buffers.back();
    for (int64_t k = 0; k < buffer.element_count(); ++k) {
      tensor::StoreScalar(of, buffer.mutable_data(), k,
                          tensor::Scalar{.f = scale * buffer.AsDouble(k)});
    }
  };
  const double small = 0.5 / static_cast<double>(hidden);
  read(Recurrent::kProjected, true, type, {directions, time, batch, gates}, 1);
  read(Recurrent::kWeights, true, type, {directions, gates, hidden}, small);
  read(Recurrent::kHidden, make.Chance(50), type, {directions, batch, hidden}, 0.5);
  read(Recurrent::kCell, is_lstm && make.Chance(50), type, {directions, batch, hidden}, 0.5);
  read(Recurrent::kLengths, make.Chance(40), ElementType::kInt32, {batch}, 1);
  read(Recurrent::kPeepholes, is_lstm && make.Chance(40), type, {directions, 3 * hidden}, 0.25);
  read(Recurrent::kHiddenBias, recurrent.resets_linear && make.Chance(60), type,
       {directions, hidden}, 1);
  const auto write = [&](bool is_there, const Extents& extents) {
    if (is_there && is_plain && extents.size() == 4) {
      make.step.writes.push_back(PlainView(make, type, extents, /*is_input=*/false));
    } else if (is_there) {
      make.AddWrite(type, extents);
    } else {
      make.step.writes.emplace_back();
    }
  };
  write(make.Chance(85), {directions, time, batch, hidden});
  write(make.Chance(70), {directions, batch, hidden});
  write(is_lstm && make.Chance(70), {directions, batch, hidden});
  // Roundings of each time step's sums, carried on by the later ones. States grow where functions
  // are not bounded.
  make.roundings = static_cast<double>(std::max<int64_t>(1, time));
  const double unit = type == kFloat32 ? 0x1p-24 : 0x1p-53;
  make.tolerance = unit * 64 * static_cast<double>(hidden + 16);
  make.step.body = std::move(recurrent);
}

}  // namespace onnxifi::reference
