// SPDX-License-Identifier: Apache-2.0
//
// FoldFactors: a Map that multiplies each output channel of a product by a constant, and perhaps
// adds one to it, leaves the constant to the weights, and only the summand to be added. In graphs
// of float32, ops/rewrite/affine_folding does the same before they are lowered. The weights of
// narrow floats would be rounded once more there, and are wide here.

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/passes.h"

namespace onnxifi::program {
namespace {

constexpr ElementType kReal = ElementType::kFloat32;

// Which axis of the domain counts output channels, and which of the weights.
struct ChannelAxes {
  size_t domain, weights;
};

std::optional<ChannelAxes> ChannelAxesOf(const Contract& contract) {
  if (contract.form == Contract::Form::kConv) return ChannelAxes{1, 0};
  const bool is_matrix = contract.form == Contract::Form::kMatMul && contract.n_axes == 1 &&
                         contract.batch_axes == 0 && contract.inner.size() == 1;
  if (!is_matrix) return std::nullopt;
  return ChannelAxes{static_cast<size_t>(contract.m_axes), 1};
}

// The extents of weights that are a constant of float32, all of it; nothing where they are not.
std::optional<Shape> ShapeOfWeights(const Program& program, const Step& product) {
  const Contract& contract = *product.As<Contract>();
  const View& view = product.reads[1];
  const ExprNode& prologue = program.exprs[contract.b_prologue];
  const bool is_plain = prologue.op == ExprOp::kLoad && prologue.operands.empty() &&
                        prologue.payload == 1 && view.type == kReal && view.guards.empty();
  if (!is_plain || program.buffers[view.buffer].kind != Buffer::Kind::kConstant ||
      std::ranges::find(view.strides, Dim(0)) != view.strides.end()) {
    return std::nullopt;
  }
  Shape shape(contract.inner.begin(), contract.inner.end());
  const ChannelAxes axes = *ChannelAxesOf(contract);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axes.weights),
               product.domain[axes.domain]);
  const bool is_whole =
      std::ranges::all_of(shape, [](const Dim& dim) { return dim.is_constant(); }) &&
      tensor::Product(shape) == tensor::Product(program.buffers[view.buffer].shape);
  return is_whole ? std::optional(shape) : std::nullopt;
}

// What a Map computes of a sum: sum * factor + summand, both of constants that differ between
// channels only. No expression: one, zero.
struct Affine {
  std::optional<Expr> factor, summand;
};

class AffineReader {
 public:
  AffineReader(Program& program, const Step& map, BufferId sums, size_t channel_axis)
      : program_(program), map_(map), sums_(sums), channel_axis_(channel_axis) {}

  std::optional<Affine> Read(ExprId id) {
    const ExprNode node = program_.exprs[id];
    if (IsSum(node)) return Affine{};
    if (node.operands.size() != 2) return std::nullopt;
    const bool is_right = IsPerChannel(node.operands[0]);
    if (is_right == IsPerChannel(node.operands[1])) return std::nullopt;
    const Expr other(&program_.exprs, node.operands[is_right ? 0 : 1]);
    std::optional<Affine> affine = Read(node.operands[is_right ? 1 : 0]);
    if (!affine) return std::nullopt;
    switch (node.op) {
      case ExprOp::kAdd:
        affine->summand = affine->summand ? *affine->summand + other : other;
        return affine;
      case ExprOp::kSub:
        if (is_right) {
          affine->factor = affine->factor ? -*affine->factor : Like(other, -1);
          affine->summand = affine->summand ? other - *affine->summand : other;
        } else {
          affine->summand = affine->summand ? *affine->summand - other : -other;
        }
        return affine;
      case ExprOp::kMul:
        affine->factor = affine->factor ? *affine->factor * other : other;
        if (affine->summand) affine->summand = *affine->summand * other;
        return affine;
      default:
        return std::nullopt;
    }
  }

 private:
  bool IsSum(const ExprNode& node) const {
    return node.op == ExprOp::kLoad && node.operands.empty() &&
           map_.reads[node.payload].buffer == sums_;
  }
  bool IsPerChannel(ExprId id) const {
    const ExprId roots[] = {id};
    return std::ranges::all_of(Reachable(program_.exprs, roots), [&](ExprId inner) {
      const ExprNode& node = program_.exprs[inner];
      if (node.op != ExprOp::kLoad) return !IsLeaf(node.op) || node.op == ExprOp::kConstant;
      const View& view = map_.reads[node.payload];
      if (!node.operands.empty() || !view.guards.empty() || !IsFiniteConstant(view.buffer)) {
        return false;
      }
      for (size_t axis = 0; axis < view.strides.size(); ++axis) {
        const bool is_still = view.strides[axis] == Dim(0) || map_.domain[axis] == Dim(1);
        if (axis != channel_axis_ && !is_still) return false;
      }
      return true;
    });
  }

  // A weight of zero times infinity is no number, where a sum times infinity may be one.
  bool IsFiniteConstant(BufferId id) const {
    const Buffer& buffer = program_.buffers[id];
    if (buffer.kind != Buffer::Kind::kConstant || buffer.type != kReal) return false;
    const tensor::Tensor& constant = program_.constants[static_cast<size_t>(buffer.index)];
    return std::ranges::all_of(constant.values<float>(),
                               [](float value) { return std::isfinite(value); });
  }

  Program& program_;
  const Step& map_;
  const BufferId sums_;
  const size_t channel_axis_;
};

class Folder {
 public:
  explicit Folder(Program& program) : program_(program), uses_(program) {}

  void Run() {
    std::vector<Step> steps;
    for (int number = 0; number < static_cast<int>(program_.steps.size()); ++number) {
      FoldBehind(number, steps);
      steps.push_back(std::move(program_.steps[number]));
    }
    program_.steps = std::move(steps);
  }

 private:
  // Changes the product at `number` and the Map behind it; what computes the new constants goes to
  // the end of `steps`.
  void FoldBehind(int number, std::vector<Step>& steps) {
    Step& product = program_.steps[number];
    Contract* contract = product.As<Contract>();
    if (contract == nullptr || contract->accumulator != kReal || contract->roots.size() != 1 ||
        program_.exprs[contract->roots[0]].op != ExprOp::kAccumulator) {
      return;
    }
    const std::optional<ChannelAxes> axes = ChannelAxesOf(*contract);
    if (!axes) return;
    const std::optional<Shape> weights_shape = ShapeOfWeights(program_, product);
    const View& sums = product.writes[0];
    if (!weights_shape || sums.type != kReal || uses_.IsOutput(sums.buffer) ||
        program_.buffers[sums.buffer].kind != Buffer::Kind::kTemporary ||
        uses_.OnlyWriter(sums.buffer) != number ||
        uses_.OnlyReader(product.reads[1].buffer) != number) {
      return;
    }
    const int reader = uses_.OnlyReader(sums.buffer);
    if (reader <= number) return;
    Step& map = program_.steps[reader];
    if (map.As<Map>() == nullptr || map.As<Map>()->roots.size() != 1 ||
        map.domain != product.domain || !std::ranges::all_of(map.reads, [&](const View& read) {
          return read.buffer != sums.buffer || SameOver(map.domain, read, sums);
        })) {
      return;
    }
    ExprId& root = map.As<Map>()->roots[0];
    AffineReader affine_reader(program_, map, sums.buffer, axes->domain);
    const std::optional<Affine> affine = affine_reader.Read(root);
    if (!affine || !affine->factor) return;
    product.reads[1] = Scaled(product, *weights_shape, *axes, map, *affine->factor, steps);
    const auto load_of_sums = static_cast<int>(
        std::ranges::find(map.reads, sums.buffer, &View::buffer) - map.reads.begin());
    Expr changed = Load(program_.exprs, kReal, load_of_sums);
    if (affine->summand) {
      const Shape channels = {map.domain[axes->domain]};
      Step summand = PerChannel(map, *affine->summand, channels, axes->domain, 0);
      View read = summand.writes[0];
      read.strides.assign(map.domain.size(), Dim(0));
      read.strides[axes->domain] = Dim(1);
      steps.push_back(std::move(summand));
      map.reads.push_back(std::move(read));
      changed = changed + Load(program_.exprs, kReal, static_cast<int>(map.reads.size()) - 1);
    }
    root = changed.id();
  }

  // A Map of `value`, an expression of `map` per channel, over `shape`, whose axis `axis` counts
  // the channels.
  Step PerChannel(const Step& map, Expr value, const Shape& shape, size_t channel_axis,
                  size_t axis) {
    Step step;
    step.domain = shape;
    step.node = map.node;
    std::unordered_map<uint64_t, uint64_t> new_read;
    std::unordered_map<ExprId, ExprId> done;
    const auto replace = [&](ExprId id) {
      ExprNode node = program_.exprs[id];
      if (node.op != ExprOp::kLoad) return kNoExpr;
      const auto [at, is_new] = new_read.try_emplace(node.payload, step.reads.size());
      if (is_new) {
        View view = map.reads[node.payload];
        const Dim stride = view.strides[channel_axis];
        view.strides.assign(shape.size(), Dim(0));
        view.strides[axis] = stride;
        step.reads.push_back(std::move(view));
      }
      node.payload = at->second;
      return program_.exprs.Add(std::move(node));
    };
    step.body = Map{{Rewrite(program_.exprs, value.id(), replace, done)}};
    const BufferId buffer = program_.AddBuffer({Buffer::Kind::kTemporary, kReal, shape});
    step.writes = {DenseView(buffer, kReal, shape)};
    return step;
  }

  // The weights times the factor, as a Map on constants makes them.
  View Scaled(const Step& product, const Shape& shape, const ChannelAxes& axes, const Step& map,
              Expr factor, std::vector<Step>& steps) {
    Step step = PerChannel(map, factor, shape, axes.domain, axes.weights);
    step.reads.push_back(product.reads[1]);
    ExprId& root = step.As<Map>()->roots[0];
    const Expr weights = Load(program_.exprs, kReal, static_cast<int>(step.reads.size()) - 1);
    root = (weights * Expr(&program_.exprs, root)).id();
    View scaled = step.writes[0];
    steps.push_back(std::move(step));
    return scaled;
  }

  Program& program_;
  const BufferUses uses_;
};

}  // namespace

void FoldFactors(Program& program) { Folder(program).Run(); }

}  // namespace onnxifi::program
