// SPDX-License-Identifier: Apache-2.0
//
// BatchNormalization: y = (x - mean) / sqrt(variance + epsilon) * scale + bias, per channel; before
// opset 9, with `spatial` = 0, per element of an image. Given statistics, or in training the
// batch's own:
//   running = given * momentum + batch * (1 - momentum)

#include "backends/core/ops/normalization/channel.h"
#include "backends/core/ops/normalization/row.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

bool IsPerElement(const Lowering& lowering) {
  return lowering.version() < 9 && lowering.Int("spatial", 1) == 0;
}

// Since opset 14 an attribute says so; before that, the presence of the outputs that only training
// has, unless `is_test` (before opset 7) forbids it.
bool IsTraining(const Lowering& lowering) {
  if (lowering.version() >= 14) return lowering.Int("training_mode", 0) != 0;
  if (lowering.Int("is_test", 0) != 0) return false;
  return lowering.Wants(1) || lowering.Wants(2) || lowering.Wants(3) || lowering.Wants(4);
}

// Input `input`, one of the four parameters, broadcastable to `x`.
Result<Operand> Parameter(Lowering& lowering, const Operand& x, int input) {
  if (!tensor::IsFloat(lowering.In(input).type())) return lowering.UnsupportedType(input);
  if (!IsPerElement(lowering)) return ChannelVector(lowering, x, input);
  Operand parameter = lowering.In(input);
  if (parameter.rank() != x.rank() - 1) {
    return Status(Code::kMismatchingShape,
                  "BatchNormalization: Input " + std::to_string(input) + " has " +
                      std::to_string(parameter.rank()) + " axes and must have " +
                      std::to_string(x.rank() - 1) + ", those of one image.");
  }
  for (int axis = 1; axis < x.rank(); ++axis) {
    ONNXIFI_RETURN_IF_ERROR(
        lowering.RequireEqual(parameter.shape[axis - 1], x.shape[axis],
                              "Extents of input " + std::to_string(input) + " and the data"));
    parameter.shape[axis - 1] = x.shape[axis];
  }
  return parameter;
}

struct Operands {
  Operand x, scale, bias, mean, variance;
};

Expr InverseDeviation(const Lowering& lowering, Expr variance) {
  Expr epsilon = Like(variance, lowering.Float("epsilon", 1e-5f));
  return Like(variance, 1) / Unary(ExprOp::kSqrt, variance + epsilon);
}

// The factor scale / sqrt(variance + epsilon) is computed once per channel, not once per element.
Operand WriteWithGivenStatistics(Lowering& lowering, const Operands& in, ElementType type) {
  StepBuilder per_channel(lowering, in.variance.shape);
  Expr inverse = InverseDeviation(lowering, Cast(per_channel.Read(in.variance), type));
  const Operand factor =
      per_channel.WriteMap(inverse * Cast(per_channel.Read(in.scale), type), type);

  StepBuilder map(lowering, in.x.shape);
  Expr distance = Cast(map.Read(in.x), type) - Cast(map.Read(in.mean), type);
  Expr value = distance * map.Read(factor) + Cast(map.Read(in.bias), type);
  return map.WriteMap(value, in.x.type());
}

Operand WriteWithBatchStatistics(Lowering& lowering, const Operands& in, ElementType type) {
  std::vector<int> axes{0};
  for (int axis = 2; axis < in.x.rank() && !IsPerElement(lowering); ++axis) axes.push_back(axis);
  RowBuilder row(lowering, in.x.shape, axes);
  Expr element = row.Read(in.x, type);
  const RowBuilder::Moments batch = row.AddMoments(element);
  Expr factor = InverseDeviation(lowering, batch.variance) * row.Read(in.scale, type);
  Expr value = (element - batch.mean) * factor + row.Read(in.bias, type);
  Operand out = row.Write(value, in.x.type());

  const double momentum = lowering.Float("momentum", 0.9f);
  auto running = [&](const Operand& given, Expr of_batch) {
    return row.Read(given, type) * Like(element, momentum) + of_batch * Like(element, 1 - momentum);
  };
  const Expr statistics[] = {running(in.mean, batch.mean), running(in.variance, batch.variance),
                             batch.mean, batch.variance};
  for (int k = 0; k < 4; ++k) {
    if (!lowering.Wants(k + 1)) continue;
    const ElementType out_type = lowering.In(k % 2 == 0 ? 3 : 4).type();
    lowering.Set(k + 1, row.WritePerRow(statistics[k], out_type, /*keepdims=*/false));
  }
  row.Finish();
  return out;
}

Status LowerBatchNormalization(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(5));
  // A vector is a batch of images of one channel and no space.
  const Operand& data = lowering.In(0);
  const Operand x = data.rank() == 1 ? program::InsertAxis(data, 1) : data;
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  if (x.rank() < 2) return lowering.InvalidModel("Input 0 is a scalar and must have an axis.");
  ONNXIFI_ASSIGN_OR_RETURN(Operand scale, Parameter(lowering, x, 1));
  ONNXIFI_ASSIGN_OR_RETURN(Operand bias, Parameter(lowering, x, 2));
  ONNXIFI_ASSIGN_OR_RETURN(Operand mean, Parameter(lowering, x, 3));
  ONNXIFI_ASSIGN_OR_RETURN(Operand variance, Parameter(lowering, x, 4));
  const bool is_training = IsTraining(lowering);
  if (!is_training && lowering.version() >= 14 && (lowering.Wants(1) || lowering.Wants(2))) {
    return lowering.InvalidModel("Running statistics are asked for, but training_mode is 0.");
  }

  const Operands in{x, scale, bias, mean, variance};
  const ElementType type = lowering.In(4).type() == ElementType::kFloat64
                               ? ElementType::kFloat64
                               : tensor::ArithmeticType(x.type());
  const Operand out = is_training ? WriteWithBatchStatistics(lowering, in, type)
                                  : WriteWithGivenStatistics(lowering, in, type);
  lowering.Set(0, lowering.Reshaped(out, data.shape));
  // With `is_test` the statistics that a node still names are the given ones.
  for (int k = 1; k < 5 && !is_training; ++k) lowering.Set(k, lowering.In(k % 2 == 1 ? 3 : 4));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"BatchNormalization", 15, LowerBatchNormalization},
};

}  // namespace

std::span<const Operator> BatchNormalizationOperators() { return kOperators; }

}  // namespace onnxifi::ops
