// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx.ml SVMRegressor, SVMClassifier: products with support vectors, or linear models where
// there are none. A classifier compares each two classes and takes the class that wins most often.

#include <algorithm>
#include <string>
#include <utility>

#include "backends/core/ops/ml/pairwise_coupling.h"
#include "backends/core/ops/ml/rows.h"
#include "backends/core/ops/ml/scores.h"
#include "backends/core/ops/reduce/reduction.h"
#include "backends/core/ops/reduce/reduction_geometry.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

struct Kernel {
  enum class Kind : uint8_t { kLinear, kPolynomial, kRadial, kSigmoid };
  Kind kind = Kind::kLinear;
  float gamma = 0, coef0 = 0, degree = 0;
};

Result<Kernel> ReadKernel(const Lowering& lowering) {
  constexpr std::pair<std::string_view, Kernel::Kind> kKinds[] = {
      {"LINEAR", Kernel::Kind::kLinear},
      {"POLY", Kernel::Kind::kPolynomial},
      {"RBF", Kernel::Kind::kRadial},
      {"SIGMOID", Kernel::Kind::kSigmoid}};
  const std::string name = lowering.String("kernel_type", "LINEAR");
  const std::vector<float> parameters = FloatList(lowering, "kernel_params");
  if (!parameters.empty() && parameters.size() != 3) {
    return lowering.InvalidModel("Attribute kernel_params has " +
                                 std::to_string(parameters.size()) +
                                 " entries; gamma, coef0 and degree are required.");
  }
  for (const auto& [known, kind] : kKinds) {
    if (name != known) continue;
    if (parameters.empty()) return Kernel{kind};
    return Kernel{kind, parameters[0], parameters[1], parameters[2]};
  }
  return lowering.InvalidModel("Attribute kernel_type is '" + name + "', which is no kernel.");
}

// The kernel of each row [N, C] and each of the vectors [C, V]: [N, V].
Operand ApplyKernel(Lowering& lowering, const Kernel& kernel, const Operand& rows,
                    const Operand& vectors) {
  const ElementType type = rows.type();
  if (kernel.kind == Kernel::Kind::kRadial) {
    // Squares of differences: a difference of squares would lose near vectors. The vectors are read
    // first, since the first read decides which results are computed side by side.
    const Shape domain = {rows.shape[0], vectors.shape[1], rows.shape[1]};
    const Operand own{program::BroadcastTo(program::InsertAxis(rows, 1), domain), domain};
    const ReductionGeometry reduced = ReduceAxes(own, std::vector<int>{2}, /*keepdims=*/false);
    StepBuilder reduce(lowering, domain);
    const Expr of_vector = reduce.Read(program::Permute(vectors, {1, 0}));
    const Expr difference = of_vector - reduce.ReadView(own.view);
    program::Reduction reduction;
    const Expr distance = AddSum(reduction, difference * difference);
    const Expr value = Unary(ExprOp::kExp, Like(distance, -kernel.gamma) * distance);
    return WriteReduction(lowering, reduce, reduced, std::move(reduction), {{value, type}})[0];
  }
  RowProduct product(lowering, rows, vectors);
  Expr value = product.sum();
  if (kernel.kind != Kernel::Kind::kLinear) {
    value = value * Like(value, kernel.gamma) + Like(value, kernel.coef0);
  }
  if (kernel.kind == Kernel::Kind::kSigmoid) value = Unary(ExprOp::kTanh, value);
  if (kernel.kind == Kernel::Kind::kPolynomial) {
    value = Binary(ExprOp::kPow, value, Like(value, kernel.degree));
  }
  return product.Write(value);
}

// `count` support vectors as a constant [C, count]: a feature of all of them side by side.
Result<Operand> ReadVectors(Lowering& lowering, const Operand& rows, int64_t count) {
  const std::vector<float> numbers = FloatList(lowering, "support_vectors");
  const auto size = static_cast<int64_t>(numbers.size());
  if (size == 0 || size % count != 0) {
    return lowering.InvalidModel("Attribute support_vectors has " + std::to_string(size) +
                                 " entries for " + std::to_string(count) + " vectors.");
  }
  const int64_t features = size / count;
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(rows.shape[1], features,
                                                "The features of input 0 and of a support vector"));
  std::vector<float> by_feature(numbers.size());
  for (int64_t vector = 0; vector < count; ++vector) {
    for (int64_t feature = 0; feature < features; ++feature) {
      by_feature[static_cast<size_t>(feature * count + vector)] =
          numbers[static_cast<size_t>(vector * features + feature)];
    }
  }
  return ConstantNumbers(lowering, rows.type(), {features, count}, by_feature);
}

Status CheckCount(const Lowering& lowering, std::string_view name, size_t given, int64_t required) {
  if (static_cast<int64_t>(given) == required) return base::Ok();
  return lowering.InvalidModel("Attribute " + std::string(name) + " has " + std::to_string(given) +
                               " entries where " + std::to_string(required) + " are required.");
}

// Rows times coefficients [count, C], plus the first of rho.
Result<Operand> LinearScores(Lowering& lowering, const Operand& rows, int64_t count) {
  const std::vector<float> coefficients = FloatList(lowering, "coefficients");
  const std::vector<float> rho = FloatList(lowering, "rho");
  const auto size = static_cast<int64_t>(coefficients.size());
  if (size == 0 || size % count != 0 || rho.empty()) {
    return lowering.InvalidModel("There are " + std::to_string(size) + " coefficients and " +
                                 std::to_string(rho.size()) + " numbers rho for " +
                                 std::to_string(count) + " scores.");
  }
  const int64_t features = size / count;
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(
      rows.shape[1], features, "The features of input 0 and of a row of coefficients"));
  const Operand matrix = program::Permute(
      ConstantNumbers(lowering, rows.type(), {count, features}, coefficients), {1, 0});
  RowProduct product(lowering, rows, matrix);
  return product.Write(product.sum() + Like(product.sum(), rho[0]));
}

Status LowerSvmRegressor(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Operand rows, ReadRowsAsFloats(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(const PostTransform transform, ReadPostTransform(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(const Kernel kernel, ReadKernel(lowering));
  const int64_t count = lowering.Int("n_supports", 0);
  Operand scores;
  if (count > 0) {
    ONNXIFI_ASSIGN_OR_RETURN(const Operand vectors, ReadVectors(lowering, rows, count));
    const std::vector<float> coefficients = FloatList(lowering, "coefficients");
    const std::vector<float> rho = FloatList(lowering, "rho");
    ONNXIFI_RETURN_IF_ERROR(CheckCount(lowering, "coefficients", coefficients.size(), count));
    ONNXIFI_RETURN_IF_ERROR(CheckCount(lowering, "rho", rho.size(), 1));
    const Operand kernels = ApplyKernel(lowering, kernel, rows, vectors);
    RowProduct product(lowering, kernels,
                       ConstantNumbers(lowering, rows.type(), {count, 1}, coefficients));
    scores = product.Write(product.sum() + Like(product.sum(), rho[0]));
  } else {
    ONNXIFI_ASSIGN_OR_RETURN(scores, LinearScores(lowering, rows, 1));
  }
  if (lowering.Int("one_class", 0) != 0) {
    // Whether a row belongs to the class; a transform of that would say nothing.
    StepBuilder map(lowering, scores.shape);
    const Expr score = map.Read(scores);
    const Expr is_inside = Like(score, 0) < score;
    lowering.Set(
        0, map.WriteMap(Select(is_inside, Like(score, 1), Like(score, -1)), ElementType::kFloat32));
    return base::Ok();
  }
  lowering.Set(0, Transformed(lowering, scores, transform));
  return base::Ok();
}

// Comparisons of each two classes i < j, in the order (0, 1), (0, 2), ... (1, 2), ...
struct Pairs {
  int64_t classes = 0;
  std::vector<int64_t> first, second;

  explicit Pairs(int64_t count) : classes(count) {
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = i + 1; j < count; ++j) {
        first.push_back(i);
        second.push_back(j);
      }
    }
  }
  int64_t count() const { return static_cast<int64_t>(first.size()); }
};

Operand ConstantPositions(Lowering& lowering, const std::vector<int64_t>& positions) {
  return lowering.ConstantTensor(tensor::Tensor::FromValues<int64_t>(
      ElementType::kInt64, {static_cast<int64_t>(positions.size())}, positions));
}

// The scores [N, pairs] from the kernels [N, V]. Row r of the coefficients [classes - 1, V] weighs
// the vectors of class i against class r, or r + 1 if r >= i.
Operand PairScores(Lowering& lowering, const Operand& kernels, const Operand& coefficients,
                   const std::vector<int64_t>& sizes, const Pairs& pairs,
                   const std::vector<float>& rho) {
  const ElementType type = kernels.type();
  const Dim rows = kernels.shape[0];
  // By class: its vectors, weighed against every other class.
  const Operand sums = lowering.Temporary(type, {rows, pairs.classes, pairs.classes - 1});
  int64_t start = 0;
  for (int64_t i = 0; i < pairs.classes; ++i) {
    const int64_t size = sizes[static_cast<size_t>(i)];
    RowProduct product(lowering, program::Slice(kernels, 1, start, 1, size),
                       program::Permute(program::Slice(coefficients, 1, start, 1, size), {1, 0}));
    product.WriteTo(program::RemoveAxis(program::Slice(sums, 1, i, 1, 1), 1), product.sum());
    start += size;
  }
  StepBuilder map(lowering, {rows, pairs.count()});
  const Expr row = map.Coordinate(0);
  const Expr i = map.Read(ConstantPositions(lowering, pairs.first));
  const Expr j = map.Read(ConstantPositions(lowering, pairs.second));
  const Expr one = IntConstant(map.exprs(), ElementType::kInt64, 1);
  const Expr of_first = map.ReadAtUnchecked(sums, {row, i, j - one});
  const Expr of_second = map.ReadAtUnchecked(sums, {row, j, i});
  const Expr added = map.Read(ConstantNumbers(lowering, type, {pairs.count()}, rho));
  return map.WriteMap(of_first + of_second + added, type);
}

// [classes, classes]: the position of the comparison of a class with another one.
Operand PairTable(Lowering& lowering, const Pairs& pairs) {
  std::vector<int64_t> positions(static_cast<size_t>(pairs.classes * pairs.classes), 0);
  for (int64_t k = 0; k < pairs.count(); ++k) {
    const int64_t i = pairs.first[static_cast<size_t>(k)];
    const int64_t j = pairs.second[static_cast<size_t>(k)];
    positions[static_cast<size_t>(i * pairs.classes + j)] = k;
    positions[static_cast<size_t>(j * pairs.classes + i)] = k;
  }
  return lowering.Reshaped(ConstantPositions(lowering, positions),
                           {Dim(pairs.classes), Dim(pairs.classes)});
}

// How many of its comparisons each class wins: [N, classes]. The first class of a pair wins a score
// above 0.
Operand Votes(Lowering& lowering, const Operand& scores, const Pairs& pairs) {
  const Shape domain = {scores.shape[0], pairs.classes, pairs.classes};
  const Operand table = PairTable(lowering, pairs);
  const Operand spread{program::BroadcastTo(table, domain), domain};
  const ReductionGeometry reduced = ReduceAxes(spread, std::vector<int>{2}, /*keepdims=*/false);
  StepBuilder reduce(lowering, domain);
  const Expr own = reduce.Coordinate(1);
  const Expr other = reduce.Coordinate(2);
  const Expr score =
      reduce.ReadAtUnchecked(scores, {reduce.Coordinate(0), reduce.ReadView(spread.view)});
  const Expr first_wins = Like(score, 0) < score;
  const Expr wins = (own < other && first_wins) || (other < own && !first_wins);
  program::Reduction reduction;
  const Expr count = AddSum(reduction, Cast(wins, ElementType::kInt64));
  return WriteReduction(lowering, reduce, reduced, std::move(reduction),
                        {{count, ElementType::kInt64}})[0];
}

// Probabilities [N, classes] from the scores of pairs. Of two classes the first one is the right
// one with probability 1 / (1 + exp(slope * score + offset)).
Result<Operand> Probabilities(Lowering& lowering, const Operand& scores, const Pairs& pairs) {
  const std::vector<float> slopes = FloatList(lowering, "prob_a");
  const std::vector<float> offsets = FloatList(lowering, "prob_b");
  ONNXIFI_RETURN_IF_ERROR(CheckCount(lowering, "prob_a", slopes.size(), pairs.count()));
  ONNXIFI_RETURN_IF_ERROR(CheckCount(lowering, "prob_b", offsets.size(), pairs.count()));
  const ElementType type = scores.type();
  constexpr double kMinShare = 1e-7;
  StepBuilder win(lowering, scores.shape);
  const Expr slope = win.Read(ConstantNumbers(lowering, type, {pairs.count()}, slopes));
  const Expr offset = win.Read(ConstantNumbers(lowering, type, {pairs.count()}, offsets));
  const Expr exponent = Unary(ExprOp::kExp, win.Read(scores) * slope + offset);
  const Expr probability = Like(exponent, 1) / (Like(exponent, 1) + exponent);
  const Operand of_pairs = win.WriteMap(
      Minimum(Maximum(probability, Like(exponent, kMinShare)), Like(exponent, 1 - kMinShare)),
      type);
  StepBuilder map(lowering, {scores.shape[0], Dim(pairs.classes), Dim(pairs.classes)});
  const Expr own = map.Coordinate(1);
  const Expr other = map.Coordinate(2);
  const Expr at = map.Read(PairTable(lowering, pairs));
  const Expr first = map.ReadAtUnchecked(of_pairs, {map.Coordinate(0), at});
  const Operand wins = map.WriteMap(Select(own < other, first, Like(first, 1) - first), type);
  return CouplePairs(lowering, wins, pairs.classes);
}

// How many support vectors each class has; all of them in `sum`.
Status CheckSizes(const Lowering& lowering, const std::vector<int64_t>& sizes, int64_t& sum) {
  for (const int64_t size : sizes) {
    if (size < 0 || __builtin_add_overflow(sum, size, &sum)) {
      return lowering.InvalidModel("Attribute vectors_per_class has the entry " +
                                   std::to_string(size) + ".");
    }
  }
  return base::Ok();
}

Status LowerPairs(Lowering& lowering, const Operand& rows, const Classes& classes,
                  const std::vector<int64_t>& sizes, int64_t vector_count) {
  ONNXIFI_ASSIGN_OR_RETURN(const PostTransform transform, ReadPostTransform(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(const Kernel kernel, ReadKernel(lowering));
  const auto count = static_cast<int64_t>(sizes.size());
  constexpr int64_t kMaxClasses = 4096;
  if (count < 2 || count > kMaxClasses || (classes.count() != 0 && classes.count() != count)) {
    return lowering.InvalidModel("Attribute vectors_per_class has " + std::to_string(count) +
                                 " entries, and there are " + std::to_string(classes.count()) +
                                 " labels.");
  }
  const std::vector<float> coefficients = FloatList(lowering, "coefficients");
  const std::vector<float> rho = FloatList(lowering, "rho");
  int64_t required = 0;
  if (__builtin_mul_overflow(count - 1, vector_count, &required)) required = -1;
  ONNXIFI_RETURN_IF_ERROR(CheckCount(lowering, "coefficients", coefficients.size(), required));
  ONNXIFI_RETURN_IF_ERROR(CheckCount(lowering, "rho", rho.size(), count * (count - 1) / 2));
  const Pairs pairs(count);
  ONNXIFI_ASSIGN_OR_RETURN(const Operand vectors, ReadVectors(lowering, rows, vector_count));
  const Operand kernels = ApplyKernel(lowering, kernel, rows, vectors);
  const Operand weights =
      ConstantNumbers(lowering, rows.type(), {count - 1, vector_count}, coefficients);
  Operand scores = PairScores(lowering, kernels, weights, sizes, pairs, rho);
  lowering.Set(0, classes.LabelsOfLargest(lowering, Votes(lowering, scores, pairs)));
  if (!FloatList(lowering, "prob_a").empty()) {
    ONNXIFI_ASSIGN_OR_RETURN(scores, Probabilities(lowering, scores, pairs));
  } else if (count == 2) {
    scores = AsScoresOfTwo(lowering, scores);
  }
  lowering.Set(1, Transformed(lowering, scores, transform));
  return base::Ok();
}

Status LowerSvmClassifier(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Operand rows, ReadRowsAsFloats(lowering));
  const Classes classes = Classes::Read(lowering, "classlabels_ints", "classlabels_strings");
  const std::vector<int64_t>* sizes = lowering.Ints("vectors_per_class");
  int64_t vector_count = 0;
  if (sizes != nullptr) ONNXIFI_RETURN_IF_ERROR(CheckSizes(lowering, *sizes, vector_count));
  if (vector_count > 0) return LowerPairs(lowering, rows, classes, *sizes, vector_count);

  ONNXIFI_ASSIGN_OR_RETURN(const PostTransform transform, ReadPostTransform(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(const Operand scores,
                           LinearScores(lowering, rows, std::max<int64_t>(1, classes.count())));
  lowering.Set(0, classes.count() == 0 ? classes.LabelsOfPositive(lowering, scores)
                                       : classes.LabelsOfLargest(lowering, scores));
  lowering.Set(1, Transformed(lowering, scores, transform));
  return base::Ok();
}

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr Operator kOperators[] = {
    {"SVMClassifier", 1, LowerSvmClassifier, kDomain},
    {"SVMRegressor", 1, LowerSvmRegressor, kDomain},
};

}  // namespace

std::span<const Operator> SupportVectorOperators() { return kOperators; }

}  // namespace onnxifi::ops
