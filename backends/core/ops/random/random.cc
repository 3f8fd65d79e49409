// SPDX-License-Identifier: Apache-2.0
//
// RandomUniform, RandomNormal and their Like forms; Bernoulli; Multinomial.

#include "backends/core/ops/random/generator.h"
#include "backends/core/ops/reduce/reduction.h"
#include "backends/core/ops/reduce/reduction_geometry.h"
#include "backends/core/ops/registry.h"
#include "backends/core/program/arg_extreme.h"

namespace onnxifi::ops {
namespace {

// Attribute `dtype`, or `otherwise`.
Result<ElementType> OutputType(const Lowering& lowering, ElementType otherwise) {
  const int64_t number = lowering.Int("dtype", static_cast<int64_t>(otherwise));
  const std::optional<ElementType> type = tensor::ElementTypeFromOnnx(number);
  if (!type) {
    return lowering.InvalidModel("Attribute dtype (" + std::to_string(number) +
                                 ") is not the number of an element type.");
  }
  if (tensor::IsFloat(*type) || tensor::IsInteger(*type) || tensor::IsBool(*type)) return *type;
  return Status(Code::kUnsupportedDatatype, lowering.node().op_type + ": Output element type " +
                                                std::string(Name(*type)) + " is not supported.");
}

// Attribute `shape`; the Like forms take the shape, and unless told otherwise the type, of their
// input.
struct Target {
  Shape shape;
  ElementType type;
};

Result<Target> FindTarget(const Lowering& lowering) {
  Target target{{}, ElementType::kFloat32};
  if (lowering.node().op_type.ends_with("Like")) {
    ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
    target = {lowering.In(0).shape, lowering.In(0).type()};
  } else if (const std::vector<int64_t>* extents = lowering.Ints("shape")) {
    for (int64_t extent : *extents) {
      if (extent < 0) {
        return lowering.InvalidModel("Extent " + std::to_string(extent) + " is negative.");
      }
      target.shape.push_back(Dim(extent));
    }
  }
  ONNXIFI_ASSIGN_OR_RETURN(target.type, OutputType(lowering, target.type));
  if (tensor::IsFloat(target.type)) return target;
  return Status(Code::kUnsupportedDatatype, lowering.node().op_type + ": Output element type " +
                                                std::string(Name(target.type)) +
                                                " is not a float.");
}

Status LowerRandomUniform(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(Target target, FindTarget(lowering));
  const double low = lowering.Float("low", 0);
  const double high = lowering.Float("high", 1);

  StepBuilder map(lowering, target.shape);
  Generator generator(lowering);
  Expr uniform = generator.Uniform(map, tensor::ArithmeticType(target.type));
  Expr value = uniform * Like(uniform, high - low) + Like(uniform, low);
  lowering.Set(0, map.WriteMap(value, target.type));
  return base::Ok();
}

Status LowerRandomNormal(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(Target target, FindTarget(lowering));

  StepBuilder map(lowering, target.shape);
  Generator generator(lowering);
  Expr normal = generator.Normal(map, tensor::ArithmeticType(target.type));
  Expr value =
      normal * Like(normal, lowering.Float("scale", 1)) + Like(normal, lowering.Float("mean", 0));
  lowering.Set(0, map.WriteMap(value, target.type));
  return base::Ok();
}

Status LowerBernoulli(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  ONNXIFI_ASSIGN_OR_RETURN(ElementType type, OutputType(lowering, x.type()));

  StepBuilder map(lowering, x.shape);
  Expr probability = map.ReadArithmetic(x);
  Generator generator(lowering);
  Expr uniform = generator.Uniform(map, probability.type());
  lowering.Set(0, map.WriteMap(uniform < probability, type));
  return base::Ok();
}

// The class with the largest sum of log-probability and Gumbel noise is drawn with its probability
// (Gumbel's trick), and the log-probabilities need not be normalised for it.
Status LowerMultinomial(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  if (x.rank() != 2) {
    return lowering.InvalidModel("Input has " + std::to_string(x.rank()) +
                                 " axes and must have 2, batch and classes.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(ElementType type, OutputType(lowering, ElementType::kInt32));
  const int64_t sample_size = lowering.Int("sample_size", 1);
  if (sample_size < 0) {
    return lowering.InvalidModel("Sample size (" + std::to_string(sample_size) + ") is negative.");
  }

  Operand per_sample = program::InsertAxis(x, 1);
  per_sample.shape[1] = Dim(sample_size);
  const ReductionGeometry reduced = ReduceAxes(per_sample, std::vector<int>{2}, /*keepdims=*/false);
  StepBuilder step(lowering, reduced.data.shape);
  Expr log_probability = Cast(step.ReadView(reduced.data.view), tensor::ArithmeticType(x.type()));
  Generator generator(lowering);
  Expr score = log_probability + generator.Gumbel(step, log_probability.type());
  program::Reduction reduction;
  Expr drawn = AddArgExtreme(reduction, score, step.Coordinate(2), {.is_largest = true});
  lowering.Set(0,
               WriteReduction(lowering, step, reduced, std::move(reduction), {{drawn, type}})[0]);
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Bernoulli", 22, LowerBernoulli},         {"Multinomial", 22, LowerMultinomial},
    {"RandomNormal", 22, LowerRandomNormal},   {"RandomNormalLike", 22, LowerRandomNormal},
    {"RandomUniform", 22, LowerRandomUniform}, {"RandomUniformLike", 22, LowerRandomUniform},
};

}  // namespace

std::span<const Operator> RandomOperators() { return kOperators; }

}  // namespace onnxifi::ops
