// SPDX-License-Identifier: Apache-2.0
//
// RoundingSpread: each float result r becomes r * (1 + u), u at random within a few units in the
// last place: one for what IEEE 754 rounds, and what OpenCL allows its functions for the others,
// which is the most among the languages that devices are programmed in. Reductions may take
// their elements in any order: where the reference merges parts, which hardly round, another device
// adds one element after the other, and equal elements are rounded the same way each time.

#include "backends/core/reference/rounding_spread.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "backends/core/reference/device.h"

namespace onnxifi::reference {
namespace {

using program::Expr;
using program::ExprId;
using program::ExprOp;
using program::ExprPool;
using tensor::ElementType;

constexpr int kSamples = 6;
// The samples' largest deviation is about that of a typical implementation.
constexpr double kMargin = 8;
// With that margin, about as many merges in a row as parts have, and a unit for so many elements,
// the room is half a unit and more for each element.
constexpr double kElementsPerUnit = 64;

// Units in the last place that the result of an operation may be off; 0 for exact ones.
double UnitsOf(ExprOp op) {
  switch (op) {
#define ONNXIFI_UNITS(id, units) \
  case ExprOp::id:               \
    return units;
#define ONNXIFI_FUNCTION(id, name, function, text, engine, units) ONNXIFI_UNITS(id, units)
#define ONNXIFI_BINARY(id, name, units) ONNXIFI_UNITS(id, units)
#include "backends/core/program/scalar_operations.def"
#undef ONNXIFI_UNITS
    default:
      return 0;
  }
}

// Puts the noise into expressions over the first `rank` axes of the domain.
class Noise {
 public:
  // `reduction_length`: elements of a reduction, if the step has any.
  Noise(ExprPool& pool, uint64_t seed, int64_t reduction_length)
      : pool_(pool),
        seed_(seed),
        merge_units_(std::max(1.0, static_cast<double>(reduction_length) / kElementsPerUnit)) {}

  void AddTo(ExprId& root, int rank) {
    if (root == program::kNoExpr) return;
    std::unordered_map<ExprId, ExprId>& done = done_[rank];
    // Operands come first, so that what is put over a node is over one that has its own noise.
    for (const ExprId id : program::Reachable(pool_, std::span(&root, 1))) {
      if (done.contains(id)) continue;
      program::ExprNode node = pool_[id];
      const double units = UnitsOf(node.op) * (rank == kMerge ? merge_units_ : 1);
      for (ExprId& operand : node.operands) operand = done.at(operand);
      ExprId made = pool_.Add(std::move(node));
      const ElementType type = pool_[made].type;
      if (units > 0 && (type == ElementType::kFloat32 || type == ElementType::kFloat64)) {
        made = WithNoise(Expr(&pool_, made), units, rank).id();
      }
      done.emplace(id, made);
    }
    root = done.at(root);
  }
  void AddTo(std::span<ExprId> roots, int rank) {
    for (ExprId& root : roots) AddTo(root, rank);
  }
  void AddTo(program::Reduction& reduction, int rank) {
    for (program::Reduction::State& state : reduction.states) {
      AddTo(state.update, rank);
      AddTo(state.merge, kMerge);
    }
  }

 private:
  // In place of a rank: parts are merged at no coordinates, each time with the same noise.
  static constexpr int kMerge = -1;

  Expr WithNoise(Expr value, double units, int rank) {
    Expr counter = program::IntConstant(pool_, ElementType::kInt64, 0);
    for (int axis = 0; axis < rank; ++axis) {
      counter = counter * program::IntConstant(pool_, ElementType::kInt64, 100'003) +
                program::Coordinate(pool_, axis);
    }
    const Expr random =
        program::Random(counter, seed_ * 1'000'003 + static_cast<uint64_t>(value.id()));
    const double unit = value.type() == ElementType::kFloat32 ? 0x1p-23 : 0x1p-52;
    const Expr factor =
        Like(random, 1) + (random * Like(random, 2) - Like(random, 1)) * Like(random, units * unit);
    return Cast(Cast(value, ElementType::kFloat64) * factor, value.type());
  }

  ExprPool& pool_;
  const uint64_t seed_;
  const double merge_units_;
  std::unordered_map<int, std::unordered_map<ExprId, ExprId>> done_;  // by rank
};

int64_t ReductionLength(const RandomStep& random) {
  const program::Step& step = random.program.steps[0];
  int axes = 0;
  if (const auto* reduce = step.As<program::Reduce>()) axes = reduce->axes;
  if (const auto* row = step.As<program::Row>()) axes = row->axes;
  if (step.As<program::Scan>() != nullptr) axes = 1;
  int64_t length = 1;
  for (const program::Dim& dim : std::span(step.domain).last(static_cast<size_t>(axes))) {
    length *= tensor::ValueOf(dim, random.dims);
  }
  return length;
}

void AddNoise(RandomStep& random, uint64_t seed) {
  program::Step& step = random.program.steps[0];
  const int rank = static_cast<int>(step.domain.size());
  Noise noise(random.program.exprs, seed, ReductionLength(random));
  if (auto* map = std::get_if<program::Map>(&step.body)) {
    noise.AddTo(map->roots, rank);
  } else if (auto* reduce = std::get_if<program::Reduce>(&step.body)) {
    noise.AddTo(reduce->reduction, rank);
    noise.AddTo(reduce->roots, rank - reduce->axes);
  } else if (auto* row = std::get_if<program::Row>(&step.body)) {
    for (program::Row::Pass& pass : row->passes) {
      noise.AddTo(pass.reduction, rank);
      noise.AddTo(pass.results, rank - row->axes);
    }
    noise.AddTo(row->roots, rank);
  } else if (auto* scan = std::get_if<program::Scan>(&step.body)) {
    noise.AddTo(scan->reduction, rank);
    noise.AddTo(scan->roots, rank);
  } else if (auto* contract = std::get_if<program::Contract>(&step.body)) {
    noise.AddTo(contract->roots, 0);
  } else if (auto* window = std::get_if<program::Window>(&step.body)) {
    noise.AddTo(window->roots, 0);
  } else if (auto* attention = std::get_if<program::Attention>(&step.body)) {
    noise.AddTo(attention->score, rank);
    noise.AddTo(attention->roots, 0);
  }
}

double Distance(double expected, double disturbed) {
  if (expected == disturbed || (std::isnan(expected) && std::isnan(disturbed))) return 0;
  const double distance = std::fabs(expected - disturbed);
  // One of them infinite or no number: the step is at the edge of the type's range.
  return std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity();
}

}  // namespace

base::Result<RoundingSpread> FindRoundingSpread(const std::function<RandomStep()>& make,
                                                std::span<const tensor::Tensor> expected) {
  RoundingSpread spread;
  for (const tensor::Tensor& tensor : expected) {
    spread.emplace_back(static_cast<size_t>(tensor.element_count()), 0.0);
  }
  for (int sample = 1; sample <= kSamples; ++sample) {
    RandomStep step = make();
    AddNoise(step, static_cast<uint64_t>(sample));
    Device reference;
    ONNXIFI_ASSIGN_OR_RETURN(const std::vector<tensor::Tensor> disturbed, RunStep(reference, step));
    for (size_t b = 0; b < spread.size(); ++b) {
      const ElementType type = expected[b].type();
      if (tensor::IsComplex(type)) continue;
      for (int64_t k = 0; k < expected[b].element_count(); ++k) {
        const double distance =
            tensor::IsFloat(type)
                ? Distance(expected[b].AsDouble(k), disturbed[b].AsDouble(k))
                : static_cast<double>(expected[b].AsInt(k) != disturbed[b].AsInt(k));
        double& room = spread[b][static_cast<size_t>(k)];
        room = std::max(room, kMargin * distance);
      }
    }
  }
  return spread;
}

}  // namespace onnxifi::reference
