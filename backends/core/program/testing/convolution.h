// SPDX-License-Identifier: Apache-2.0
//
// Convolution: for tests: a program that is one convolution with all that may hang on it.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_TESTING_CONVOLUTION_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_TESTING_CONVOLUTION_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "backends/core/program/testing/program_maker.h"

namespace onnxifi::program::testing {

struct Convolution {
  int64_t images = 2, in_channels = 3, out_channels = 5;
  int64_t height = 8, width = 12;  // of the result
  int64_t pad_above = 1, pad_left = 1, pad_below = 1, pad_right = 1;
  int64_t kernel = 3, stride = 1;
  bool has_constant_kernels = true;
};

// Relu of the convolution, with a bias per channel, an addend, and a coordinate; its result lies in
// the middle of a tensor with more channels.
inline void MakeConvolution(const Convolution& of, ProgramMaker& maker) {
  std::mt19937 random(3);
  const int64_t reach = of.kernel - 1;
  const int64_t in_height = (of.height - 1) * of.stride + 1 + reach - of.pad_above - of.pad_below;
  const int64_t in_width = (of.width - 1) * of.stride + 1 + reach - of.pad_left - of.pad_right;
  const Operand image = maker.Input({of.images, of.in_channels, in_height, in_width});
  std::vector<float> weights(
      static_cast<size_t>(of.out_channels * of.in_channels * of.kernel * of.kernel));
  for (float& weight : weights) weight = static_cast<float>(random() % 33) / 16 - 1;
  const tensor::Extents kernel_extents = {of.out_channels, of.in_channels, of.kernel, of.kernel};
  const Operand kernels = of.has_constant_kernels
                              ? maker.Constant(tensor::Tensor::FromValues<float>(
                                    ElementType::kFloat32, kernel_extents, weights))
                              : maker.Input({kernel_extents.begin(), kernel_extents.end()});
  const Operand bias = maker.Input({of.out_channels, 1, 1});
  const Shape shape = {of.images, of.out_channels, of.height, of.width};
  const Operand addend = maker.Input(shape);
  const int64_t channels = of.out_channels + 3;
  const Operand whole = maker.Temporary({of.images, channels, of.height, of.width});
  ExprPool& pool = maker.program.exprs;
  Contract contract;
  contract.form = Contract::Form::kConv;
  contract.inner = {of.in_channels, of.kernel, of.kernel};
  contract.a_spatial = {in_height, in_width};
  contract.strides = {of.stride, of.stride};
  contract.dilations = {1, 1};
  contract.pads_begin = {of.pad_above, of.pad_left};
  contract.a_prologue = Load(pool, ElementType::kFloat32, 0).id();
  contract.b_prologue = Load(pool, ElementType::kFloat32, 1).id();
  const Expr sum = Accumulator(pool, ElementType::kFloat32) + Load(pool, ElementType::kFloat32, 2) +
                   Load(pool, ElementType::kFloat32, 3) +
                   Cast(Coordinate(pool, 3), ElementType::kFloat32);
  contract.roots = {Maximum(sum, Like(sum, 0)).id()};
  Step step;
  step.domain = shape;
  step.reads = {image.view, kernels.view, BroadcastTo(bias, shape), addend.view};
  View part = whole.view;
  part.offset = of.height * of.width * 2;
  step.writes = {part};
  step.body = std::move(contract);
  // What no convolution writes.
  maker.MapTo(whole, {}, [](ExprPool& of_map, const std::vector<Expr>&) {
    return Constant(of_map, ElementType::kFloat32, -7);
  });
  maker.AddStep(std::move(step));
  maker.Output(whole);
}

}  // namespace onnxifi::program::testing

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_TESTING_CONVOLUTION_H_
