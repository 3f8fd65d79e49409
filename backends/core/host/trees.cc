// SPDX-License-Identifier: Apache-2.0
//
// Tree ensembles: every row goes down every tree. Sums are float64 and rounded once.

#include "backends/core/host/trees.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "backends/core/tensor/convert.h"

namespace onnxifi::host {
namespace {

using base::Code;
using base::Status;
using program::RunTrees;
using tensor::ElementType;
using tensor::Scalar;
using tensor::Tensor;

bool TakesTrue(const RunTrees::Node& node, double value) {
  if (node.missing_is_true && std::isnan(value)) return true;
  switch (node.mode) {
    case RunTrees::Mode::kLessEqual:
      return value <= node.split;
    case RunTrees::Mode::kLess:
      return value < node.split;
    case RunTrees::Mode::kGreaterEqual:
      return value >= node.split;
    case RunTrees::Mode::kGreater:
      return value > node.split;
    case RunTrees::Mode::kEqual:
      return value == node.split;
    case RunTrees::Mode::kNotEqual:
      return value != node.split;
    case RunTrees::Mode::kMember:
      return std::find(node.members.begin(), node.members.end(), value) != node.members.end();
  }
  return false;
}

void Softmax(std::span<double> row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double& value : row) sum += value = std::exp(value - largest);
  for (double& value : row) value /= sum;
}

// Softmax of what is not zero.
void SoftmaxZero(std::span<double> row) {
  constexpr double kZero = 1e-7;
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double& value : row) {
    value = std::abs(value) > kZero ? std::exp(value - largest) : value * std::exp(-largest);
    sum += value;
  }
  for (double& value : row) value = sum == 0 ? 0.5 : value / sum;
}

// sqrt(2) * erfinv(2 x - 1), with Winitzki's approximation of erfinv, which ONNX's reference uses.
double Probit(double x) {
  const double y = 2 * x - 1;
  const double log = std::log((1 - y) * (1 + y));
  const double a = 2 / (std::numbers::pi * 0.147) + 0.5 * log;
  const double root = std::sqrt(std::sqrt(a * a - log / 0.147) - a);
  return std::numbers::sqrt2 * (y < 0 ? -root : root);
}

void Transform(RunTrees::Transform transform, std::span<double> row) {
  switch (transform) {
    case RunTrees::Transform::kNone:
      return;
    case RunTrees::Transform::kSoftmax:
      return Softmax(row);
    case RunTrees::Transform::kLogistic:
      for (double& value : row) value = 1 / (1 + std::exp(-value));
      return;
    case RunTrees::Transform::kSoftmaxZero:
      return SoftmaxZero(row);
    case RunTrees::Transform::kProbit:
      for (double& value : row) value = Probit(value);
      return;
  }
}

}  // namespace

Outputs Run(const RunTrees& trees, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* x, TensorInput(inputs, 0));
  if (x->rank() != 2 || x->extents()[1] < trees.feature_count) {
    return Status(Code::kMismatchingShape,
                  "Input 0 has shape " + tensor::ToString(x->extents()) + "; rows of at least " +
                      std::to_string(trees.feature_count) + " features are required.");
  }
  const int64_t rows = x->extents()[0];
  const int64_t features = x->extents()[1];
  ONNXIFI_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(x->type(), {rows, trees.target_count}));
  using Aggregate = RunTrees::Aggregate;
  // What a target has that no leaf reached.
  double initial = 0;
  if (trees.aggregate == Aggregate::kMin) initial = tensor::LargestFinite(x->type());
  if (trees.aggregate == Aggregate::kMax) initial = tensor::Lowest(x->type());
  std::vector<double> targets(static_cast<size_t>(trees.target_count));
  for (int64_t row = 0; row < rows; ++row) {
    std::fill(targets.begin(), targets.end(), initial);
    for (const int64_t root : trees.roots) {
      RunTrees::Branch at = {root, /*is_leaf=*/false};
      while (!at.is_leaf) {
        const RunTrees::Node& node = trees.nodes[static_cast<size_t>(at.index)];
        const double value = LoadScalar(x->type(), x->data(), row * features + node.feature).f;
        at = TakesTrue(node, value) ? node.on_true : node.on_false;
      }
      const RunTrees::Leaf& leaf = trees.leaves[static_cast<size_t>(at.index)];
      double& target = targets[static_cast<size_t>(leaf.target)];
      switch (trees.aggregate) {
        case Aggregate::kSum:
          target += leaf.weight;
          break;
        case Aggregate::kAverage:
          target += leaf.weight / static_cast<double>(trees.roots.size());
          break;
        case Aggregate::kMin:
          target = std::min(target, leaf.weight);
          break;
        case Aggregate::kMax:
          target = std::max(target, leaf.weight);
          break;
      }
    }
    if (!targets.empty()) Transform(trees.transform, targets);
    for (int64_t k = 0; k < trees.target_count; ++k) {
      StoreScalar(x->type(), result.mutable_data(), row * trees.target_count + k,
                  CastScalar(ElementType::kFloat64, x->type(),
                             Scalar{.f = targets[static_cast<size_t>(k)]}));
    }
  }
  return One(std::move(result));
}

}  // namespace onnxifi::host
