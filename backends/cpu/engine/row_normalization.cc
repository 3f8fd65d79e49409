// SPDX-License-Identifier: Apache-2.0
//
// RowNormalization: what is recognised, and the walk over tiles of rows.

#include "backends/cpu/engine/row_normalization.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/reference/reduction.h"
#include "backends/cpu/engine/extreme_position.h"
#include "backends/cpu/engine/frame.h"
#include "backends/cpu/engine/row_normalization_loops.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::engine {
namespace {

using program::Expr;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;

constexpr ElementType kFloat32 = ElementType::kFloat32;

bool IsNarrow(ElementType type) {
  return type == ElementType::kFloat16 || type == ElementType::kBfloat16;
}

// Takes the expressions of one Row apart. A function that looks for something answers kNoExpr where
// it is not there.
class Parser {
 public:
  Parser(const program::ExprPool& pool, const program::Step& step, LoopSet loops)
      : pool_(pool), step_(step), row_(*step.As<program::Row>()), loops_(loops) {}

  std::shared_ptr<const RowNormalization> Parse() {
    if (row_.roots.size() != 1) return nullptr;
    root_ = FindUnrounded(row_.roots[0], step_.writes[0].type);
    if (root_ == program::kNoExpr) return nullptr;
    SkipRoundingOfResult();
    const bool is_found = ParseSoftmax() || ParseHardmax() || ParseMoments() || ParseMeanSquare();
    if (!is_found || !IsElement(element_)) return nullptr;
    const ExprId roots[] = {element_};
    found_.element = Code::Compile(pool_, roots, loops_);
    found_.read = FindRead(element_);
    return std::make_shared<const RowNormalization>(std::move(found_));
  }

 private:
  // The float32 that the result is, or is rounded from.
  ExprId FindUnrounded(ExprId root, ElementType type) const {
    if (type == kFloat32) return root;
    const ExprNode& node = pool_[root];
    const bool is_rounding =
        IsNarrow(type) && node.op == ExprOp::kCast && node.type == type &&
        static_cast<tensor::Rounding>(node.payload >> 1) == tensor::Rounding::kNearestEven;
    if (!is_rounding || pool_[node.operands[0]].type != kFloat32) return program::kNoExpr;
    return node.operands[0];
  }
  // A result that is rounded and widened again, for a reader of float32.
  void SkipRoundingOfResult() {
    const ExprId narrow = FindOperand(root_, ExprOp::kCast);
    if (narrow == program::kNoExpr || !IsNarrow(pool_[narrow].type)) return;
    const ExprId unrounded = FindUnrounded(narrow, pool_[narrow].type);
    if (unrounded == program::kNoExpr) return;
    found_.rounding_of_result = pool_[narrow].type;
    root_ = unrounded;
  }
  bool Is(ExprId id, ExprOp op) const {
    return id != program::kNoExpr && pool_[id].op == op && pool_[id].type == kFloat32;
  }
  bool IsResult(ExprId id, uint64_t pass) const {
    return Is(id, ExprOp::kRow) && pool_[id].payload == pass * 256;
  }
  bool IsState(ExprId id) const { return Is(id, ExprOp::kState) && pool_[id].payload == 0; }
  bool IsNumber(ExprId id, double number) const {
    const std::optional<float> found = FindNumber(id);
    return found.has_value() && *found == number;
  }
  std::optional<float> FindNumber(ExprId id) const {
    if (!Is(id, ExprOp::kConstant)) return std::nullopt;
    return static_cast<float>(tensor::Scalar{.u = pool_[id].payload}.f);
  }
  // The operand of a function.
  ExprId FindOperand(ExprId id, ExprOp op) const {
    return Is(id, op) ? pool_[id].operands[0] : program::kNoExpr;
  }
  // The operand beside one that `is_other` knows, in either order.
  template <typename IsOther>
  ExprId FindBeside(ExprId id, ExprOp op, const IsOther& is_other) const {
    if (!Is(id, op)) return program::kNoExpr;
    for (int k = 0; k < 2; ++k) {
      if (is_other(pool_[id].operands[1 - k])) return pool_[id].operands[k];
    }
    return program::kNoExpr;
  }
  // A read at the coordinates of the domain, or -1.
  int FindRead(ExprId id) const {
    const bool is_read = Is(id, ExprOp::kLoad) && pool_[id].operands.empty();
    return is_read ? static_cast<int>(pool_[id].payload) : -1;
  }
  // Such a read, or one that is widened, or -1.
  int FindParameter(ExprId id) const {
    const ExprId narrow = FindOperand(id, ExprOp::kCast);
    if (narrow == program::kNoExpr) return FindRead(id);
    const ExprNode& load = pool_[narrow];
    const bool is_read = load.op == ExprOp::kLoad && load.operands.empty() && IsNarrow(load.type);
    return is_read ? static_cast<int>(load.payload) : -1;
  }
  // Whether no state and no result of a pass enters.
  bool IsElement(ExprId id) const {
    const ExprId roots[] = {id};
    const std::vector<ExprId> nodes = program::Reachable(pool_, roots);
    return pool_[id].type == kFloat32 && std::none_of(nodes.begin(), nodes.end(), [&](ExprId node) {
             return pool_[node].op == ExprOp::kRow || pool_[node].op == ExprOp::kState;
           });
  }

  // What a pass reduces by one operation from its neutral element on.
  ExprId FindReduced(size_t pass, ExprOp op) const {
    const program::Row::Pass& of = row_.passes[pass];
    if (of.reduction.states.size() != 1 || of.results.size() != 1) return program::kNoExpr;
    const program::Reduction::State& state = of.reduction.states[0];
    const double neutral = op == ExprOp::kMax ? -std::numeric_limits<double>::infinity() : 0;
    const bool is_merged = Is(state.merge, op) && IsState(pool_[state.merge].operands[0]) &&
                           Is(pool_[state.merge].operands[1], ExprOp::kOther);
    const bool is_updated = Is(state.update, op) && IsState(pool_[state.update].operands[0]);
    if (!is_merged || !is_updated || !IsNumber(state.init, neutral)) return program::kNoExpr;
    return pool_[state.update].operands[1];
  }

  // What `id` is rounded from, by the steps of a softmax.
  ExprId FindStep(ExprId id) const {
    if (found_.rounding == kFloat32) return id;
    const ExprId narrow = FindOperand(id, ExprOp::kCast);
    if (narrow == program::kNoExpr || pool_[narrow].type != found_.rounding)
      return program::kNoExpr;
    return FindUnrounded(narrow, found_.rounding);
  }

  // exp(x - max) / sum, or x - max - log(sum), each step of it rounded or none.
  bool ParseSoftmax() {
    if (row_.passes.size() != 2) return false;
    element_ = FindReduced(0, ExprOp::kMax);
    const ExprId power = FindReduced(1, ExprOp::kAdd);
    if (element_ == program::kNoExpr || power == program::kNoExpr) return false;
    if (Is(power, ExprOp::kCast)) found_.rounding = pool_[pool_[power].operands[0]].type;
    const ExprId difference = FindOperand(FindStep(power), ExprOp::kExp);
    const ExprId exact = difference == program::kNoExpr ? difference : FindStep(difference);
    const bool is_softmax = Is(exact, ExprOp::kSub) && pool_[exact].operands[0] == element_ &&
                            IsResult(pool_[exact].operands[1], 0) &&
                            IsState(row_.passes[0].results[0]) &&
                            IsState(FindStep(row_.passes[1].results[0]));
    if (!is_softmax) return false;
    const ExprId root = root_;
    if (Is(root, ExprOp::kDiv) && pool_[root].operands[0] == power &&
        IsResult(pool_[root].operands[1], 1)) {
      found_.form = RowNormalization::Form::kSoftmax;
      return true;
    }
    found_.form = RowNormalization::Form::kLogSoftmax;
    return Is(root, ExprOp::kSub) && pool_[root].operands[0] == difference &&
           IsResult(FindOperand(FindStep(pool_[root].operands[1]), ExprOp::kLog), 1);
  }

  // One number where the position is that of the extreme, another elsewhere.
  bool ParseHardmax() {
    const ExprId root = root_;
    if (row_.passes.size() != 1 || row_.axes != 1 || !Is(root, ExprOp::kSelect)) return false;
    const program::Row::Pass& pass = row_.passes[0];
    const std::optional<program::ArgExtreme> found = program::FindArgExtreme(pool_, pass.reduction);
    if (!found || pass.results.size() != 1) return false;
    const ExprNode& result = pool_[pass.results[0]];
    const ExprNode& index = pool_[found->index];
    const ExprNode& condition = pool_[pool_[root].operands[0]];
    const std::optional<float> chosen = FindNumber(pool_[root].operands[1]);
    const std::optional<float> others = FindNumber(pool_[root].operands[2]);
    const bool is_position = result.op == ExprOp::kState && result.payload == 1 &&
                             index.op == ExprOp::kIndex && index.payload == step_.domain.size() - 1;
    if (!is_position || condition.op != ExprOp::kEqual || !chosen || !others) return false;
    const auto is_row = [&](ExprId id) {
      return pool_[id].op == ExprOp::kRow && pool_[id].payload == 0;
    };
    const ExprId first = condition.operands[0];
    const ExprId second = condition.operands[1];
    const bool is_compared =
        (first == found->index && is_row(second)) || (second == found->index && is_row(first));
    if (!is_compared) return false;
    found_.form = RowNormalization::Form::kHardmax;
    found_.extreme = found->extreme;
    found_.chosen = *chosen;
    found_.others = *others;
    element_ = found->element;
    return true;
  }

  // The number of elements, or another one, in float32.
  bool ParseDivisor(ExprId id) {
    RowNormalization::Divisor divisor;
    if (const std::optional<float> number = FindNumber(id)) {
      divisor.number = *number;
    } else if (Is(id, ExprOp::kCast) && pool_[pool_[id].operands[0]].op == ExprOp::kDim) {
      divisor.dim = pool_[pool_[id].operands[0]].dim;
    } else {
      return false;
    }
    found_.divisor = std::move(divisor);
    return true;
  }
  // What is summed up where the result of the pass is the sum divided by a number.
  ExprId FindAveraged(size_t pass) {
    const ExprId summand = FindReduced(pass, ExprOp::kAdd);
    if (summand == program::kNoExpr) return program::kNoExpr;
    const ExprId mean = row_.passes[pass].results[0];
    const bool is_mean = Is(mean, ExprOp::kDiv) && IsState(pool_[mean].operands[0]) &&
                         ParseDivisor(pool_[mean].operands[1]);
    return is_mean ? summand : program::kNoExpr;
  }
  // x where `id` is x * x.
  ExprId FindSquared(ExprId id) const {
    const bool is_square = Is(id, ExprOp::kMul) && pool_[id].operands[0] == pool_[id].operands[1];
    return is_square ? pool_[id].operands[0] : program::kNoExpr;
  }
  // 1 / sqrt(result of the pass + epsilon).
  bool IsInverse(ExprId id, uint64_t pass) {
    if (!Is(id, ExprOp::kDiv) || !IsNumber(pool_[id].operands[0], 1)) return false;
    const ExprId sum = FindOperand(pool_[id].operands[1], ExprOp::kSqrt);
    const ExprId number =
        FindBeside(sum, ExprOp::kAdd, [&](ExprId other) { return IsResult(other, pass); });
    const std::optional<float> epsilon = FindNumber(number);
    if (epsilon) found_.epsilon = *epsilon;
    return epsilon.has_value();
  }
  // distance * inverse * scale + bias, where the last two may be absent.
  bool ParseNormalized(ExprId root, ExprId distance, uint64_t pass) {
    const auto is_inverse = [&](ExprId id) { return IsInverse(id, pass); };
    const auto is_normalized = [&](ExprId id) {
      return FindBeside(id, ExprOp::kMul, is_inverse) == distance;
    };
    const auto is_scaled = [&](ExprId id) {
      found_.scale = -1;
      if (is_normalized(id)) return true;
      found_.scale = FindParameter(FindBeside(id, ExprOp::kMul, is_normalized));
      return found_.scale >= 0;
    };
    found_.bias = -1;
    if (is_scaled(root)) return true;
    found_.bias = FindParameter(FindBeside(root, ExprOp::kAdd, is_scaled));
    return found_.bias >= 0;
  }

  bool ParseMoments() {
    if (row_.passes.size() != 2) return false;
    element_ = FindAveraged(0);
    if (element_ == program::kNoExpr) return false;
    const RowNormalization::Divisor of_mean = found_.divisor;
    const ExprId distance = FindSquared(FindAveraged(1));
    const bool is_distance =
        Is(distance, ExprOp::kSub) && pool_[distance].operands[0] == element_ &&
        IsResult(pool_[distance].operands[1], 0) && of_mean.number == found_.divisor.number &&
        of_mean.dim == found_.divisor.dim;
    found_.form = RowNormalization::Form::kMoments;
    return is_distance && ParseNormalized(root_, distance, 1);
  }
  bool ParseMeanSquare() {
    if (row_.passes.size() != 1) return false;
    element_ = FindSquared(FindAveraged(0));
    found_.form = RowNormalization::Form::kMeanSquare;
    return element_ != program::kNoExpr && ParseNormalized(root_, element_, 0);
  }

  const program::ExprPool& pool_;
  const program::Step& step_;
  const program::Row& row_;
  const LoopSet loops_;
  ExprId root_ = program::kNoExpr;
  ExprId element_ = program::kNoExpr;
  RowNormalization found_{};
};

using Form = RowNormalization::Form;

class BoundNormalization final : public device::BoundKernel {
 public:
  // Null where it is not to be bound so.
  static std::unique_ptr<BoundNormalization> Create(
      std::shared_ptr<const RowNormalization> normalization, const device::BoundStep& step,
      Runtime& runtime) {
    const auto axes = static_cast<size_t>(step.step->As<program::Row>()->axes);
    const size_t outer = step.domain.size() - axes;
    const int64_t rows = tensor::ElementCount(std::span(step.domain).first(outer));
    const int64_t count = tensor::ElementCount(std::span(step.domain).subspan(outer));
    // Sums of the shortest rows are made otherwise.
    if (rows == 0 || count == 0 || !reference::RowUsesPartialSums(rows, count)) return nullptr;
    std::unique_ptr<BoundNormalization> bound(
        new BoundNormalization(std::move(normalization), step, runtime));
    if (!bound->LayOut(static_cast<int>(outer), count)) return nullptr;
    return bound;
  }

  std::string Detail() const override {
    return "normalised rows, " + std::string(processor::VectorName());
  }

  base::Status Run(device::Addresses addresses) const override {
    // Picoseconds.
    constexpr int64_t kCostOfElement = 300;
    constexpr int64_t kCostOfRow = 20'000;
    const int64_t cost_of_row =
        count_ * (kCostOfElement + (is_read_in_place_ ? 0 : element_.code().cost() + 100) +
                  (narrow_ == nullptr ? 0 : 100) + (round_ == nullptr ? 0 : 50)) +
        kCostOfRow;
    return runtime_.For(grid_.TileCount(0, row_begin_),
                        grid_.TileLanes(0, row_begin_) * cost_of_row,
                        [&](int64_t begin, int64_t end, std::byte* scratch) {
                          RunTiles(addresses, begin, end, scratch);
                        });
  }

 private:
  BoundNormalization(std::shared_ptr<const RowNormalization> normalization,
                     const device::BoundStep& step, Runtime& runtime)
      : normalization_(std::move(normalization)),
        element_(normalization_->element, step),
        runtime_(runtime),
        grid_(step.domain) {
    const int rank = static_cast<int>(step.domain.size());
    result_ = MakeAccess(step.writes[0], rank);
    const auto read = [&](int number) {
      return number < 0 ? Access() : MakeAccess(step.reads[static_cast<size_t>(number)], rank);
    };
    x_ = read(normalization_->read);
    scale_ = read(normalization_->scale);
    bias_ = read(normalization_->bias);
    const RowNormalization::Divisor& divisor = normalization_->divisor;
    if (IsNarrow(result_.type)) narrow_ = FindCastLoop(kFloat32, result_.type);
    if (IsRounded()) round_ = FindRoundingLoop(normalization_->rounding_of_result);
    divisor_ = divisor.dim ? static_cast<float>(step.Number(*divisor.dim)) : divisor.number;
  }

  bool IsRounded() const { return normalization_->rounding_of_result != kFloat32; }

  // False where a loop over rows cannot do it.
  bool LayOut(int outer_rank, int64_t count) {
    count_ = count;
    is_read_in_place_ = normalization_->read >= 0 && x_.guards.empty();
    std::vector<LinearForm*> forms;
    AppendForms(result_, forms);
    AppendForms(x_, forms);
    AppendForms(scale_, forms);
    AppendForms(bias_, forms);
    element_.AppendForms(forms);
    int boundary[] = {outer_rank};
    grid_.Join(boundary, forms);
    row_begin_ = boundary[0];
    const int row_axis = grid_.rank() - 1;
    if (grid_.rank() - row_begin_ > 1) return false;
    const auto step_along = [&](const Access& access) {
      return grid_.rank() == row_begin_ ? 1 : access.form.steps[static_cast<size_t>(row_axis)];
    };
    const auto is_parameter = [&](const Access& access) {
      return access.buffer == program::kNoBuffer ||
             (access.guards.empty() && (step_along(access) == 0 || step_along(access) == 1));
    };
    is_read_in_place_ = is_read_in_place_ && step_along(x_) == 1;
    // What is computed of a row stays in the L2 cache.
    constexpr int64_t kMaxComputed = 1 << 15;
    const bool can_be = result_.guards.empty() && step_along(result_) == 1 &&
                        is_parameter(scale_) && is_parameter(bias_) &&
                        ((is_read_in_place_ && narrow_ == nullptr) || count <= kMaxComputed);
    // Not every instruction set has a loop for float16.
    if (!can_be || (IsNarrow(result_.type) && narrow_ == nullptr)) return false;
    if (IsRounded() && round_ == nullptr) return false;
    // Widened parameters are those of all rows that a loop takes.
    const auto is_of_each_row = [&](const Access& access) {
      return row_begin_ > 0 && access.form.steps[static_cast<size_t>(row_begin_ - 1)] != 0;
    };
    for (const Access* parameter : {&scale_, &bias_}) {
      if (parameter->buffer == program::kNoBuffer || !IsNarrow(parameter->type)) continue;
      if (is_of_each_row(*parameter) || count > kMaxComputed) return false;
      if (FindCastLoop(parameter->type, kFloat32) == nullptr) return false;
      has_narrow_parameters_ = true;
    }
    scale_is_number_ = step_along(scale_) == 0;
    bias_is_number_ = step_along(bias_) == 0;
    constexpr int64_t kTileElements = 1 << 12;
    grid_.Tile(row_begin_, grid_.rank(), count);
    grid_.Tile(0, row_begin_, std::max<int64_t>(1, kTileElements / count));
    int64_t scratch_bytes = 0;
    tile_lanes_ = grid_.TileLanes(0, grid_.rank());
    if (!is_read_in_place_) {
      element_.LayOut(grid_, tile_lanes_);
      scratch_bytes += element_.scratch_bytes();
    }
    if (normalization_->form == Form::kLogSoftmax) {
      scratch_bytes += FloatBytes(std::max(count, kRowGroupElements));
    }
    if (narrow_ != nullptr) scratch_bytes += FloatBytes(tile_lanes_);
    if (has_narrow_parameters_) scratch_bytes += 2 * FloatBytes(count);
    runtime_.scratch().Reserve(scratch_bytes);
    if (normalization_->form <= Form::kLogSoftmax) {
      softmax_ = FindSoftmaxLoop(normalization_->form == Form::kLogSoftmax,
                                 normalization_->rounding, runtime_.settings().loops);
      if (softmax_ == nullptr) return false;
    }
    return true;
  }

  // Of so many floats in scratch memory, in whole lines.
  static int64_t FloatBytes(int64_t count) {
    constexpr int64_t kLine = 64;
    return (count * static_cast<int64_t>(sizeof(float)) + kLine - 1) / kLine * kLine;
  }

  static const float* Find(const Access& access, const Box& box, device::Addresses addresses) {
    if (access.buffer == program::kNoBuffer) return nullptr;
    return reinterpret_cast<const float*>(AddressOf(access, box, addresses[access.buffer]));
  }

  void RunTiles(device::Addresses addresses, int64_t begin, int64_t end, std::byte* scratch) const {
    std::optional<Frame> frame;
    if (!is_read_in_place_) {
      frame.emplace(element_, addresses, scratch, tile_lanes_);
      scratch += element_.scratch_bytes();
    }
    const auto take = [&scratch](bool is_needed, int64_t count) -> float* {
      if (!is_needed) return nullptr;
      auto* const floats = reinterpret_cast<float*>(scratch);
      scratch += FloatBytes(count);
      return floats;
    };
    Rooms rooms;
    rooms.exponentials =
        take(normalization_->form == Form::kLogSoftmax, std::max(count_, kRowGroupElements));
    rooms.result = take(narrow_ != nullptr, tile_lanes_);
    rooms.scale = take(has_narrow_parameters_, count_);
    rooms.bias = take(has_narrow_parameters_, count_);
    Box box;
    box.extents.fill(1);
    box.rank = grid_.rank();
    grid_.MoveTo(row_begin_, grid_.rank(), 0, box);
    grid_.MoveTo(0, row_begin_, begin, box);
    for (int64_t tile = begin; tile < end; ++tile) {
      const float* computed = nullptr;
      if (frame) {
        frame->Run(box);
        computed = reinterpret_cast<const float*>(frame->root(0));
      }
      RunTile(addresses, box, computed, rooms);
      grid_.MoveOn(0, row_begin_, box);
    }
  }

  // Scratch memory, where it is needed.
  struct Rooms {
    float* exponentials;
    float* result;  // before it is rounded
    float* scale;   // of all elements of a row, widened
    float* bias;
  };

  // The parameter's elements for rows at the box's begin, widened where they are narrow.
  const float* FindParameter(const Access& access, const Box& box, device::Addresses addresses,
                             bool is_number, float* room) const {
    if (access.buffer == program::kNoBuffer || !IsNarrow(access.type)) {
      return Find(access, box, addresses);
    }
    Convert(FindCastLoop(access.type, kFloat32), AddressOf(access, box, addresses[access.buffer]),
            is_number ? 1 : count_, reinterpret_cast<std::byte*>(room));
    return room;
  }

  static void Convert(Loop loop, const std::byte* from, int64_t count, std::byte* to) {
    LoopOperands operands{};
    operands.result = to;
    operands.inputs[0] = from;
    operands.lanes = count;
    loop(operands);
  }

  // Rounds what loops wrote to the rows of the result.
  void WriteNarrow(const RowOperands& rows, std::byte* result, int64_t result_step) const {
    const bool is_dense = result_step == count_;
    const int64_t lines = is_dense ? 1 : rows.rows;
    const int64_t length = is_dense ? rows.rows * count_ : count_;
    for (int64_t line = 0; line < lines; ++line) {
      Convert(narrow_, reinterpret_cast<const std::byte*>(rows.result + line * count_), length,
              result + line * result_step * result_.lane_bytes);
    }
  }

  // Rows along the last of the outer axes at once.
  void RunTile(device::Addresses addresses, const Box& tile, const float* computed,
               const Rooms& rooms) const {
    Box box = tile;
    const int axis = row_begin_ - 1;
    const int64_t rows = axis < 0 ? 1 : tile.extents[static_cast<size_t>(axis)];
    const auto step_of = [&](const Access& access) {
      return axis < 0 ? 0 : access.form.steps[static_cast<size_t>(axis)];
    };
    for (int64_t left = tile.lanes / count_; left > 0; left -= rows) {
      MomentOperands operands{
          .rows = {.x = computed != nullptr ? computed : Find(x_, box, addresses),
                   .x_step = computed != nullptr ? count_ : step_of(x_),
                   .result = narrow_ != nullptr ? rooms.result
                                                : const_cast<float*>(Find(result_, box, addresses)),
                   .result_step = narrow_ != nullptr ? count_ : step_of(result_),
                   .rows = rows,
                   .count = count_},
          .subtracts_mean = normalization_->form == Form::kMoments,
          .divisor = divisor_,
          .epsilon = normalization_->epsilon,
          .scale = {FindParameter(scale_, box, addresses, scale_is_number_, rooms.scale),
                    step_of(scale_), scale_is_number_},
          .bias = {FindParameter(bias_, box, addresses, bias_is_number_, rooms.bias),
                   step_of(bias_), bias_is_number_}};
      RunRows(operands, rooms.exponentials);
      if (round_ != nullptr) round_(operands.rows);
      if (narrow_ != nullptr) {
        WriteNarrow(operands.rows, AddressOf(result_, box, addresses[result_.buffer]),
                    step_of(result_));
      }
      if (computed != nullptr) computed += rows * count_;
      for (int outer = axis; outer-- > 0;) {
        const auto at = static_cast<size_t>(outer);
        if (++box.begin[at] < tile.begin[at] + tile.extents[at]) break;
        box.begin[at] = tile.begin[at];
      }
    }
  }

  void RunRows(const MomentOperands& operands, float* exponentials) const {
    const RowOperands& rows = operands.rows;
    switch (normalization_->form) {
      case Form::kSoftmax:
      case Form::kLogSoftmax:
        return softmax_(rows, exponentials);
      case Form::kMoments:
      case Form::kMeanSquare:
        return NormalizeRows(operands);
      case Form::kHardmax:
        for (int64_t row = 0; row < rows.rows; ++row) {
          float* const result = rows.result + row * rows.result_step;
          const int64_t position =
              FindExtremeInRow(normalization_->extreme, rows.x + row * rows.x_step, count_);
          std::fill_n(result, count_, normalization_->others);
          result[position] = normalization_->chosen;
        }
        return;
    }
  }

  const std::shared_ptr<const RowNormalization> normalization_;  // shared with the kernel
  BoundCode element_;
  Runtime& runtime_;
  Grid grid_;
  Access x_, result_, scale_, bias_;  // no buffer: there is none
  bool is_read_in_place_ = false;
  bool scale_is_number_ = false;
  bool bias_is_number_ = false;
  bool has_narrow_parameters_ = false;
  Loop narrow_ = nullptr;         // rounds the result; null where it is float32
  RoundingLoop round_ = nullptr;  // null where the result is not rounded as a float32
  float divisor_ = 0;
  int64_t count_ = 0;
  int row_begin_ = 0;
  int64_t tile_lanes_ = 0;
  SoftmaxLoop softmax_ = nullptr;
};

}  // namespace

std::shared_ptr<const RowNormalization> FindRowNormalization(const program::ExprPool& pool,
                                                             const program::Step& step,
                                                             LoopSet loops) {
  return Parser(pool, step, loops).Parse();
}

std::unique_ptr<device::BoundKernel> BindRowNormalization(
    std::shared_ptr<const RowNormalization> normalization, const device::BoundStep& step,
    Runtime& runtime) {
  return BoundNormalization::Create(std::move(normalization), step, runtime);
}

}  // namespace onnxifi::engine
