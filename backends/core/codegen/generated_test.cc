// SPDX-License-Identifier: Apache-2.0
//
// Generated kernels of items that compute runs of neighbours, compared with the reference around
// the ends of runs and of the parts that reductions are split into.

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/codegen/testing/step_fixture.h"

namespace onnxifi::codegen {
namespace {

using program::Dim;
using program::Expr;
using program::ExprPool;
using program::Shape;
using program::View;
using reference::RandomStep;
using tensor::ElementType;
using tensor::Extents;

class GeneratedTest : public StepTest {};

TEST_F(GeneratedTest, MapsAreRightAroundTheEndOfARun) {
  for (const int64_t columns : {1, 63, 64, 65, 200}) {
    StepMaker make(static_cast<uint32_t>(columns));
    View transposed = make.Buffer({columns, 3});
    std::swap(transposed.strides[0], transposed.strides[1]);
    View row = make.Buffer({columns}, ElementType::kFloat16);
    row.strides.insert(row.strides.begin(), Dim(0));
    const Expr sum =
        make.Read(transposed) * make.Read(make.Buffer({3, columns})) + Cast(make.Read(row), kFloat);
    const Expr position = Cast(Coordinate(make.pool(), 1), kFloat);
    make.step.domain = {3, columns};
    make.step.writes = {make.Buffer({3, columns})};
    make.step.body = program::Map{{Maximum(sum, position).id()}};
    make.FinishStep(0);
    ExpectRight(make.made, "generated");
  }
}

program::Reduction::State Maximum(ExprPool& pool, Expr element) {
  const Expr state = State(pool, kFloat, 0);
  return {kFloat, Like(element, -std::numeric_limits<double>::infinity()).id(),
          Maximum(state, element).id(), Maximum(state, Other(pool, kFloat, 0)).id()};
}
program::Reduction::State Sum(ExprPool& pool, Expr element) {
  const Expr state = State(pool, kFloat, 0);
  return {kFloat, Like(element, 0).id(), (state + element).id(),
          (state + Other(pool, kFloat, 0)).id()};
}

RandomStep MakeSoftmax(const Extents& extents, int axes, uint32_t seed) {
  StepMaker make(seed);
  ExprPool& pool = make.pool();
  program::Row row;
  row.axes = axes;
  const Expr x = make.Read(make.Buffer(extents));
  row.passes.push_back({{{Maximum(pool, x)}}, {State(pool, kFloat, 0).id()}});
  const Expr power = Unary(program::ExprOp::kExp, x - RowResult(pool, kFloat, 0, 0));
  row.passes.push_back({{{Sum(pool, power)}}, {State(pool, kFloat, 0).id()}});
  row.roots = {(power / RowResult(pool, kFloat, 1, 0)).id()};
  make.step.domain = Shape(extents.begin(), extents.end());
  make.step.writes = {make.Buffer(extents)};
  make.step.body = std::move(row);
  make.FinishStep(1e-6);
  return std::move(make.made);
}

// Passes of a row have states of their own, and each part begins anew.
TEST_F(GeneratedTest, RowsOfSeveralStagesAreRightAroundTheEndsOfTheirParts) {
  for (const int64_t columns : {1, 15, 63, 64, 65, 79, 80, 81, 1000}) {
    SCOPED_TRACE(columns);
    ExpectRight(MakeSoftmax({5, columns}, 1, 7), "generated");
  }
  // Two axes that are not one: the inner one is shorter than the parts.
  ExpectRight(MakeSoftmax({2, 30, 3}, 2, 8), "generated");
  RandomStep step = MakeSoftmax({3, 100}, 1, 9);
  auto* x = reinterpret_cast<float*>(step.buffers[0].mutable_data());
  x[17] = std::numeric_limits<float>::quiet_NaN();
  x[150] = -std::numeric_limits<float>::infinity();
  ExpectRight(step, "generated");
}

TEST_F(GeneratedTest, ReductionsOverSlicesAreRight) {
  for (const Extents& extents : {Extents{3, 9, 11}, {2, 70, 1}, {4, 5, 16}, {1, 40, 33}}) {
    StepMaker make(11);
    Extents buffer = extents;
    buffer[2] += 2;
    View slice = make.Buffer(buffer);
    slice.offset = 1;
    program::Reduce reduce;
    reduce.axes = 2;
    reduce.reduction.states = {Sum(make.pool(), make.Read(slice))};
    reduce.roots = {State(make.pool(), kFloat, 0).id()};
    make.step.domain = Shape(extents.begin(), extents.end());
    make.step.writes = {make.Buffer({extents[0]})};
    make.step.body = std::move(reduce);
    make.FinishStep(1e-3);
    ExpectRight(make.made, "generated");
  }
}

// The parts of a reduction of bytes are as many as fill a register, which compilers may keep them
// in.
TEST_F(GeneratedTest, ReductionsOfBytesAreRightAroundTheEndsOfTheirParts) {
  for (const ElementType type : {ElementType::kUint8, ElementType::kInt8, ElementType::kBool}) {
    for (const int64_t columns : {63, 64, 79, 80, 81, 139}) {
      SCOPED_TRACE(testing::Message() << columns << " of " << tensor::Name(type));
      StepMaker make(static_cast<uint32_t>(columns));
      ExprPool& pool = make.pool();
      const Expr x = make.Read(make.Buffer({3, columns}, type));
      const Expr state = State(pool, type, 0);
      const Expr other = Other(pool, type, 0);
      const auto join = [&](Expr a, Expr b) {
        return tensor::IsBool(type) ? Binary(program::ExprOp::kOr, a, b) : Maximum(a, b);
      };
      program::Reduce reduce;
      reduce.axes = 1;
      reduce.reduction.states = {
          {type, Constant(pool, type, 0).id(), join(state, x).id(), join(state, other).id()}};
      reduce.roots = {state.id()};
      make.step.domain = {3, columns};
      make.step.writes = {make.Buffer({3}, type)};
      make.step.body = std::move(reduce);
      make.FinishStep(0);
      ExpectRight(make.made, "generated");
    }
  }
}

struct WindowAxis {
  int64_t extent, kernel, stride = 1, dilation = 1, before = 0, after = 0;
  bool is_rounded_up = false;

  int64_t out() const {
    const int64_t span = extent + before + after - dilation * (kernel - 1) - 1;
    return (is_rounded_up ? (span + stride - 1) / stride : span / stride) + 1;
  }
};

struct WindowKind {
  program::Window::Kind kind;
  bool count_include_pad = false;
  bool has_indices = false;
  bool column_major = false;
};

RandomStep MakeWindow(const std::vector<WindowAxis>& axes, const WindowKind& kind, ElementType type,
                      uint32_t seed) {
  StepMaker make(seed);
  program::Window window;
  window.kind = kind.kind;
  window.count_include_pad = kind.count_include_pad;
  window.column_major = kind.column_major;
  window.p = 3;
  window.accumulator = type;
  Extents in = {2, 3};
  Extents out = {2, 3};
  for (const WindowAxis& axis : axes) {
    in.push_back(axis.extent);
    out.push_back(axis.out());
    window.in_spatial.push_back(axis.extent);
    window.kernel.push_back(axis.kernel);
    window.strides.push_back(axis.stride);
    window.dilations.push_back(axis.dilation);
    window.pads_begin.push_back(axis.before);
    window.pads_end.push_back(axis.after);
  }
  if (kind.kind == program::Window::Kind::kLrn) {
    window.kernel = {2};
    window.alpha = 0.25;
    window.beta = 0.75;
    window.bias = 2;
    out = in;
  }
  make.step.reads = {make.Buffer(in, type)};
  window.roots = {Accumulator(make.pool(), type).id()};
  make.step.domain = Shape(out.begin(), out.end());
  make.step.writes = {make.Buffer(out, type)};
  if (kind.has_indices) {
    make.step.writes.push_back(make.Buffer(out, ElementType::kInt64));
    window.roots.push_back(window.roots[0]);
  }
  make.step.body = std::move(window);
  make.FinishStep(1e-4);
  return std::move(make.made);
}

TEST_F(GeneratedTest, WindowsAreRightWithEveryAttribute) {
  using Kind = program::Window::Kind;
  const std::vector<std::vector<WindowAxis>> shapes = {
      {{5, 3, 2, 1, 1, 1}, {9, 3, 2, 1, 0, 1}},
      {{4, 2}, {67, 3, 1, 2, 3, 1}},
      {{6, 3, 2, 1, 0, 0, true}, {140, 3, 2, 1, 0, 0, true}},  // rounded up beyond the end
      {{130, 4, 1, 1, 2, 2}},
      {{3, 2, 1, 2}, {4, 1, 3}, {5, 2, 2, 1, 1, 1}},
      {{7, 7}, {5, 5}},
  };
  uint32_t seed = 0;
  for (const std::vector<WindowAxis>& axes : shapes) {
    for (const WindowKind& kind : {WindowKind{Kind::kMax},
                                   {Kind::kMax, false, true},
                                   {Kind::kMax, false, true, true},
                                   {Kind::kAverage},
                                   {Kind::kAverage, true},
                                   {Kind::kLp},
                                   {Kind::kLrn}}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      RandomStep step = MakeWindow(axes, kind, kFloat, seed);
      if (seed % 3 == 0) {
        auto* x = reinterpret_cast<float*>(step.buffers[0].mutable_data());
        x[5] = std::numeric_limits<float>::quiet_NaN();
        x[step.buffers[0].element_count() - 2] = -std::numeric_limits<float>::infinity();
      }
      ExpectRight(step, "generated");
      ++seed;
    }
    ExpectRight(MakeWindow(axes, {Kind::kMax, false, true}, ElementType::kInt8, seed), "generated");
  }
}

}  // namespace
}  // namespace onnxifi::codegen
