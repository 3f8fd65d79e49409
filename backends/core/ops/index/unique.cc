// SPDX-License-Identifier: Apache-2.0
//
// Unique: every element gets a key whose order is the order of the elements; keys are sorted, equal
// neighbours form a group, and groups are numbered by a running sum. A slice's key is its rank
// among the slices: ranks of single places are joined by twos until one per slice is left. Strings
// are keyed by their rank, too.

#include <cstdint>

#include "backends/core/ops/host_step.h"
#include "backends/core/ops/index/positions.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using program::Index;

constexpr ElementType kInt = ElementType::kInt64;
// Of a slice, where their number is a symbol.
constexpr int64_t kMaxOpenElements = int64_t{1} << 24;

struct Sorted {
  Operand values;
  Operand positions;
};

// `keys` ascending along their last axis; equal keys keep their order.
Sorted Sort(Lowering& lowering, const Operand& keys) {
  Index sort;
  sort.kind = Index::Kind::kTopK;
  sort.k = keys.shape.back();
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

// The number of each sorted key's group along the last axis, from 0.
Operand GroupNumbers(Lowering& lowering, const Operand& sorted) {
  StepBuilder scan(lowering, sorted.shape);
  const int axis = sorted.rank() - 1;
  std::vector<Expr> at;
  for (int k = 0; k <= axis; ++k) at.push_back(scan.Coordinate(k));
  std::vector<Expr> before = at;
  before[axis] = at[axis] - scan.Extent(1);
  const GuardedSource source(scan, sorted, {axis});
  const ElementType type = tensor::ArithmeticType(sorted.type());
  const Expr is_new =
      at[axis] > scan.Extent(0) && !(Cast(source.At(at), type) == Cast(source.At(before), type));
  const Expr sum = State(scan.exprs(), kInt, 0);
  program::Scan body;
  body.reduction.states = {{kInt, scan.Extent(0).id(), (sum + Cast(is_new, kInt)).id(),
                            (sum + Other(scan.exprs(), kInt, 0)).id()}};
  body.roots = {sum.id()};
  Operand groups = lowering.Temporary(kInt, sorted.shape);
  scan.Finish(std::move(body), {groups.view});
  return groups;
}

// Writes the rank of each of `keys` [rows, n] among its row's distinct ones into the first rows of
// `ranks`.
void WriteRanks(Lowering& lowering, const Operand& keys, const Operand& ranks) {
  const Sorted sorted = Sort(lowering, keys);
  const Operand groups = GroupNumbers(lowering, sorted.values);
  StepBuilder rows(lowering, keys.shape);
  const Operand row = rows.WriteMap(rows.Coordinate(0), kInt);
  Index scatter;
  scatter.target = ranks.shape;
  StepBuilder step(lowering, keys.shape);
  step.AddRead(groups.view);
  step.AddRead(row.view);
  step.AddRead(sorted.positions.view);
  step.Finish(std::move(scatter), {ranks.view});
}

// A rank per row becomes one per two rows, the first of which counts more; a last one without a
// partner keeps its own. `ranks` [m, n], of numbers less than n.
Operand JoinPairs(Lowering& lowering, const Operand& ranks) {
  const Dim m = ranks.shape[0];
  const Dim n = ranks.shape[1];
  StepBuilder keep(lowering, {CeilDiv(m, 2), n});
  const Expr lone =
      ReadGuarded(keep, ranks, {keep.Coordinate(0) * keep.Extent(2), keep.Coordinate(1)}, {0});
  Operand joined = keep.WriteMap(lone, kInt);
  StepBuilder pair(lowering, {FloorDiv(m, 2), n});
  const Expr first = pair.Coordinate(0) * pair.Extent(2);
  const GuardedSource source(pair, ranks, {0});
  const Operand keys = pair.WriteMap(source.At({first, pair.Coordinate(1)}) * pair.Extent(n) +
                                         source.At({first + pair.Extent(1), pair.Coordinate(1)}),
                                     kInt);
  WriteRanks(lowering, keys, joined);
  return joined;
}

// The rank of each of the slices [n, m] among the distinct ones, in the order of the first element
// in which two differ: time and memory grow with n * m.
Result<Operand> SliceKeys(Lowering& lowering, const Operand& slices) {
  const Dim n = slices.shape[0];
  const Dim m = slices.shape[1];
  StepBuilder zeros(lowering, {m, n});
  Operand ranks = zeros.WriteMap(zeros.Extent(0), kInt);
  WriteRanks(lowering, program::Permute(slices, {1, 0}), ranks);
  // With an open m as many times as the longest slice needs; once one row is left, nothing is
  // sorted any more.
  const Dim longest = m.is_constant() ? m : Dim(kMaxOpenElements);
  if (!m.is_constant()) {
    ONNXIFI_RETURN_IF_ERROR(lowering.Require(Less(m, kMaxOpenElements + 1), Code::kUnsupportedShape,
                                             "A slice has " + m.ToString() + " elements; at most " +
                                                 std::to_string(kMaxOpenElements) +
                                                 " are supported where their number is a symbol.",
                                             {m}));
  }
  for (int64_t rows = longest.constant(); rows > 1; rows = (rows + 1) / 2) {
    ranks = JoinPairs(lowering, ranks);
  }
  // Slices without elements are equal.
  StepBuilder map(lowering, {n});
  return map.WriteMap(ReadGuarded(map, ranks, {map.Extent(0), map.Coordinate(0)}, {0}), kInt);
}

// The rank of each string among the distinct ones.
Operand StringRanks(Lowering& lowering, const Operand& strings) {
  HostStep step(lowering, program::RankStrings());
  step.Read(strings);
  const Operand ranks = step.WriteTensor(kInt, {strings.shape.begin(), strings.shape.end()});
  step.Emit();
  return ranks;
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
  const bool is_text = type == ElementType::kString;
  if (!is_text && !tensor::IsFloat(x.type()) && !tensor::IsInteger(x.type())) {
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
  Operand keys = is_text ? StringRanks(lowering, x) : x;
  if (has_axis) {
    std::vector<int> axis_first = {axis};
    for (int other = 0; other < x.rank(); ++other) {
      if (other != axis) axis_first.push_back(other);
    }
    const Operand moved = program::Permute(keys, axis_first);
    const Dim m = Product(std::span<const Dim>(moved.shape).subspan(1));
    ONNXIFI_ASSIGN_OR_RETURN(keys, SliceKeys(lowering, lowering.Reshaped(moved, {n, m})));
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
  lowering.Set(0, map.WriteMap(Cast(ReadGuarded(map, x, at, {axis}), StoredType(type)), type));
  lowering.Set(1, first);
  lowering.Set(2, inverse);
  lowering.Set(3, counts);
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Unique", 28, LowerUnique, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> UniqueOperators() { return kOperators; }

}  // namespace onnxifi::ops
