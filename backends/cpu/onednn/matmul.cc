// SPDX-License-Identifier: Apache-2.0
//
// MatMul: Contract of form kMatMul as oneDNN's matmul. The axes of the step are brought to its
// shape, [batch, m, k] x [batch, k, n], by merging those that lie next to each other in memory in
// every operand.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "backends/cpu/onednn/recipe.h"

namespace onnxifi::onednn {
namespace {

using base::Code;
using base::Status;
using program::Contract;

// An axis of the loops with its stride in each operand: A, B, the result, then the operands of the
// post-ops.
struct Axis {
  int64_t extent;
  std::vector<int64_t> strides;
};
constexpr size_t kA = 0, kB = 1, kResult = 2, kFirstPostOp = 3;

bool CanMerge(const Axis& outer, const Axis& inner) {
  for (size_t k = 0; k < outer.strides.size(); ++k) {
    if (outer.strides[k] != inner.strides[k] * inner.extent) return false;
  }
  return true;
}

// `inner` becomes both.
void Merge(const Axis& outer, Axis& inner) { inner.extent *= outer.extent; }

struct Loops {
  std::vector<Axis> batch;
  Axis m, n, k;
};

// Adds an axis in front of those in `axes`, merged with the outermost where possible.
void AddOuter(std::vector<Axis>& axes, Axis axis) {
  if (axis.extent == 1) return;
  if (!axes.empty() && CanMerge(axis, axes.front())) {
    Merge(axis, axes.front());
  } else {
    axes.insert(axes.begin(), std::move(axis));
  }
}

// The innermost of `axes` that is left, or one of extent 1.
Axis TakeInnermost(std::vector<Axis>& axes, size_t operands) {
  if (axes.empty()) return {1, std::vector<int64_t>(operands, 0)};
  Axis axis = std::move(axes.back());
  axes.pop_back();
  return axis;
}

Loops MakeLoops(const Task& task) {
  const Contract& contract = *task.step.step->As<Contract>();
  const device::BoundView& a = task.operands[0].view;
  const device::BoundView& b = task.operands[1].view;
  const int batch_axes = contract.batch_axes;
  const int m_axes = contract.m_axes;
  const int k_axes = static_cast<int>(contract.inner.size());
  const size_t operands = kFirstPostOp + task.post_ops.size();
  auto domain_axis = [&](int axis, int64_t a_stride, int64_t b_stride) {
    Axis result{task.step.domain[axis], {a_stride, b_stride, task.result.view.strides[axis]}};
    for (const epilogue::Operation& post_op : task.post_ops) {
      result.strides.push_back(post_op.is_binary() ? task.step.reads[post_op.read].strides[axis]
                                                   : 0);
    }
    return result;
  };
  std::vector<Axis> batch, m, n, k;
  for (int axis = batch_axes; axis-- > 0;) {
    AddOuter(batch, domain_axis(axis, a.strides[axis], b.strides[axis]));
  }
  for (int axis = batch_axes + m_axes; axis-- > batch_axes;) {
    AddOuter(m, domain_axis(axis, a.strides[axis], 0));
  }
  const int domain_axes = static_cast<int>(task.step.domain.size());
  for (int axis = domain_axes; axis-- > batch_axes + m_axes;) {
    AddOuter(n, domain_axis(axis, 0, b.strides[axis - m_axes + k_axes]));
  }
  for (int axis = k_axes; axis-- > 0;) {
    Axis inner{task.step.Number(contract.inner[axis]), std::vector<int64_t>(operands, 0)};
    inner.strides[kA] = a.strides[batch_axes + m_axes + axis];
    inner.strides[kB] = b.strides[batch_axes + axis];
    AddOuter(k, std::move(inner));
  }

  Loops loops;
  loops.m = TakeInnermost(m, operands);
  loops.n = TakeInnermost(n, operands);
  loops.k = TakeInnermost(k, operands);
  // Batch axes that B does not know are rows, as in [batch, m, k] x [k, n].
  while (m.empty() && !batch.empty() && batch.back().strides[kB] == 0 &&
         (loops.m.extent == 1 || CanMerge(batch.back(), loops.m))) {
    if (loops.m.extent == 1) {
      loops.m = batch.back();
    } else {
      Merge(batch.back(), loops.m);
    }
    batch.pop_back();
  }
  loops.batch = std::move(batch);
  // Rows and columns that do not merge are batches in which one operand stands still.
  loops.batch.insert(loops.batch.end(), m.begin(), m.end());
  loops.batch.insert(loops.batch.end(), n.begin(), n.end());
  if (!k.empty()) loops.k.extent = -1;
  return loops;
}

// Extents and strides of one operand over batch axes and two more.
struct Operand {
  Extents extents;
  Extents strides;
};
Operand OperandOf(const Loops& loops, size_t operand, const Axis& row, const Axis& column,
                  bool stands_still) {
  Operand result;
  auto add = [&](const Axis& axis, bool may_stand_still) {
    const int64_t stride = axis.strides[operand];
    result.extents.push_back(may_stand_still && stride == 0 ? 1 : axis.extent);
    result.strides.push_back(stride);
  };
  for (const Axis& axis : loops.batch) add(axis, stands_still);
  add(row, false);
  add(column, false);
  return result;
}

// Whether each batch axis begins where the one inside it ends, and none of them lies inside the
// matrix: oneDNN steps through several as through one, and reads beside an operand where that is
// not so.
bool HasEvenBatches(const Operand& operand) {
  const size_t row = operand.extents.size() - 2;
  int64_t matrix_stride = 0;  // the smaller one
  for (size_t axis = row; axis < row + 2; ++axis) {
    if (operand.extents[axis] == 1) continue;
    const int64_t stride = operand.strides[axis];
    matrix_stride = matrix_stride == 0 ? stride : std::min(matrix_stride, stride);
  }
  int64_t expected = 0;
  for (size_t axis = row; axis-- > 0;) {
    if (operand.extents[axis] == 1) continue;
    if (operand.strides[axis] < matrix_stride) return false;
    if (expected != 0 && operand.strides[axis] != expected) return false;
    expected = operand.strides[axis] * operand.extents[axis];
  }
  return true;
}

// A result of one column is written by a kernel for vectors, which leaves no gaps.
bool HasGapsInColumn(const Operand& result) {
  const size_t row = result.extents.size() - 2;
  return result.extents[row + 1] == 1 && result.extents[row] > 1 && result.strides[row] != 1;
}

Status LayOutMatMul(const Task& task, SequenceBuilder& builder) {
  const Loops loops = MakeLoops(task);
  if (loops.k.extent < 1) {
    return Status(Code::kUnsupportedShape,
                  "The inner axes do not lie in one row, or have no elements.");
  }
  const Operand a = OperandOf(loops, kA, loops.m, loops.k, true);
  const Operand b = OperandOf(loops, kB, loops.k, loops.n, true);
  const Operand result = OperandOf(loops, kResult, loops.m, loops.n, false);
  const DataType factor_type = DataTypeOf(task.operands[0].view.type);
  const DataType result_type = DataTypeOf(task.result.view.type);
  const std::optional<Desc> a_given = Strided(a.extents, a.strides, factor_type);
  const std::optional<Desc> b_given = Strided(b.extents, b.strides, factor_type);
  const std::optional<Desc> result_given = Strided(result.extents, result.strides, result_type);
  for (size_t axis = 0; axis < loops.batch.size(); ++axis) {
    if (a.extents[axis] == 1 && b.extents[axis] == 1) {
      return Status(Code::kUnsupportedShape, "Both operands stand still along a batch axis of " +
                                                 std::to_string(loops.batch[axis].extent) + ".");
    }
  }
  if (!a_given || !b_given || !result_given) {
    return Status(Code::kUnsupportedShape, "An operand's strides are none that oneDNN can say.");
  }

  std::vector<device::BoundView> operands;
  for (size_t k = 0; k < task.post_ops.size(); ++k) {
    device::BoundView& view = operands.emplace_back();
    if (!task.post_ops[k].is_binary()) continue;
    view = task.step.reads[static_cast<size_t>(task.post_ops[k].read)];
    view.strides.clear();
    for (const Axis& axis : loops.batch) view.strides.push_back(axis.strides[kFirstPostOp + k]);
    view.strides.push_back(loops.m.strides[kFirstPostOp + k]);
    view.strides.push_back(loops.n.strides[kFirstPostOp + k]);
  }
  ONNXIFI_ASSIGN_OR_RETURN(const BoundPostOps post_ops,
                           BoundPostOps::Create({task.post_ops.begin(), task.post_ops.end()},
                                                std::move(operands), result.extents));
  dnnl::primitive_attr attributes = Attributes();
  post_ops.AddTo(attributes);

  const StoredTensor a_place = builder.At(task.operands[0], *a_given);
  const StoredTensor b_place = builder.At(task.operands[1], *b_given);
  const StoredTensor result_place = builder.At(task.result, *result_given);
  // As the operands lie; else with the factors, then also the result, brought into order. Constants
  // are packed anyway.
  const bool is_packed = builder.IsConstant(b_place);
  const Desc b_as_it_lies = is_packed ? Any(b.extents, factor_type) : *b_given;
  const Desc b_in_order = (is_packed ? Any : Dense)(b.extents, factor_type);
  const Desc a_in_order = Dense(a.extents, factor_type);
  const Desc result_in_order = Dense(result.extents, result_type);
  struct Attempt {
    Desc a, b, result;
  };
  const Attempt attempts[] = {{*a_given, b_as_it_lies, *result_given},
                              {a_in_order, b_in_order, *result_given},
                              {a_in_order, b_in_order, result_in_order}};
  const bool has_operands =
      std::any_of(task.post_ops.begin(), task.post_ops.end(),
                  [](const epilogue::Operation& post_op) { return post_op.is_binary(); });
  for (const Attempt& attempt : attempts) {
    if ((attempt.a == *a_given && !HasEvenBatches(a)) ||
        (attempt.b == *b_given && !HasEvenBatches(b)) ||
        (attempt.result == *result_given && (!HasEvenBatches(result) || HasGapsInColumn(result)))) {
      continue;
    }
    // oneDNN finds the operands of appended operations by their place in a result without gaps.
    if (has_operands && attempt.result != result_in_order) continue;
    const dnnl::matmul::primitive_desc desc(builder.runtime().engine(), attempt.a, attempt.b,
                                            attempt.result, attributes, /*allow_empty=*/true);
    if (!IsGood(desc)) continue;
    ONNXIFI_ASSIGN_OR_RETURN(StoredTensor a_arg, builder.As(a_place, desc.src_desc()));
    ONNXIFI_ASSIGN_OR_RETURN(StoredTensor b_arg, builder.As(b_place, desc.weights_desc()));
    const StoredTensor target = builder.Target(result_place, desc.dst_desc());
    std::vector<Argument> arguments = {{DNNL_ARG_SRC, std::move(a_arg)},
                                       {DNNL_ARG_WEIGHTS, std::move(b_arg)},
                                       {DNNL_ARG_DST, target}};
    ONNXIFI_RETURN_IF_ERROR(post_ops.AddArguments(desc, builder, arguments));
    builder.Append(dnnl::matmul(desc), desc, std::move(arguments));
    return builder.Deliver(target, result_place);
  }
  return NoGoodPrimitive("matmul");
}

}  // namespace

runtime::RecipeResult SelectMatMul(const device::Facts& facts, EdgePlacement edge_placement,
                                   std::string_view implementation) {
  const Contract* contract = facts.step.As<Contract>();
  if (contract == nullptr || contract->form != Contract::Form::kMatMul) {
    return Status(Code::kUnsupportedOperator, "The step is no matrix product.");
  }
  return MakeRecipe(implementation, facts, LayOutMatMul, edge_placement);
}

}  // namespace onnxifi::onednn
