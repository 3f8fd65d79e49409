// SPDX-License-Identifier: Apache-2.0
//
// Cell: part of one time step of one direction, for one thread: a product of hidden states and
// packed weights whose sums go through the gates' functions while they are in registers or in the
// L1 cache.

#ifndef ONNXIFI_BACKENDS_CPU_RECURRENT_CELL_H_
#define ONNXIFI_BACKENDS_CPU_RECURRENT_CELL_H_

#include <cstdint>
#include <span>

#include "backends/core/program/recurrent.h"

namespace onnxifi::recurrent {

// A block is as many hidden units as a vector has lanes; the last one may have fewer.
int64_t BlockUnits();

// Of one product: the gates that share it, and which of the operator's gates they are.
struct ProductGates {
  int first = 0;
  int count = 0;
};

// The products of a time step, one or two (program::Recurrent::HasTwoProducts), one behind the
// other in the packed weights.
std::span<const ProductGates> ProductsOf(const program::Recurrent& recurrent);

// What is the same in all time steps of one direction. States have rows of `stride` floats, whole
// blocks: what is behind the last hidden unit is never added to anything.
struct Direction {
  const program::Recurrent* recurrent;
  const program::Activation* functions;
  bool has_defaults;  // logistic gates and tanh, without a clip
  int64_t hidden;     // units
  int64_t stride;
  const float* weights;    // of each product, of each block: [hidden][gates][units of a block]
  const float* peepholes;  // three rows of `stride`; null: none
  const float* bias;       // of the hidden gate; null: none
  float* cell;             // kLstm: changed in place
  float* update;           // with two products, what the first leaves for the second: z
  float* scaled;           // and r * h
};

// The blocks [first_block, end_block) of some rows of the batch, in one time step.
struct Part {
  int64_t first_block, end_block;
  std::span<const int32_t> rows;
  // Of row 0 of the batch; the last axis of both is contiguous.
  const float* projected;
  int64_t projected_stride;
  float* sequence;  // null: not written
  int64_t sequence_stride;
  // States before and after the time step.
  const float* hidden_in;
  float* hidden_out;
};

// Does product number `product` and what follows it. All blocks of the product before it are done.
void RunPart(const Direction& direction, const Part& part, int product);

}  // namespace onnxifi::recurrent

#endif  // ONNXIFI_BACKENDS_CPU_RECURRENT_CELL_H_
