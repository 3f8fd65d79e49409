// SPDX-License-Identifier: Apache-2.0
//
// Pairwise coupling: the probabilities p that minimise the sum over pairs of (r_ji p_i - r_ij
// p_j)^2 with sum 1, by turns for each class until all gradients are equal (Wu, Lin and Weng 2004,
// algorithm 2). The tolerance and the number of rounds are those of ONNX's reference.

#include "backends/core/host/probabilities.h"

#include <algorithm>
#include <cmath>

#include "backends/core/tensor/convert.h"

namespace onnxifi::host {
namespace {

using base::Code;
using base::Status;
using program::CoupleProbabilities;
using tensor::Scalar;
using tensor::Tensor;

class Coupling {
 public:
  explicit Coupling(const CoupleProbabilities& attributes)
      : attributes_(attributes),
        count_(static_cast<size_t>(attributes.class_count)),
        wins_(count_ * count_),
        form_(count_ * count_),
        gradient_(count_),
        shares_(count_) {}

  // `scores`: by pair. What is returned is valid until the next call.
  const std::vector<double>& Solve(const std::vector<double>& scores) {
    ReadScores(scores);
    MakeForm();
    std::fill(shares_.begin(), shares_.end(), 1.0 / static_cast<double>(count_));
    const double tolerance = 0.005 / static_cast<double>(count_);
    const size_t rounds = std::max<size_t>(100, count_);
    for (size_t round = 0; round < rounds; ++round) {
      double value = 0;
      for (size_t i = 0; i < count_; ++i) {
        gradient_[i] = 0;
        for (size_t j = 0; j < count_; ++j) gradient_[i] += form_[i * count_ + j] * shares_[j];
        value += shares_[i] * gradient_[i];
      }
      double largest = 0;
      for (const double part : gradient_) largest = std::max(largest, std::abs(part - value));
      if (largest < tolerance) break;
      for (size_t i = 0; i < count_; ++i) Improve(i, value);
    }
    return shares_;
  }

 private:
  // wins_[i, j]: how probable class i is, if it is i or j.
  void ReadScores(const std::vector<double>& scores) {
    constexpr double kMinShare = 1e-7;
    size_t pair = 0;
    for (size_t i = 0; i < count_; ++i) {
      for (size_t j = i + 1; j < count_; ++j, ++pair) {
        const double exponent = scores[pair] * attributes_.slopes[pair] + attributes_.offsets[pair];
        const double win = std::clamp(1 / (1 + std::exp(exponent)), kMinShare, 1 - kMinShare);
        wins_[i * count_ + j] = win;
        wins_[j * count_ + i] = 1 - win;
      }
    }
  }

  // The quadratic form that is minimised.
  void MakeForm() {
    for (size_t i = 0; i < count_; ++i) {
      double own = 0;
      for (size_t j = 0; j < count_; ++j) {
        if (j == i) continue;
        const double loss = wins_[j * count_ + i];
        own += loss * loss;
        form_[i * count_ + j] = -loss * wins_[i * count_ + j];
      }
      form_[i * count_ + i] = own;
    }
  }

  // The best share of class i, given the others; then all shares have sum 1 again.
  void Improve(size_t i, double& value) {
    const double own = form_[i * count_ + i];
    const double change = (value - gradient_[i]) / own;
    const double sum = 1 + change;
    shares_[i] += change;
    value = (value + change * (change * own + 2 * gradient_[i])) / (sum * sum);
    for (size_t j = 0; j < count_; ++j) {
      gradient_[j] = (gradient_[j] + change * form_[i * count_ + j]) / sum;
      shares_[j] /= sum;
    }
  }

  const CoupleProbabilities& attributes_;
  const size_t count_;
  std::vector<double> wins_, form_, gradient_, shares_;
};

}  // namespace

Outputs Run(const CoupleProbabilities& attributes, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* scores, TensorInput(inputs, 0));
  const auto pairs = static_cast<int64_t>(attributes.slopes.size());
  if (scores->rank() != 2 || scores->extents()[1] != pairs) {
    return Status(Code::kMismatchingShape, "Input 0 has shape " +
                                               tensor::ToString(scores->extents()) + "; rows of " +
                                               std::to_string(pairs) + " scores are required.");
  }
  const int64_t rows = scores->extents()[0];
  const int64_t classes = attributes.class_count;
  ONNXIFI_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(scores->type(), {rows, classes}));
  Coupling coupling(attributes);
  std::vector<double> row(static_cast<size_t>(pairs));
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t k = 0; k < pairs; ++k) {
      row[static_cast<size_t>(k)] = LoadScalar(scores->type(), scores->data(), n * pairs + k).f;
    }
    const std::vector<double>& shares = coupling.Solve(row);
    for (int64_t k = 0; k < classes; ++k) {
      StoreScalar(result.type(), result.mutable_data(), n * classes + k,
                  CastScalar(tensor::ElementType::kFloat64, result.type(),
                             Scalar{.f = shares[static_cast<size_t>(k)]}));
    }
  }
  return One(std::move(result));
}

}  // namespace onnxifi::host
