// SPDX-License-Identifier: Apache-2.0
//
// Unique: every element gets a key whose order is the order of the elements; keys are sorted, equal
// neighbours form a group, and groups are numbered by a running sum. Slices along an axis are keyed
// by how many slices come before them.

#include <cstdint>

#include "backends/core/ops/index/positions.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using program::Index;

constexpr ElementType kInt = ElementType::kInt64;

struct Sorted {
  Operand values;
  Operand positions;
};

// `keys` [n] ascending; equal keys keep their order.
Sorted Sort(Lowering& lowering, const Operand& keys) {
  Index sort;
  sort.kind = Index::Kind::kTopK;
  sort.k = keys.shape[0];
  sort.largest = false;
  Sorted sorted{lowering.Temporary(keys.type(), keys.shape), lowering.Temporary(kInt, keys.shape)};
  StepBuilder step(lowering, keys.shape);
  step.AddRead(keys.view);
  step.Finish(std::move(sort), {sorted.values.view, sorted.positions.view});
  return sorted;
}

// target[at[i]] = combine(target[at[i]], updates[i]) over vectors, the target starting out as
// `initial`.
Operand ScatterInto(Lowering& lowering, Dim length, int64_t initial, const Operand& at,
                    const Operand& updates, Index::Combine combine) {
  StepBuilder fill(lowering, {length});
  Operand target = fill.WriteMap(fill.Extent(initial), kInt);
  Index scatter;
  scatter.combine = combine;
  scatter.target = {length};
  StepBuilder step(lowering, at.shape);
  step.AddRead(updates.view);
  step.AddRead(at.view);
  step.Finish(std::move(scatter), {target.view});
  return target;
}

// source[at[i]]
Operand Gathered(Lowering& lowering, const Operand& source, const Operand& at) {
  StepBuilder map(lowering, at.shape);
  return map.WriteMap(map.ReadAt(source, {map.ReadView(at.view)}), source.type());
}

// How many of the slices [n, m] stand before each: the first element in which two differ decides
// between them.
Operand SliceKeys(Lowering& lowering, const Operand& slices) {
  const Dim n = slices.shape[0];
  const Dim m = slices.shape[1];
  const Operand order = lowering.Temporary(kInt, {n, n});
  {
    // The state is the first differing place and whether the second slice is the smaller there.
    StepBuilder step(lowering, {n, n, m});
    const Expr place = step.Coordinate(2);
    const Expr first = Cast(step.ReadAtUnchecked(slices, {step.Coordinate(0), place}),
                            tensor::ArithmeticType(slices.type()));
    const Expr second = Cast(step.ReadAtUnchecked(slices, {step.Coordinate(1), place}),
                             tensor::ArithmeticType(slices.type()));
    const Expr at = State(step.exprs(), kInt, 0);
    const Expr is_after = State(step.exprs(), kInt, 1);
    const Expr is_first_difference = !(first == second) && place < at;
    const Expr other_at = Other(step.exprs(), kInt, 0);
    const Expr other_after = Other(step.exprs(), kInt, 1);
    program::Reduce reduce;
    reduce.axes = 1;
    reduce.reduction.states = {
        {kInt, step.Extent(m).id(), Select(is_first_difference, place, at).id(),
         Minimum(at, other_at).id()},
        {kInt, step.Extent(0).id(),
         Select(is_first_difference, Cast(second < first, kInt), is_after).id(),
         Select(other_at < at, other_after, is_after).id()}};
    reduce.roots = {is_after.id()};
    step.Finish(std::move(reduce), {order.view});
  }
  Operand keys = lowering.Temporary(kInt, {n});
  StepBuilder step(lowering, {n, n});
  const Expr count = State(step.exprs(), kInt, 0);
  program::Reduce reduce;
  reduce.axes = 1;
  reduce.reduction.states = {{kInt, step.Extent(0).id(), (count + step.ReadView(order.view)).id(),
                              (count + Other(step.exprs(), kInt, 0)).id()}};
  reduce.roots = {count.id()};
  step.Finish(std::move(reduce), {keys.view});
  return keys;
}

// The number of each sorted key's group, from 0.
Operand GroupNumbers(Lowering& lowering, const Operand& sorted) {
  StepBuilder scan(lowering, sorted.shape);
  const Expr i = scan.Coordinate(0);
  const GuardedSource source(scan, sorted, {0});
  const ElementType type = tensor::ArithmeticType(sorted.type());
  const Expr is_new = i > scan.Extent(0) &&
                      !(Cast(source.At({i}), type) == Cast(source.At({i - scan.Extent(1)}), type));
  const Expr sum = State(scan.exprs(), kInt, 0);
  program::Scan body;
  body.reduction.states = {{kInt, scan.Extent(0).id(), (sum + Cast(is_new, kInt)).id(),
                            (sum + Other(scan.exprs(), kInt, 0)).id()}};
  body.roots = {sum.id()};
  Operand groups = lowering.Temporary(kInt, sorted.shape);
  scan.Finish(std::move(body), {groups.view});
  return groups;
}

// One more than the last group's number, or 0 where there is none.
Dim CountGroups(Lowering& lowering, const Operand& groups) {
  StepBuilder map(lowering, {Dim(1)});
  const Dim n = groups.shape[0];
  const Expr last = map.ReadAt(groups, {map.Extent(n - 1)});
  const Expr count = Select(map.Extent(0) < map.Extent(n), last + map.Extent(1), map.Extent(0));
  return lowering.ReadAtRunTime(map.WriteMap(count, kInt), 1, /*lower=*/0).front();
}

Status LowerUnique(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  Operand x = lowering.In(0);
  const ElementType type = x.type();
  if (tensor::IsBool(type))
    x = lowering.CastTo(x, ElementType::kUint8);  // In the order of numbers.
  if (!tensor::IsFloat(x.type()) && !tensor::IsInteger(x.type())) {
    return lowering.UnsupportedType(0);
  }
  const bool has_axis = lowering.HasAttribute("axis");
  int axis = 0;
  if (has_axis) {
    ONNXIFI_ASSIGN_OR_RETURN(axis, lowering.Axis(lowering.Int("axis", 0), x.rank()));
  } else {
    x = lowering.Reshaped(x, {Product(x.shape)});
  }
  const Dim n = x.shape[axis];
  Operand keys = x;
  if (has_axis) {
    std::vector<int> axis_first = {axis};
    for (int other = 0; other < x.rank(); ++other) {
      if (other != axis) axis_first.push_back(other);
    }
    const Operand moved = program::Permute(x, axis_first);
    const Dim m = Product(std::span<const Dim>(moved.shape).subspan(1));
    keys = SliceKeys(lowering, lowering.Reshaped(moved, {n, m}));
  }

  const Sorted sorted = Sort(lowering, keys);
  Operand groups = GroupNumbers(lowering, sorted.values);
  const Dim count = CountGroups(lowering, groups);
  Operand first =
      ScatterInto(lowering, count, INT64_MAX, groups, sorted.positions, Index::Combine::kMin);
  StepBuilder ones(lowering, {n});
  const Operand one = ones.WriteMap(ones.Extent(1), kInt);
  Operand counts = ScatterInto(lowering, count, 0, groups, one, Index::Combine::kAdd);
  Operand inverse = ScatterInto(lowering, n, 0, sorted.positions, groups, Index::Combine::kNone);
  if (lowering.Int("sorted", 1) == 0) {
    // Groups in the order of their first elements.
    const Sorted order = Sort(lowering, first);
    StepBuilder numbers(lowering, {count});
    const Operand number = numbers.WriteMap(numbers.Coordinate(0), kInt);
    const Operand rank =
        ScatterInto(lowering, count, 0, order.positions, number, Index::Combine::kNone);
    first = order.values;
    counts = Gathered(lowering, counts, order.positions);
    inverse = Gathered(lowering, rank, inverse);
  }
  Shape shape = x.shape;
  shape[axis] = count;
  StepBuilder map(lowering, shape);
  std::vector<Expr> at;
  for (int k = 0; k < x.rank(); ++k) at.push_back(map.Coordinate(k));
  Operand aligned = first;
  while (aligned.rank() < x.rank() - axis) aligned = program::InsertAxis(aligned, aligned.rank());
  at[axis] = map.Read(aligned);
  lowering.Set(0, map.WriteMap(Cast(ReadGuarded(map, x, at, {axis}), type), type));
  lowering.Set(1, first);
  lowering.Set(2, inverse);
  lowering.Set(3, counts);
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Unique", 28, LowerUnique},
};

}  // namespace

std::span<const Operator> UniqueOperators() { return kOperators; }

}  // namespace onnxifi::ops
