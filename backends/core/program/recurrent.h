// SPDX-License-Identifier: Apache-2.0
//
// Recurrent: the step family of LSTM, GRU and RNN: what a recurrent operator does once the inputs
// of all its time steps are projected. A part of step.h.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_RECURRENT_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_RECURRENT_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "backends/core/tensor/element_type.h"

namespace onnxifi::program {

// ONNX's activations, in the order of its names. `alpha` and `beta` are of no meaning where a
// function has none.
enum class CellFunction : uint8_t {
  kAffine,
  kElu,
  kHardSigmoid,
  kLeakyRelu,
  kRelu,
  kScaledTanh,
  kSigmoid,
  kSoftplus,
  kSoftsign,
  kTanh,
  kThresholdedRelu,
};
// ONNX's name.
std::string_view Name(CellFunction function);
struct Activation {
  CellFunction function = CellFunction::kTanh;
  float alpha = 0;
  float beta = 0;

  bool operator==(const Activation&) const = default;
};

// Domain: [directions, time, batch, H], of which H is a number, and directions is 1 or 2. With
// row . matrix for products, f, g, h for activations of the direction, x for the projected input of
// the gate named, h and c for the states before the time step, h' and c' for those after it:
//   kRnn    h' = f(x + h . R)
//   kGru    z = f(x + h . Rz); r = f(x + h . Rr); h' = (1 - z) * n + z * h, where
//           n = g(x + (r * h) . Rn), or with resets_linear g(x + r * (h . Rn + bias))
//   kLstm   i = f(x + h . Ri + Pi * c); o = f(x + h . Ro + Po * c')
//           f = f(x + h . Rf + Pf * c), or with couples_gates 1 - i
//           c' = f * c + i * g(x + h . Rc); h' = o * h(c')
// An activation gets its argument within [-clip, clip]. A row whose sequence is shorter has the
// states unchanged and an element of zeros at each time step from its length on. Arithmetic is in
// `type`, or in more.
struct Recurrent {
  enum class Kind : uint8_t { kRnn, kGru, kLstm };
  // The reads by position. An optional one that is missing has no buffer. Weights, peepholes and
  // projected inputs have ONNX's order of gates: z, r, n; i, o, f, c; peepholes i, o, f.
  enum Read {
    kProjected,   // [directions, time, batch, gates * H]
    kWeights,     // [directions, gates * H, H]
    kHidden,      // [directions, batch, H], optional: zeros
    kCell,        // the same; kLstm
    kLengths,     // int32 [batch], optional: all of the time steps
    kPeepholes,   // [directions, 3 * H], optional; kLstm
    kHiddenBias,  // [directions, H], optional; kGru with resets_linear
    kReads,
  };
  // The writes likewise; each is optional.
  enum Write {
    kSequence,    // the hidden state of every time step: [directions, time, batch, H]
    kLastHidden,  // [directions, batch, H]
    kLastCell,    // the same; kLstm
    kWrites,
  };

  Kind kind = Kind::kRnn;
  tensor::ElementType type = tensor::ElementType::kFloat32;  // or float64; of all but the lengths
  // f; f, g; or f, g, h, of the first direction, then of the second.
  std::vector<Activation> activations;
  float clip = 0;  // 0: none
  // The first direction goes back in time. The second always does.
  bool is_reverse = false;
  bool couples_gates = false;  // kLstm: input_forget
  bool resets_linear = false;  // kGru: linear_before_reset

  int gates() const { return kind == Kind::kRnn ? 1 : kind == Kind::kGru ? 3 : 4; }
  // Per direction.
  int functions() const { return kind == Kind::kRnn ? 1 : kind == Kind::kGru ? 2 : 3; }
  bool GoesBack(int64_t direction) const { return is_reverse || direction == 1; }
  // Whether a product waits for the result of another at each time step.
  bool HasTwoProducts() const { return kind == Kind::kGru && !resets_linear; }
};

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_RECURRENT_H_
