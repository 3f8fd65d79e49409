// SPDX-License-Identifier: Apache-2.0
//
// PostOps: each operation under oneDNN's name.

#include "backends/cpu/onednn/post_ops.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace onnxifi::onednn {

using base::Code;
using base::Result;
using base::Status;
using dnnl::algorithm;
using epilogue::Kind;
using epilogue::Operation;

namespace {

// oneDNN appends up to 32 operations; the rest is room for the bias and a scale of our own.
constexpr size_t kMaxPostOps = 28;

bool IsRelu(const Operation& operation) {
  return operation.kind == Kind::kClip && operation.alpha == 0 &&
         operation.beta == std::numeric_limits<float>::infinity();
}

algorithm AlgorithmOf(const Operation& operation) {
  switch (operation.kind) {
    case Kind::kAdd:
      return algorithm::binary_add;
    case Kind::kSubtract:
      return algorithm::binary_sub;
    case Kind::kMultiply:
      return algorithm::binary_mul;
    case Kind::kDivide:
      return algorithm::binary_div;
    case Kind::kMaximum:
      return algorithm::binary_max;
    case Kind::kMinimum:
      return algorithm::binary_min;
    case Kind::kLinear:
      return algorithm::eltwise_linear;
    case Kind::kClip:
      // The same, of which more kernels know the special case.
      return IsRelu(operation) ? algorithm::eltwise_relu : algorithm::eltwise_clip;
    case Kind::kLeakyRelu:
      return algorithm::eltwise_relu;
    case Kind::kAbs:
      return algorithm::eltwise_abs;
    case Kind::kSquare:
      return algorithm::eltwise_square;
    case Kind::kLogistic:
      return algorithm::eltwise_logistic;
    case Kind::kSwish:
      return algorithm::eltwise_swish;
    case Kind::kHardSwish:
      return algorithm::eltwise_hardswish;
    case Kind::kTanh:
      return algorithm::eltwise_tanh;
    case Kind::kGelu:
      return algorithm::eltwise_gelu_erf;
  }
  return algorithm::undef;
}

}  // namespace

Result<std::vector<Operation>> TranslatePostOps(const program::Program& program,
                                                const program::Step& step, program::ExprId root,
                                                epilogue::ReadTypes types) {
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<Operation> operations,
                           epilogue::OperationsOf(program, step, root, types));
  // oneDNN's Gelu and Tanh are good enough for results with few digits.
  const bool has_few_digits = types == epilogue::ReadTypes::kFloat32OrBfloat16 &&
                              step.writes[0].type == tensor::ElementType::kBfloat16;
  if (!has_few_digits && std::ranges::count(operations, Kind::kGelu, &Operation::kind) > 0) {
    return Status(Code::kUnsupportedAttribute,
                  "oneDNN's error function loses digits that the reference keeps.");
  }
  if (!has_few_digits && std::ranges::count(operations, Kind::kTanh, &Operation::kind) > 0) {
    return Status(Code::kUnsupportedAttribute,
                  "oneDNN's hyperbolic tangent takes longer than a loop over its results.");
  }
  if (operations.size() <= kMaxPostOps) return operations;
  return Status(Code::kUnsupportedAttribute,
                "The epilogue has more operations (" + std::to_string(operations.size()) +
                    ") than oneDNN appends to a kernel (" + std::to_string(kMaxPostOps) + ").");
}

Result<BoundPostOps> BoundPostOps::Create(std::vector<Operation> operations,
                                          std::vector<device::BoundView> operands,
                                          const Extents& extents) {
  BoundPostOps bound;
  bound.operations_ = std::move(operations);
  bound.operands_.resize(bound.operations_.size());
  for (size_t k = 0; k < bound.operations_.size(); ++k) {
    if (!bound.operations_[k].is_binary()) continue;
    const DataType type = DataTypeOf(operands[k].type);
    Extents distinct = extents;
    bool is_whole = true;
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      if (operands[k].strides[axis] == 0) distinct[axis] = 1;
      is_whole = is_whole && distinct[axis] == extents[axis];
    }
    const std::optional<Desc> given = Strided(distinct, operands[k].strides, type);
    if (!given) {
      return Status(Code::kUnsupportedShape,
                    "An operand of the epilogue has strides that oneDNN cannot say.");
    }
    bound.operands_[k] = {std::move(operands[k]), *given, (is_whole ? Any : Dense)(distinct, type)};
  }
  return bound;
}

void BoundPostOps::AddTo(dnnl::primitive_attr& attributes) const {
  if (operations_.empty()) return;
  dnnl::post_ops appended;
  for (size_t k = 0; k < operations_.size(); ++k) {
    const Operation& operation = operations_[k];
    if (operation.is_binary()) {
      appended.append_binary(AlgorithmOf(operation), operands_[k].wanted);
    } else {
      appended.append_eltwise(AlgorithmOf(operation), operation.alpha,
                              IsRelu(operation) ? 0.0F : operation.beta);
    }
  }
  attributes.set_post_ops(appended);
}

Status BoundPostOps::AddArguments(const dnnl::primitive_desc_base& desc, SequenceBuilder& builder,
                                  std::vector<Argument>& arguments) const {
  for (size_t k = 0; k < operations_.size(); ++k) {
    if (!operations_[k].is_binary()) continue;
    const int name = DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(k)) | DNNL_ARG_SRC_1;
    const Desc chosen = desc.query_md(dnnl::query::exec_arg_md, name);
    if (chosen.get_format_kind() == dnnl::memory::format_kind::any) {
      return Status(Code::kUnsupportedShape,
                    "The primitive chooses no layout for an operand of the epilogue.");
    }
    ONNXIFI_ASSIGN_OR_RETURN(
        StoredTensor place,
        builder.As(builder.At({operands_[k].view, nullptr}, operands_[k].given), chosen));
    arguments.emplace_back(name, std::move(place));
  }
  return base::Ok();
}

}  // namespace onnxifi::onednn
