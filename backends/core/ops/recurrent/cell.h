// SPDX-License-Identifier: Apache-2.0
//
// Cell: what a recurrent operator computes at one time step, as a graph of ONNX operators. The
// lowering of LSTM, GRU and RNN makes it the body of a scan over time.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_RECURRENT_CELL_H_
#define ONNXIFI_BACKENDS_CORE_OPS_RECURRENT_CELL_H_

#include <string>
#include <vector>

#include "backends/core/graph/graph.h"
#include "backends/core/tensor/element_type.h"

namespace onnxifi::ops {

struct Activation {
  std::string function;  // ONNX's name
  float alpha = 0;
  float beta = 0;
};

struct Cell {
  enum class Kind : uint8_t { kRnn, kGru, kLstm };
  Kind kind = Kind::kRnn;
  tensor::ElementType type = tensor::ElementType::kFloat32;
  int64_t hidden_size = 0;
  std::vector<Activation> activations;  // f; f, g; f, g, h
  float clip = 0;                       // 0: none
  bool has_lengths = false;
  bool has_peepholes = false;       // LSTM
  bool couples_gates = false;       // LSTM's input_forget
  bool resets_linear = false;       // GRU's linear_before_reset
  bool has_recurrent_bias = false;  // GRU: of the hidden gate, where resets_linear

  int gate_count() const { return kind == Kind::kRnn ? 1 : kind == Kind::kGru ? 3 : 4; }
  int state_count() const { return kind == Kind::kLstm ? 2 : 1; }
};

// Inputs, in order, where B is the batch and H the hidden size:
//   carried: hidden state [B, H]; LSTM: cell state [B, H]
//   of the time step: projected input [B, gates * H]; with lengths: its position, int32 []
//   of all steps: recurrent weights [gates * H, H] (GRU without resets_linear: [2 * H, H], [H, H]);
//     with lengths: these, int32 [B, 1]; with peepholes: of the gates i, o, f, each [H];
//     with has_recurrent_bias: [H]
// Outputs: the states, then the hidden state as an element of the output sequence.
graph::Graph MakeCell(const Cell& cell);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_RECURRENT_CELL_H_
