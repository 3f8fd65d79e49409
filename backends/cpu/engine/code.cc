// SPDX-License-Identifier: Apache-2.0
//
// Code: compilation in ascending order of node ids, which is an evaluation order, and the
// assignment of slots: a value's slot is free again after the last instruction that reads it.

#include "backends/cpu/engine/code.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>

#include "backends/core/reference/column.h"
#include "backends/cpu/engine/cast_chain.h"

namespace onnxifi::engine {
namespace {

using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;

bool IsOutside(ExprOp op) {
  return op == ExprOp::kState || op == ExprOp::kOther || op == ExprOp::kRow;
}

using Walks = std::unordered_map<ExprId, TreeWalk>;

// The nodes that evaluating `roots` meets if those in `provided` are known, operands first. Finds
// `walks` where nothing is provided; what lies on their ways is not met.
std::vector<ExprId> FindMet(const program::ExprPool& pool, std::span<const ExprId> roots,
                            std::span<const ExprId> provided, Walks& walks) {
  std::vector<ExprId> all = program::Reachable(pool, roots);
  std::unordered_map<ExprId, bool> is_met;
  for (ExprId root : roots) is_met[root] = true;
  for (auto id = all.rbegin(); id != all.rend(); ++id) {
    if (!is_met[*id] || std::find(provided.begin(), provided.end(), *id) != provided.end()) {
      continue;
    }
    if (provided.empty()) {
      if (const std::optional<TreeWalk> walk = FindTreeWalk(pool, *id)) {
        walks.emplace(*id, *walk);
        is_met[walk->row] = is_met[walk->entry] = true;
        continue;
      }
    }
    for (ExprId operand : pool[*id].operands) is_met[operand] = true;
  }
  std::erase_if(all, [&](ExprId id) { return !is_met[id]; });
  return all;
}

void RunCopy(const LoopOperands& operands) {
  std::memcpy(operands.result, operands.inputs[0],
              static_cast<size_t>(operands.lanes * reference::LaneBytes(operands.type)));
}

int64_t CostOf(ExprOp op, ElementType type) {
  const int64_t width = std::max(1, tensor::BitWidth(type) / 8);
  if (op >= ExprOp::kExp && op <= ExprOp::kErf) return 250 * width;
  switch (op) {
    case ExprOp::kPow:
    case ExprOp::kMod:
    case ExprOp::kFmod:
    case ExprOp::kRandom:
      return 500 * width;
    case ExprOp::kDiv:
    case ExprOp::kSqrt:
      return 60 * width;
    case ExprOp::kLoad:
      return 40 * width;
    default:
      return 15 * width;
  }
}

base::Status CheckType(ElementType type) {
  const int bits = tensor::BitWidth(type);
  if (bits >= 8 && bits <= 64 && !tensor::IsComplex(type)) return base::Ok();
  return base::Status(
      base::Code::kUnsupportedDatatype,
      "Elements of type " + std::string(tensor::Name(type)) +
          " have no lanes in the tile engine, which has those of whole, real types.");
}

}  // namespace

base::Status CheckExpressions(const program::ExprPool& pool, std::span<const ExprId> roots,
                              std::span<const ExprId> provided) {
  for (ExprId id : program::Reachable(pool, roots)) {
    const ExprNode& node = pool[id];
    ONNXIFI_RETURN_IF_ERROR(CheckType(node.type));
    if (std::find(provided.begin(), provided.end(), id) != provided.end()) continue;
    if (node.op == ExprOp::kAccumulator) {
      return base::Status(base::Code::kUnsupportedOperator,
                          "The tile engine has no accumulators of contractions.");
    }
    if (program::IsLeaf(node.op)) continue;
    const ElementType from_type = pool[node.operands[0]].type;
    if (FindLoop(node.op, node.type, from_type, LoopSet::kFast) == nullptr) {
      return base::Status(base::Code::kUnsupportedDatatype,
                          "The operation " + std::string(program::Name(node.op)) +
                              " is not defined on " + std::string(tensor::Name(from_type)) + ".");
    }
  }
  return base::Ok();
}

Code Code::Compile(const program::ExprPool& pool, std::span<const ExprId> roots, LoopSet loops,
                   std::span<const ExprId> provided) {
  Code code;
  std::unordered_map<ExprId, int> value_of;
  Walks walks;
  for (ExprId id : FindMet(pool, roots, provided, walks)) {
    const ExprNode& node = pool[id];
    const int result = static_cast<int>(code.values_.size());
    value_of[id] = result;
    if (const auto at = std::find(provided.begin(), provided.end(), id); at != provided.end()) {
      code.values_.push_back({node.type});
      code.outside_.push_back(
          {ExprOp::kAccumulator, static_cast<uint64_t>(at - provided.begin()), result});
      continue;
    }
    if (IsOutside(node.op)) {
      code.values_.push_back({node.type});
      code.outside_.push_back({node.op, node.payload, result});
      continue;
    }
    Instruction instruction{.kind = Kind::kLoop, .op = node.op, .type = node.type};
    instruction.payload = node.payload;
    instruction.result = result;
    instruction.dim = node.dim;
    if (const auto found = walks.find(id); found != walks.end()) {
      instruction.kind = Kind::kWalk;
      instruction.walk = found->second;
      instruction.inputs = {value_of.at(found->second.row), value_of.at(found->second.entry)};
      code.values_.push_back({node.type, /*is_uniform=*/false});
      constexpr int64_t kCostOfLevel = 1500;
      code.cost_ += kCostOfLevel * found->second.levels;
      code.varying_.push_back(std::move(instruction));
      continue;
    }
    bool is_uniform = true;
    for (ExprId operand : node.operands) {
      instruction.inputs.push_back(value_of.at(operand));
      is_uniform = is_uniform && code.values_[value_of.at(operand)].is_uniform;
    }
    switch (node.op) {
      case ExprOp::kConstant:
      case ExprOp::kDim:
        instruction.kind = Kind::kUniform;
        break;
      case ExprOp::kIndex:
        instruction.kind = Kind::kIndex;
        is_uniform = false;
        break;
      case ExprOp::kLoad:
        instruction.kind = node.operands.empty() ? Kind::kLoad : Kind::kLoadAt;
        is_uniform = false;
        break;
      default:
        instruction.from_type = pool[node.operands[0]].type;
        instruction.loop = FindLoop(node.op, node.type, instruction.from_type, loops);
        break;
    }
    code.values_.push_back({node.type, is_uniform});
    if (!is_uniform) code.cost_ += CostOf(node.op, node.type);
    (is_uniform ? code.uniform_ : code.varying_).push_back(std::move(instruction));
  }
  for (ExprId root : roots) {
    if (root == program::kNoExpr) {
      code.roots_.push_back(-1);
      continue;
    }
    int value = value_of.at(root);
    const bool is_outside = std::any_of(code.outside_.begin(), code.outside_.end(),
                                        [&](const Outside& o) { return o.value == value; });
    if (is_outside) {
      // Where it comes from may be overwritten by another root before this one is read.
      Instruction copy{.kind = Kind::kLoop, .op = ExprOp::kSelect, .type = pool[root].type};
      copy.loop = RunCopy;
      copy.inputs = {value};
      value = copy.result = static_cast<int>(code.values_.size());
      code.values_.push_back({copy.type});
      code.varying_.push_back(std::move(copy));
    }
    code.roots_.push_back(value);
  }
  code.SubtractAsFloats(loops);
  code.RoundAtOnce();
  code.ChooseBySign();
  code.FuseOperations(loops);
  code.AssignSlots();
  return code;
}

Code Code::CompileByRows(const program::ExprPool& pool, std::span<const ExprId> roots,
                         LoopSet loops, const RowLoads& loads, int row_axis) {
  const std::vector<ExprId> provided = loads.Provided();
  Code code = Compile(pool, roots, loops, provided);
  code.loads_rows_ = true;
  // The node of a value that is an index or comes from outside.
  std::unordered_map<int, ExprId> outside;
  for (const Outside& value : code.outside_) outside.emplace(value.value, provided[value.payload]);
  auto is_along = [&](int value) {
    const auto found = outside.find(value);
    if (found != outside.end()) {
      const ExprNode& node = pool[found->second];
      return node.op == ExprOp::kIndex && node.payload == static_cast<uint64_t>(row_axis);
    }
    return std::any_of(code.varying_.begin(), code.varying_.end(), [&](const Instruction& other) {
      return other.result == value && other.kind == Kind::kIndex &&
             other.payload == static_cast<uint64_t>(row_axis);
    });
  };
  for (Instruction& instruction : code.varying_) {
    if (instruction.kind != Kind::kLoadAt) continue;
    for (size_t k = 0; k < instruction.inputs.size(); ++k) {
      const int value = instruction.inputs[k];
      if (is_along(value)) instruction.along = static_cast<int>(k);
      const auto found = outside.find(value);
      if (found != outside.end() && loads.IsColumn(found->second)) {
        instruction.columns |= uint32_t{1} << k;
      }
    }
  }
  return code;
}

std::vector<int> Code::CountUses() const {
  std::vector<int> uses(values_.size(), 0);
  for (const std::vector<Instruction>* instructions : {&uniform_, &varying_}) {
    for (const Instruction& instruction : *instructions) {
      for (int input : instruction.inputs) ++uses[input];
    }
  }
  for (int root : roots_) {
    if (root >= 0) ++uses[root];
  }
  return uses;
}

// A difference of integers of up to 16 bits, which DequantizeLinear computes in int32 and casts to
// float32, is exact in float32 as well, where it is a fused operation and one cast less.
void Code::SubtractAsFloats(LoopSet loops) {
  const std::vector<int> uses = CountUses();
  std::vector<Instruction*> made_by(values_.size(), nullptr);
  for (std::vector<Instruction>* instructions : {&uniform_, &varying_}) {
    for (Instruction& instruction : *instructions) made_by[instruction.result] = &instruction;
  }
  const auto find_sole = [&](int value, ExprOp op, ElementType type) {
    Instruction* maker = made_by[value];
    const bool is_it = maker != nullptr && uses[value] == 1 && maker->op == op &&
                       maker->type == type && maker->kind == Kind::kLoop;
    return is_it ? maker : nullptr;
  };
  std::vector<bool> is_left_out(values_.size(), false);
  for (Instruction& cast : varying_) {
    const bool is_cast = cast.op == ExprOp::kCast && cast.type == ElementType::kFloat32 &&
                         cast.from_type == ElementType::kInt32;
    if (!is_cast) continue;
    const Instruction* difference = find_sole(cast.inputs[0], ExprOp::kSub, ElementType::kInt32);
    if (difference == nullptr) continue;
    const std::vector<int> inputs = difference->inputs;
    const auto find_constant = [&](int input) {
      Instruction* maker = made_by[input];
      const bool is_it = maker != nullptr && uses[input] == 1 && maker->kind == Kind::kUniform &&
                         maker->op == ExprOp::kConstant && maker->type == ElementType::kInt32;
      return is_it ? maker : nullptr;
    };
    const bool are_narrow = std::all_of(inputs.begin(), inputs.end(), [&](int input) {
      if (const Instruction* constant = find_constant(input)) {
        const auto number = tensor::Scalar{.u = constant->payload}.i;
        return number == static_cast<int16_t>(number) || number == static_cast<uint16_t>(number);
      }
      const Instruction* maker = find_sole(input, ExprOp::kCast, ElementType::kInt32);
      return maker != nullptr && tensor::IsInteger(maker->from_type) &&
             tensor::BitWidth(maker->from_type) <= 16;
    });
    if (!are_narrow) continue;
    for (int input : inputs) {
      Instruction* const constant = find_constant(input);
      Instruction& narrow = *made_by[input];
      narrow.type = values_[input].type = ElementType::kFloat32;
      if (constant != nullptr) {
        const auto number = tensor::Scalar{.u = constant->payload}.i;
        constant->payload = tensor::Scalar{.f = static_cast<double>(number)}.u;
        continue;
      }
      narrow.loop = FindLoop(ExprOp::kCast, narrow.type, narrow.from_type, loops);
    }
    is_left_out[difference->result] = true;
    cast.op = ExprOp::kSub;
    cast.from_type = ElementType::kFloat32;
    cast.inputs = inputs;
    cast.loop = FindLoop(ExprOp::kSub, cast.type, cast.from_type, loops);
  }
  std::erase_if(varying_,
                [&](const Instruction& instruction) { return is_left_out[instruction.result]; });
}

// A float32 that is rounded to a narrower float and widened again, as between two operations of
// float16, is one loop where nobody else reads the narrow one.
void Code::RoundAtOnce() {
  const std::vector<int> uses = CountUses();
  std::vector<const Instruction*> rounding_by(values_.size(), nullptr);
  for (const Instruction& instruction : varying_) {
    // Another rounding than to the nearest has another loop.
    const bool is_rounding =
        instruction.kind == Kind::kLoop && instruction.op == ExprOp::kCast &&
        instruction.from_type == ElementType::kFloat32 &&
        instruction.loop == FindCastLoop(ElementType::kFloat32, instruction.type) &&
        static_cast<tensor::Rounding>(instruction.payload >> 1) == tensor::Rounding::kNearestEven;
    if (is_rounding) rounding_by[instruction.result] = &instruction;
  }
  std::vector<bool> is_left_out(values_.size(), false);
  for (Instruction& cast : varying_) {
    const bool is_cast =
        cast.kind == Kind::kLoop && cast.op == ExprOp::kCast && cast.type == ElementType::kFloat32;
    if (!is_cast || uses[cast.inputs[0]] != 1) continue;
    const Instruction* const rounding = rounding_by[cast.inputs[0]];
    const Loop loop = rounding != nullptr ? FindCastAndBackLoop(rounding->type) : nullptr;
    if (loop == nullptr) continue;
    is_left_out[rounding->result] = true;
    // No cast any more to what looks for casts.
    cast.op = ExprOp::kSelect;
    cast.from_type = ElementType::kUndefined;
    cast.inputs = rounding->inputs;
    cast.loop = loop;
  }
  std::erase_if(varying_,
                [&](const Instruction& instruction) { return is_left_out[instruction.result]; });
}

// Where a float32 is chosen by the sign of what it is chosen beside, as LeakyRelu, PRelu, Elu and
// Selu do, the comparison and the choice are one operation, which can be fused.
void Code::ChooseBySign() {
  const std::vector<int> uses = CountUses();
  std::vector<const Instruction*> made_by(values_.size(), nullptr);
  for (const std::vector<Instruction>* instructions : {&uniform_, &varying_}) {
    for (const Instruction& instruction : *instructions) made_by[instruction.result] = &instruction;
  }
  const auto is_zero = [&](int value) {
    const Instruction* const maker = made_by[value];
    return maker != nullptr && maker->kind == Kind::kUniform && maker->op == ExprOp::kConstant &&
           tensor::Scalar{.u = maker->payload}.f == 0;
  };
  std::vector<bool> is_left_out(values_.size(), false);
  for (Instruction& select : varying_) {
    const bool is_select = select.kind == Kind::kLoop && select.op == ExprOp::kSelect &&
                           select.type == ElementType::kFloat32 && select.inputs.size() == 3;
    if (!is_select || uses[select.inputs[0]] != 1) continue;
    const Instruction* const less = made_by[select.inputs[0]];
    const bool is_less = less != nullptr && less->kind == Kind::kLoop &&
                         less->op == ExprOp::kLess && less->from_type == ElementType::kFloat32;
    if (!is_less) continue;
    const int if_true = select.inputs[1], if_false = select.inputs[2];
    if (less->inputs[0] == if_false && is_zero(less->inputs[1])) {
      select.choice = FusedOp::kIfNegative;
      select.inputs = {if_true, if_false};
    } else if (less->inputs[1] == if_true && is_zero(less->inputs[0])) {
      select.choice = FusedOp::kUnlessPositive;
      select.inputs = {if_false, if_true};
    } else {
      continue;
    }
    is_left_out[less->result] = true;
    select.from_type = ElementType::kFloat32;
    select.loop = nullptr;
  }
  std::erase_if(varying_,
                [&](const Instruction& instruction) { return is_left_out[instruction.result]; });
}

void Code::FuseOperations(LoopSet loops) {
  const std::vector<int> uses = CountUses();
  auto find_op = [&](const Instruction& instruction,
                     bool value_is_first) -> std::optional<FusedOp> {
    if (instruction.choice) {
      return value_is_first ? *instruction.choice : ExchangeOperands(*instruction.choice);
    }
    const bool is_float32 = instruction.kind == Kind::kLoop &&
                            instruction.type == ElementType::kFloat32 &&
                            instruction.from_type == ElementType::kFloat32;
    return is_float32 ? FindFusedOp(instruction.op, value_is_first, loops) : std::nullopt;
  };
  struct Fused {
    std::vector<FusedOperation> operations;  // none: the instruction can be no operation
    std::vector<int> inputs;
    FusedLanes first_lanes = FusedLanes::kFloat32;
    FusedLanes result_lanes = FusedLanes::kFloat32;
    bool is_joined = false;  // to a later one
  };
  std::vector<Fused> fused_at(varying_.size());
  // By value, the position in varying_ of what makes it; -1 for what cannot be a fused operation,
  // or no cast that an operation can begin with, or no bytes that operations end in.
  std::vector<int> made_by(values_.size(), -1), cast_by(values_.size(), -1);
  std::vector<int> bytes_by(values_.size(), -1);
  const auto is_cast = [&](int value) { return cast_by[value] >= 0 && uses[value] == 1; };
  for (size_t at = 0; at < varying_.size(); ++at) {
    const Instruction& instruction = varying_[at];
    const std::vector<int>& inputs = instruction.inputs;
    Fused& fused = fused_at[at];
    if (instruction.kind == Kind::kLoop && instruction.op == ExprOp::kCast) {
      const bool is_to_float = instruction.type == ElementType::kFloat32;
      if (is_to_float && bytes_by[inputs[0]] >= 0 && uses[inputs[0]] == 1) {
        Fused& before = fused_at[bytes_by[inputs[0]]];
        if (before.operations.size() < kMaxFusedOperations) {
          fused = before;
          fused.result_lanes = FusedLanes::kFloat32;
          fused.operations.push_back({before.result_lanes == FusedLanes::kInt8
                                          ? FusedOp::kWrapInt8
                                          : FusedOp::kWrapUint8});
          before.is_joined = true;
          made_by[instruction.result] = static_cast<int>(at);
          continue;
        }
      }
      if (is_to_float && FindCastFrom(instruction.from_type)) {
        cast_by[instruction.result] = static_cast<int>(at);
      }
      const bool is_last = instruction.from_type == ElementType::kFloat32 &&
                           FindCastTo(instruction.type) && made_by[inputs[0]] >= 0 &&
                           uses[inputs[0]] == 1;
      if (!is_last) continue;
      Fused& before = fused_at[made_by[inputs[0]]];
      fused = before;
      fused.result_lanes = *FindCastTo(instruction.type);
      before.is_joined = true;
      bytes_by[instruction.result] = static_cast<int>(at);
      continue;
    }
    if (!find_op(instruction, true)) continue;
    made_by[instruction.result] = static_cast<int>(at);
    // Of the value.
    size_t side = inputs.size() == 2 && values_[inputs[0]].is_uniform ? 1 : 0;
    if (inputs.size() == 2 && !is_cast(inputs[side]) && is_cast(inputs[1 - side])) side = 1 - side;
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (made_by[inputs[k]] < 0 || uses[inputs[k]] != 1) continue;
      Fused& before = fused_at[made_by[inputs[k]]];
      if (before.operations.size() == kMaxFusedOperations) continue;
      fused = before;
      before.is_joined = true;
      side = k;
      break;
    }
    if (fused.operations.empty()) {
      fused.inputs = {inputs[side]};
      if (is_cast(inputs[side])) {
        const int cast = cast_by[inputs[side]];
        fused.inputs = varying_[cast].inputs;
        fused.first_lanes = *FindCastFrom(varying_[cast].from_type);
        fused_at[cast].is_joined = true;
      }
    }
    fused.operations.push_back({*find_op(instruction, side == 0)});
    if (inputs.size() == 2) {
      fused.inputs.push_back(inputs[1 - side]);
      fused.operations.back().is_uniform = values_[inputs[1 - side]].is_uniform;
    }
  }
  std::vector<Instruction> left;
  for (size_t at = 0; at < varying_.size(); ++at) {
    Fused& fused = fused_at[at];
    if (fused.is_joined) continue;
    left.push_back(std::move(varying_[at]));
    const bool casts =
        fused.first_lanes != FusedLanes::kFloat32 || fused.result_lanes != FusedLanes::kFloat32;
    const bool is_one_loop = fused.operations.size() < 2 && !casts && !left.back().choice &&
                             (fused.operations.empty() || !fused.operations[0].is_uniform);
    left.back().operations = std::move(fused.operations);
    if (is_one_loop) continue;
    left.back().kind = Kind::kFused;
    left.back().inputs = std::move(fused.inputs);
    left.back().first_lanes = fused.first_lanes;
    left.back().result_lanes = fused.result_lanes;
    MarkPatterns(left.back().operations);
  }
  varying_ = std::move(left);
}

void Code::AssignSlots() {
  constexpr int kForever = INT32_MAX;
  std::vector<int> last_use(values_.size(), -1);  // position in varying_
  for (size_t at = 0; at < varying_.size(); ++at) {
    for (int input : varying_[at].inputs) last_use[input] = static_cast<int>(at);
    last_use[varying_[at].result] = static_cast<int>(at);
  }
  for (int root : roots_) {
    if (root >= 0) last_use[root] = kForever;
  }
  for (const Instruction& instruction : uniform_) last_use[instruction.result] = kForever;

  std::vector<int> idle;
  auto take = [&](Value& value) {
    const int64_t lane_bytes = reference::LaneBytes(value.type);
    const auto fitting = std::find_if(idle.rbegin(), idle.rend(), [&](int slot) {
      return slots_[slot].lane_bytes == lane_bytes;
    });
    if (fitting != idle.rend()) {
      value.slot = *fitting;
      idle.erase(std::next(fitting).base());
      return;
    }
    value.slot = static_cast<int>(slots_.size());
    slots_.push_back({lane_bytes});
  };
  for (const Instruction& instruction : uniform_) take(values_[instruction.result]);
  for (size_t at = 0; at < varying_.size(); ++at) {
    const Instruction& instruction = varying_[at];
    // Before the inputs' slots are given back: a loop may run over its lanes in any order.
    take(values_[instruction.result]);
    std::vector<int> ending = instruction.inputs;
    ending.push_back(instruction.result);
    std::sort(ending.begin(), ending.end());
    ending.erase(std::unique(ending.begin(), ending.end()), ending.end());
    for (int value : ending) {
      if (last_use[value] == static_cast<int>(at) && values_[value].slot >= 0) {
        idle.push_back(values_[value].slot);
      }
    }
  }
}

}  // namespace onnxifi::engine
