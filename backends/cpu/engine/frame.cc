// SPDX-License-Identifier: Apache-2.0
//
// Frame: the loop over instructions. A load of elements that lie as a tile wants them is an
// address; a root whose write lies so is computed in place.

#include "backends/cpu/engine/frame.h"

#include <algorithm>
#include <cstring>

#include "backends/core/reference/column.h"
#include "backends/cpu/engine/any_address.h"
#include "backends/cpu/engine/cast_chain.h"
#include "backends/cpu/engine/computed_loads.h"
#include "backends/cpu/engine/lane_types.h"

namespace onnxifi::engine {
namespace {

using program::ExprOp;
using tensor::ElementType;

constexpr int64_t kLine = 64;

int64_t RoundUp(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Writes the number of a leaf into `count` lanes.
void FillUniform(ElementType type, uint64_t payload, int64_t count, std::byte* lanes) {
  tensor::StoreScalar(type, lanes, 0, tensor::Scalar{.u = payload});
  const int64_t lane_bytes = reference::LaneBytes(type);
  // Doubling what is there.
  for (int64_t done = 1; done < count; done *= 2) {
    std::memcpy(lanes + done * lane_bytes, lanes,
                static_cast<size_t>(std::min(done, count - done) * lane_bytes));
  }
}

}  // namespace

BoundCode::BoundCode(const Code& code, const device::BoundStep& step) : code_(&code) {
  const int rank = static_cast<int>(step.domain.size());
  for (const Code::Instruction& instruction : code.uniform()) {
    if (instruction.op == ExprOp::kDim) dims_.push_back(step.Number(instruction.dim));
  }
  for (const Code::Instruction& instruction : code.varying()) {
    switch (instruction.kind) {
      case Code::Kind::kLoad:
        access_of_.push_back(static_cast<int>(accesses_.size()));
        accesses_.push_back(MakeAccess(step.reads[instruction.payload], rank));
        break;
      case Code::Kind::kIndex:
        access_of_.push_back(static_cast<int>(accesses_.size()));
        accesses_.push_back(MakeCoordinate(static_cast<int>(instruction.payload)));
        break;
      case Code::Kind::kLoadAt:
        access_of_.push_back(static_cast<int>(at_views_.size()));
        at_views_.push_back(step.reads[instruction.payload]);
        break;
      case Code::Kind::kWalk:
        access_of_.push_back(static_cast<int>(walks_.size()));
        walks_.push_back(BoundTreeWalk::Create(*instruction.walk, step));
        break;
      default:
        access_of_.push_back(-1);
        break;
    }
  }
  direct_root_.assign(code.values().size(), -1);
  for (size_t k = code.roots().size(); k-- > 0;) {
    if (code.roots()[k] >= 0) direct_root_[code.roots()[k]] = static_cast<int>(k);
  }
}

void BoundCode::AppendForms(std::vector<LinearForm*>& forms) {
  for (Access& access : accesses_) engine::AppendForms(access, forms);
}

bool BoundCode::ReadsMemory() const {
  return !at_views_.empty() || !walks_.empty() ||
         std::ranges::any_of(
             accesses_, [](const Access& access) { return access.buffer != program::kNoBuffer; });
}

// The number of one chain and the lanes of another: what comes before the first operand that is not
// uniform is one number.
void BoundCode::PlanOperations(const Code::Instruction& instruction, Plan& plan) const {
  Chain& chain = plan.chain;
  chain.first = instruction.inputs[0];
  chain.operands.assign(instruction.inputs.begin() + 1, instruction.inputs.end());
  chain.operations = instruction.operations;
  chain.first_lanes = instruction.first_lanes;
  chain.result_lanes = instruction.result_lanes;
  size_t next = 0;
  for (FusedOperation& operation : chain.operations) {
    if (HasOperand(operation.op)) operation.is_uniform = is_uniform_[chain.operands[next++]];
    operation.begins = FusedPattern::kNone;
  }
  if (is_uniform_[chain.first] && !plan.is_uniform) {
    size_t count = 0;
    next = 0;
    while (!HasOperand(chain.operations[count].op) || chain.operations[count].is_uniform) {
      if (HasOperand(chain.operations[count++].op)) ++next;
    }
    const auto operation = chain.operations.begin() + static_cast<std::ptrdiff_t>(count);
    const auto operand = chain.operands.begin() + static_cast<std::ptrdiff_t>(next);
    plan.number = {chain.first,
                   {chain.operations.begin(), operation},
                   {chain.operands.begin(), operand},
                   chain.first_lanes};
    chain.first = *operand;
    chain.first_lanes = FusedLanes::kFloat32;
    *operand = -1;
    *operation = {ExchangeOperands(operation->op), /*is_uniform=*/true};
    chain.operands.erase(chain.operands.begin(), operand);
    chain.operations.erase(chain.operations.begin(), operation);
  }
  MarkPatterns(chain.operations);
}

void BoundCode::PlanInstructions() {
  const std::span<const Code::Instruction> instructions = code_->varying();
  is_uniform_.clear();
  for (const Code::Value& value : code_->values()) is_uniform_.push_back(value.is_uniform);
  plans_.assign(instructions.size(), {});
  uniform_loads_.clear();
  for (size_t at = 0; at < instructions.size(); ++at) {
    const Code::Instruction& instruction = instructions[at];
    Plan& plan = plans_[at];
    switch (instruction.kind) {
      case Code::Kind::kLoad:
      case Code::Kind::kIndex:
        plan.is_uniform = accesses_[access_of_[at]].is_uniform;
        if (!plan.is_uniform) break;
        accesses_[access_of_[at]].is_repeated = false;
        uniform_loads_.push_back(access_of_[at]);
        break;
      case Code::Kind::kLoop:
      case Code::Kind::kFused: {
        const auto is_uniform = [&](int input) { return is_uniform_[input]; };
        const std::vector<int>& inputs = instruction.inputs;
        plan.is_uniform = std::all_of(inputs.begin(), inputs.end(), is_uniform);
        // A loop reads lanes, an operation may read a number.
        const bool has_number = !plan.is_uniform && !instruction.operations.empty() &&
                                std::any_of(inputs.begin(), inputs.end(), is_uniform);
        if (instruction.kind == Code::Kind::kFused || has_number) PlanOperations(instruction, plan);
        break;
      }
      default:
        break;
    }
    is_uniform_[instruction.result] = plan.is_uniform;
  }
}

void BoundCode::FindReadLanes() {
  is_read_.assign(is_uniform_.size(), false);
  for (int root : code_->roots()) {
    if (root >= 0) is_read_[root] = true;
  }
  const std::span<const Code::Instruction> instructions = code_->varying();
  for (size_t at = 0; at < instructions.size(); ++at) {
    const Plan& plan = plans_[at];
    if (plan.is_uniform) continue;
    if (plan.chain.first >= 0) {
      is_read_[plan.chain.first] = true;
      size_t next = 0;
      for (const FusedOperation& operation : plan.chain.operations) {
        if (!HasOperand(operation.op)) continue;
        const int operand = plan.chain.operands[next++];
        if (operand >= 0 && !operation.is_uniform) is_read_[operand] = true;
      }
    } else {
      for (int input : instructions[at].inputs) is_read_[input] = true;
    }
  }
  const std::span<const Code::Instruction> uniform = code_->uniform();
  for (auto instruction = uniform.rbegin(); instruction != uniform.rend(); ++instruction) {
    if (!is_read_[instruction->result]) continue;
    for (int input : instruction->inputs) is_read_[input] = true;
  }
}

void BoundCode::LayOut(const Grid& grid, int64_t lanes) {
  for (Access& access : accesses_) engine::LayOut(access, grid);
  PlanInstructions();
  FindReadLanes();
  lanes_ = lanes;
  const auto words =
      static_cast<int64_t>(code_->values().size() + code_->slots().size() + uniform_loads_.size());
  static_assert(sizeof(std::byte*) <= sizeof(int64_t));
  scratch_bytes_ = RoundUp(words * static_cast<int64_t>(sizeof(int64_t)));
  slot_offsets_.clear();
  for (const Code::Slot& slot : code_->slots()) {
    slot_offsets_.push_back(scratch_bytes_);
    // Registers a multiple of 4096 bytes apart would make loads wait for unrelated stores.
    scratch_bytes_ += RoundUp(lanes * slot.lane_bytes) + 2 * kLine;
  }
  const std::span<const Code::Instruction> instructions = code_->varying();
  for (size_t at = 0; at < instructions.size(); ++at) {
    if (!plans_[at].is_uniform) continue;
    plans_[at].offset = scratch_bytes_;
    const int64_t lane_bytes = reference::LaneBytes(instructions[at].type);
    scratch_bytes_ +=
        is_read_[instructions[at].result] ? RoundUp(lanes * lane_bytes) + 2 * kLine : kLine;
  }
  whole_tile_ = grid.WholeTile();
  for (const Access& access : accesses_) {
    repeated_offsets_.push_back(access.is_repeated ? scratch_bytes_ : -1);
    if (!access.is_repeated) continue;
    has_repeated_ = true;
    scratch_bytes_ += RoundUp(whole_tile_.lanes * access.lane_bytes) + 2 * kLine;
  }
}

Frame::Frame(const BoundCode& bound, device::Addresses addresses, std::byte* scratch, int64_t lanes)
    : bound_(bound),
      addresses_(addresses),
      values_(reinterpret_cast<std::byte**>(scratch)),
      slots_(values_ + bound.code().values().size()),
      scratch_(scratch),
      uniform_at_(reinterpret_cast<int64_t*>(slots_ + bound.code().slots().size())),
      needs_repeated_(bound.has_repeated_) {
  for (size_t slot = 0; slot < bound.slot_offsets_.size(); ++slot) {
    slots_[slot] = scratch + bound.slot_offsets_[slot];
  }
  RunUniform(lanes);
}

void Frame::RunUniform(int64_t lanes) {
  size_t next_dim = 0;
  for (const Code::Instruction& instruction : bound_.code().uniform()) {
    const Code::Value& value = bound_.code().values()[instruction.result];
    std::byte* result = values_[instruction.result] = slots_[value.slot];
    const int64_t count = bound_.is_read_[instruction.result] ? lanes : std::min<int64_t>(lanes, 1);
    if (instruction.kind == Code::Kind::kLoop) {
      RunLoop(instruction, result, count);
    } else if (instruction.op == ExprOp::kDim) {
      FillUniform(value.type, static_cast<uint64_t>(bound_.dims_[next_dim++]), count, result);
    } else {
      FillUniform(value.type, instruction.payload, count, result);
    }
  }
}

void Frame::RunLoop(const Code::Instruction& instruction, std::byte* result, int64_t lanes) {
  LoopOperands operands{
      result, {}, lanes, instruction.payload, instruction.type, instruction.from_type};
  for (size_t k = 0; k < instruction.inputs.size(); ++k) {
    operands.inputs[k] = values_[instruction.inputs[k]];
  }
  instruction.loop(operands);
}

void Frame::RunChain(const BoundCode::Chain& chain, const std::byte* number, std::byte* result,
                     int64_t lanes) {
  FusedOperands fused{result,
                      values_[chain.first],
                      {},
                      chain.operations.data(),
                      static_cast<int>(chain.operations.size()),
                      lanes,
                      chain.first_lanes,
                      chain.result_lanes};
  size_t next = 0;
  for (int k = 0; k < fused.count; ++k) {
    if (!HasOperand(fused.operations[k].op)) continue;
    const int operand = chain.operands[next++];
    fused.operands[k] = operand < 0 ? number : values_[operand];
  }
  RunFused(fused);
}

void Frame::RunOperations(const BoundCode::Plan& plan, std::byte* result, int64_t lanes) {
  alignas(float) std::byte of_chain[sizeof(float)];
  const std::byte* number = nullptr;
  if (plan.number.first >= 0) {
    number = values_[plan.number.first];
    const bool is_cast = plan.number.first_lanes != FusedLanes::kFloat32;
    if (is_cast || !plan.number.operations.empty()) {
      RunChain(plan.number, nullptr, of_chain, 1);
      number = of_chain;
    }
  }
  RunChain(plan.chain, number, result, lanes);
}

void Frame::LoadLanes(const Access& access, const Box& box, std::byte* result) {
  const std::byte* base = access.buffer == program::kNoBuffer ? nullptr : addresses_[access.buffer];
  LoadBox(access, base, box, result);
}

void Frame::LoadNumber(const Access& access, const Box& box, std::byte* result) {
  const bool is_plain = access.buffer != program::kNoBuffer && access.guards.empty() &&
                        access.type != ElementType::kBool;
  if (is_plain) {
    const std::byte* number = AddressOf(access, box, addresses_[access.buffer]);
    std::memcpy(result, number, static_cast<size_t>(access.lane_bytes));
    return;
  }
  Box one = box;
  for (int axis = 0; axis < box.rank; ++axis) one.extents[axis] = 1;
  one.lanes = 1;
  LoadLanes(access, one, result);
}

void Frame::SpreadLanes(ElementType type, std::byte* result) {
  WithLaneType(reference::LaneBytes(type), [&](auto lane_type) {
    auto* lanes = reinterpret_cast<decltype(lane_type)*>(result);
    Fill(lanes, bound_.lanes_, *lanes);
  });
}

bool Frame::MoveUniform(const Box& box) {
  bool is_there = has_uniform_;
  for (size_t k = 0; k < bound_.uniform_loads_.size(); ++k) {
    const Access& access = bound_.accesses_[bound_.uniform_loads_[k]];
    const int64_t at = ValueAtBegin(access.form, box);
    is_there = is_there && at == uniform_at_[k] && access.guards.empty();
    uniform_at_[k] = at;
  }
  has_uniform_ = true;
  return is_there;
}

void Frame::LoadRepeated() {
  for (size_t k = 0; k < bound_.accesses_.size(); ++k) {
    const Access& access = bound_.accesses_[k];
    if (!access.is_repeated) continue;
    LoadLanes(access, bound_.whole_tile_, scratch_ + bound_.repeated_offsets_[k]);
  }
  needs_repeated_ = false;
}

void Frame::Run(const Box& box, std::byte* const* targets) {
  if (needs_repeated_) LoadRepeated();
  const bool has_uniform = MoveUniform(box);
  const Code& code = bound_.code();
  const std::span<const Code::Instruction> instructions = code.varying();
  for (size_t at = 0; at < instructions.size(); ++at) {
    const Code::Instruction& instruction = instructions[at];
    const BoundCode::Plan& plan = bound_.plans_[at];
    if (plan.is_uniform && has_uniform) continue;
    const int root = bound_.direct_root_[instruction.result];
    std::byte* target = root >= 0 && targets != nullptr ? targets[root] : nullptr;
    std::byte* result = target != nullptr ? target : slots_[code.values()[instruction.result].slot];
    if (plan.is_uniform) result = scratch_ + plan.offset;
    const int64_t lanes = plan.is_uniform ? 1 : box.lanes;
    switch (instruction.kind) {
      case Code::Kind::kLoop:
      case Code::Kind::kFused:
        if (plan.chain.first >= 0) {
          RunOperations(plan, result, lanes);
        } else {
          RunLoop(instruction, result, lanes);
        }
        break;
      case Code::Kind::kLoad:
      case Code::Kind::kIndex: {
        const int number = bound_.access_of_[at];
        const Access& access = bound_.accesses_[number];
        if (access.is_repeated) {
          result = scratch_ + bound_.repeated_offsets_[number];
          break;
        }
        if (plan.is_uniform) {
          LoadNumber(access, box, result);
          break;
        }
        std::byte* base = access.buffer == program::kNoBuffer ? nullptr : addresses_[access.buffer];
        const bool is_in_place =
            access.is_dense && (access.guards.empty() || FindInside(access, box) == Inside::kAll) &&
            IsAligned(AddressOf(access, box, base), access.lane_bytes);
        if (is_in_place && access.type == ElementType::kBool) {
          // A bool in memory may be any byte; the loops rely on 0 and 1.
          static const Loop kMakeBool = FindCastLoop(ElementType::kUint8, ElementType::kBool);
          kMakeBool({.result = result,
                     .inputs = {AddressOf(access, box, base)},
                     .lanes = box.lanes,
                     .payload = 0,
                     .type = ElementType::kBool,
                     .from_type = ElementType::kUint8});
        } else if (is_in_place) {
          result = AddressOf(access, box, base);
        } else {
          LoadLanes(access, box, result);
        }
        break;
      }
      case Code::Kind::kLoadAt: {
        const device::BoundView& view = bound_.at_views_[bound_.access_of_[at]];
        const std::byte* coordinates[kMaxAxes];
        const size_t rank = instruction.inputs.size();
        for (size_t axis = 0; axis < rank; ++axis) {
          coordinates[axis] = values_[instruction.inputs[axis]];
        }
        if (code.loads_rows()) {
          const int last = box.rank - 1;
          const RowCoordinates by_rows{.numbers = {coordinates, rank},
                                       .along = instruction.along,
                                       .begin = box.begin[last],
                                       .columns = instruction.columns,
                                       .rows = box.lanes / box.extents[last],
                                       .length = box.extents[last]};
          LoadRowsAt(view, addresses_[view.buffer], by_rows, result);
        } else {
          LoadAt(view, addresses_[view.buffer], {coordinates, rank}, box.lanes, result);
        }
        break;
      }
      case Code::Kind::kWalk: {
        const auto numbers = [&](size_t input) {
          return reinterpret_cast<const int64_t*>(values_[instruction.inputs[input]]);
        };
        const BoundTreeWalk& walk = *bound_.walks_[static_cast<size_t>(bound_.access_of_[at])];
        walk.Run(addresses_, {numbers(0), numbers(1), reinterpret_cast<int64_t*>(result), box.lanes,
                              box.rank == 0 ? 1 : box.extents[box.rank - 1]});
        break;
      }
      case Code::Kind::kUniform:
        break;
    }
    if (plan.is_uniform && bound_.is_read_[instruction.result]) {
      SpreadLanes(instruction.type, result);
    }
    values_[instruction.result] = result;
  }
}

void Frame::RunLanes(int64_t lanes) {
  Box box;
  box.lanes = lanes;
  Run(box);
}

Writer::Writer(std::span<const device::BoundView> views, int rank, const std::vector<bool>& takes)
    : root_count_(static_cast<int64_t>(views.size())) {
  for (size_t k = 0; k < views.size(); ++k) {
    if (takes[k]) writes_.push_back({MakeAccess(views[k], rank), static_cast<int>(k)});
  }
}

void Writer::AppendForms(std::vector<LinearForm*>& forms) {
  for (Write& write : writes_) engine::AppendForms(write.access, forms);
}

void Writer::LayOut(const Grid& grid, int64_t streamed_bytes) {
  int64_t lanes = 1;
  for (int axis = 0; axis < grid.rank(); ++axis) lanes *= grid.extent(axis);
  for (Write& write : writes_) {
    engine::LayOut(write.access, grid);
    write.is_streamed = lanes >= streamed_bytes / write.access.lane_bytes;
    has_streams_ = has_streams_ || write.is_streamed;
  }
}

void Writer::Run(Frame& frame, const Box& box, device::Addresses addresses,
                 std::byte* scratch) const {
  auto** targets = reinterpret_cast<std::byte**>(scratch);
  std::fill_n(targets, root_count_, nullptr);
  for (const Write& write : writes_) {
    const Access& access = write.access;
    if (access.is_dense && !write.is_streamed)
      targets[write.root] = AddressOf(access, box, addresses[access.buffer]);
  }
  frame.Run(box, targets);
  for (const Write& write : writes_) {
    const Access& access = write.access;
    const std::byte* root = frame.root(write.root);
    std::byte* target = targets[write.root];
    if (write.is_streamed) {
      StreamBox(access, addresses[access.buffer], box, root);
    } else if (target == nullptr) {
      StoreBox(access, addresses[access.buffer], box, root);
    } else if (target != root) {
      std::memcpy(target, root, static_cast<size_t>(box.lanes * access.lane_bytes));
    }
  }
}

}  // namespace onnxifi::engine
