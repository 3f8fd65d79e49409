// SPDX-License-Identifier: Apache-2.0
//
// FuseAttention: a matrix product, the softmax of its rows and their product with a third matrix
// become one step. What stands between them by then, scale and masks, is in the epilogue of the
// first or in the expressions of the softmax; but for a Map that zeroes the rows of weights that
// nothing was left of.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/core/program/body_exprs.h"
#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/operand_extents.h"
#include "backends/core/program/passes.h"

namespace onnxifi::program {
namespace {

constexpr ElementType kFloat = ElementType::kFloat32;

// The softmax of float32 values along the last axis of a Row.
struct Softmax {
  ExprId element = kNoExpr;  // what it is the softmax of
  bool has_roundings = false;
};

// Takes a Row apart; one at a time.
class SoftmaxParser {
 public:
  SoftmaxParser(const ExprPool& pool, const Row& row) : pool_(pool), row_(row) {}

  std::optional<Softmax> Parse() {
    if (row_.axes != 1 || row_.passes.size() != 2 || row_.roots.size() != 1) return std::nullopt;
    // exp(x - max) / sum
    const ExprNode* const quotient = Find(row_.roots[0], ExprOp::kDiv);
    if (quotient == nullptr || !IsResult(quotient->operands[1], 1)) return std::nullopt;
    const ExprId weight = Uncast(quotient->operands[0]);
    const ExprNode* const exponential = Find(weight, ExprOp::kExp);
    if (exponential == nullptr) return std::nullopt;
    const ExprNode* const difference = Find(exponential->operands[0], ExprOp::kSub);
    if (difference == nullptr || !IsResult(difference->operands[1], 0)) return std::nullopt;
    found_.element = difference->operands[0];
    const auto is_element = [&](ExprId id) { return id == found_.element; };
    const auto is_weight = [&](ExprId id) { return Uncast(id) == weight; };
    if (!IsFold(row_.passes[0], ExprOp::kMax, is_element) ||
        !IsFold(row_.passes[1], ExprOp::kAdd, is_weight)) {
      return std::nullopt;
    }
    return found_;
  }

 private:
  // What is cast between float types.
  ExprId Uncast(ExprId id) {
    while (pool_[id].op == ExprOp::kCast && tensor::IsFloat(pool_[id].type) &&
           tensor::IsFloat(pool_[pool_[id].operands[0]].type)) {
      if (pool_[id].type != kFloat) found_.has_roundings = true;
      id = pool_[id].operands[0];
    }
    return id;
  }
  // The node below casts, if it is this operation of float32; else null.
  const ExprNode* Find(ExprId id, ExprOp op) {
    const ExprNode& node = pool_[Uncast(id)];
    return node.op == op && node.type == kFloat ? &node : nullptr;
  }
  bool IsResult(ExprId id, uint64_t pass) {
    const ExprNode* const node = Find(id, ExprOp::kRow);
    return node != nullptr && node->payload == pass * 256;
  }
  bool IsState(ExprId id) const {
    return pool_[id].op == ExprOp::kState && pool_[id].payload == 0 && pool_[id].type == kFloat;
  }
  // Whether a pass folds what `is_element` knows by an operation, from its neutral element.
  template <typename IsElement>
  bool IsFold(const Row::Pass& pass, ExprOp op, const IsElement& is_element) {
    if (pass.reduction.states.size() != 1 || pass.results.size() != 1 ||
        !IsState(Uncast(pass.results[0]))) {
      return false;
    }
    const Reduction::State& state = pass.reduction.states[0];
    const ExprNode& update = pool_[state.update];
    if (state.type != kFloat || update.op != op) return false;
    const ExprId a = update.operands[0];
    const ExprId b = update.operands[1];
    return (IsState(a) && is_element(b)) || (IsState(b) && is_element(a));
  }

  const ExprPool& pool_;
  const Row& row_;
  Softmax found_;
};

// Steps of which each alone reads what the one before it writes.
struct Chain {
  int scores, softmax;
  int zeroing;  // kNoStep if there is none
  int sums;
};

// Row by row of the weights: whether zeros take their place; a condition over the reads of the Map
// that says so.
struct Zeroing {
  ExprId condition = kNoExpr;
  uint64_t weights = 0;  // that read
};

class Fusion {
 public:
  Fusion(Program& program, const PrefersAttention& prefers)
      : program_(program), pool_(program.exprs), prefers_(prefers), uses_(program) {}

  void Run() {
    for (int number = 0; number < static_cast<int>(program_.steps.size()); ++number) {
      const std::optional<Chain> chain = FindChain(number);
      if (!chain) continue;
      std::optional<Step> attention = Joined(*chain);
      if (!attention || !prefers_(program_, *attention)) continue;
      JoinSteps(program_, uses_, chain->scores, chain->sums, *std::move(attention));
      for (const int between : {chain->softmax, chain->zeroing}) {
        if (between == BufferUses::kNoStep) continue;
        Step& step = program_.steps[static_cast<size_t>(between)];
        uses_.Remove(between, step);
        step.reads.clear();
        step.writes.clear();
      }
    }
  }

 private:
  const Step& StepAt(int number) const { return program_.steps[static_cast<size_t>(number)]; }

  // The step behind `number` that alone reads what that alone writes.
  int FindReader(int number) const {
    const Step& step = StepAt(number);
    if (step.writes.size() != 1 || step.writes[0].buffer == kNoBuffer) return BufferUses::kNoStep;
    const BufferId buffer = step.writes[0].buffer;
    if (program_.buffers[static_cast<size_t>(buffer)].kind != Buffer::Kind::kTemporary ||
        uses_.IsOutput(buffer) || uses_.OnlyWriter(buffer) != number) {
      return BufferUses::kNoStep;
    }
    const int reader = uses_.OnlyReader(buffer);
    return reader > number ? reader : BufferUses::kNoStep;
  }

  // A product of float32 sums of rows and columns that are one axis each.
  static const Contract* AsProduct(const Step& step) {
    const Contract* const contract = step.As<Contract>();
    const bool is_product = contract != nullptr && contract->form == Contract::Form::kMatMul &&
                            contract->accumulator == kFloat && contract->m_axes == 1 &&
                            contract->n_axes == 1 && contract->inner.size() == 1 &&
                            contract->roots.size() == 1;
    return is_product ? contract : nullptr;
  }

  std::optional<Chain> FindChain(int number) const {
    if (AsProduct(StepAt(number)) == nullptr) return std::nullopt;
    constexpr int kNoStep = BufferUses::kNoStep;
    Chain chain = {number, FindReader(number), kNoStep, kNoStep};
    if (chain.softmax == kNoStep || StepAt(chain.softmax).As<Row>() == nullptr) {
      return std::nullopt;
    }
    chain.sums = FindReader(chain.softmax);
    if (chain.sums != kNoStep && StepAt(chain.sums).As<Map>() != nullptr) {
      chain.zeroing = chain.sums;
      chain.sums = FindReader(chain.zeroing);
    }
    if (chain.sums == kNoStep || AsProduct(StepAt(chain.sums)) == nullptr) return std::nullopt;
    // The others move to the place of the last one.
    for (const int step : {chain.scores, chain.softmax, chain.zeroing}) {
      if (step != kNoStep && uses_.ReadsWhatIsWrittenAfter(step, StepAt(step))) {
        return std::nullopt;
      }
    }
    return chain;
  }

  bool HasLoadOf(ExprId root, uint64_t read) const {
    const auto nodes = Reachable(pool_, std::span(&root, 1));
    return std::any_of(nodes.begin(), nodes.end(), [&](ExprId id) {
      return pool_[id].op == ExprOp::kLoad && pool_[id].payload == read;
    });
  }
  bool HasComputedCoordinates(const Step& step) const {
    const auto nodes = Reachable(pool_, BodyExprs(step));
    return std::any_of(nodes.begin(), nodes.end(), [&](ExprId id) {
      return pool_[id].op == ExprOp::kLoad && !pool_[id].operands.empty();
    });
  }

  // Read `from` of a step of the chain becomes read `to[from]`; where `to` says -1 it is
  // `intermediate`, what the step before it computes.
  ExprId Moved(ExprId root, const std::vector<int>& to, ExprId intermediate = kNoExpr) {
    std::unordered_map<ExprId, ExprId> done;
    const auto replace = [&](ExprId id) {
      ExprNode node = pool_[id];
      if (node.op != ExprOp::kLoad) return kNoExpr;
      const int read = to[node.payload];
      if (read < 0) return intermediate;
      node.payload = static_cast<uint64_t>(read);
      return pool_.Add(std::move(node));
    };
    return Rewrite(pool_, root, replace, done);
  }

  // Adds reads from `first` on, less those of `intermediate`, to those of `joined`; `to` says where
  // each is then.
  static std::vector<int> AddReads(const std::vector<View>& reads, size_t first,
                                   BufferId intermediate, std::vector<int> to, Step& joined) {
    for (size_t read = first; read < reads.size(); ++read) {
      const bool is_between = reads[read].buffer == intermediate;
      to.push_back(is_between ? -1 : static_cast<int>(joined.reads.size()));
      if (!is_between) joined.reads.push_back(reads[read]);
    }
    return to;
  }

  // The reads of a product over `domain`, along whose axes its results are repeated where they have
  // one coordinate. Nothing where its expressions cannot say so.
  std::optional<std::vector<View>> RepeatedReads(const Step& step, const Shape& domain) const {
    if (step.domain == domain) return step.reads;
    const Contract& contract = *step.As<Contract>();
    const auto nodes = Reachable(pool_, BodyExprs(step));
    const bool has_coordinates = std::any_of(
        nodes.begin(), nodes.end(), [&](ExprId id) { return pool_[id].op == ExprOp::kIndex; });
    if (has_coordinates) return std::nullopt;
    const ExprId prologues[] = {contract.a_prologue, contract.b_prologue};
    for (const ExprId id : Reachable(pool_, prologues)) {
      if (pool_[id].op == ExprOp::kLoad && pool_[id].payload >= 2) return std::nullopt;
    }
    Shape rows = domain;
    rows.back() = contract.inner[0];
    Shape columns = domain;
    columns[columns.size() - 2] = contract.inner[0];
    std::vector<View> reads = {BroadcastTo({step.reads[0], OperandShape(step, 0)}, rows),
                               BroadcastTo({step.reads[1], OperandShape(step, 1)}, columns)};
    for (size_t read = 2; read < step.reads.size(); ++read) {
      reads.push_back(BroadcastTo({step.reads[read], step.domain}, domain));
    }
    return reads;
  }

  // Whether an expression is 0 at all coordinates.
  bool IsZero(const Step& step, ExprId id) const {
    while (pool_[id].op == ExprOp::kCast) id = pool_[id].operands[0];
    const ExprNode& node = pool_[id];
    if (!tensor::IsFloat(node.type)) return false;
    if (node.op == ExprOp::kConstant) return std::bit_cast<double>(node.payload) == 0;
    if (node.op != ExprOp::kLoad) return false;
    const View& view = step.reads[node.payload];
    if (view.buffer == kNoBuffer || !view.guards.empty()) return false;
    const Buffer& buffer = program_.buffers[static_cast<size_t>(view.buffer)];
    if (buffer.kind != Buffer::Kind::kConstant) return false;
    const tensor::Tensor& value = program_.constants[static_cast<size_t>(buffer.index)];
    return value.element_count() == 1 && value.AsDouble(0) == 0;
  }

  // Whether a condition is known to hold nowhere: a mask that is no mask, as ONNX's Attention has
  // it where nothing is masked.
  bool IsNever(const Step& step, ExprId id) const {
    const ExprNode& node = pool_[id];
    if (node.op == ExprOp::kConstant) return node.payload == 0;
    if (node.op != ExprOp::kLoad || !node.operands.empty()) return false;
    const View& view = step.reads[node.payload];
    if (view.buffer == kNoBuffer || !view.guards.empty()) return false;
    const Buffer& buffer = program_.buffers[static_cast<size_t>(view.buffer)];
    if (buffer.kind != Buffer::Kind::kConstant) return false;
    const tensor::Tensor& value = program_.constants[static_cast<size_t>(buffer.index)];
    return std::ranges::all_of(value.bytes(), [](std::byte each) { return each == std::byte{0}; });
  }

  // The Map as a condition by rows of `weights`, of which each lies along the last axis of
  // `domain`; nothing if it does something else.
  std::optional<Zeroing> ParseZeroing(const Step& step, const View& weights,
                                      const Shape& domain) const {
    const Map& map = *step.As<Map>();
    if (step.domain != domain || map.roots.size() != 1 || HasComputedCoordinates(step)) {
      return std::nullopt;
    }
    ExprId root = map.roots[0];
    while (pool_[root].op == ExprOp::kCast && tensor::IsFloat(pool_[root].type)) {
      root = pool_[root].operands[0];
    }
    if (pool_[root].op != ExprOp::kSelect) return std::nullopt;
    ExprId kept = pool_[root].operands[2];
    while (pool_[kept].op == ExprOp::kCast && tensor::IsFloat(pool_[kept].type)) {
      kept = pool_[kept].operands[0];
    }
    const Zeroing zeroing = {pool_[root].operands[0], pool_[kept].payload};
    if (pool_[kept].op != ExprOp::kLoad || !IsZero(step, pool_[root].operands[1]) ||
        step.reads[zeroing.weights].buffer != weights.buffer ||
        !SameOver(domain, step.reads[zeroing.weights], weights)) {
      return std::nullopt;
    }
    for (const ExprId id : Reachable(pool_, std::span(&zeroing.condition, 1))) {
      const ExprNode& node = pool_[id];
      if (node.op == ExprOp::kIndex && node.payload + 1 == domain.size()) return std::nullopt;
      if (node.op == ExprOp::kLoad && !IsByRow(step.reads[node.payload])) return std::nullopt;
    }
    return zeroing;
  }
  // Whether a view stands still along the last axis.
  static bool IsByRow(const View& view) {
    const auto is_still = [](const Dims& steps) { return steps.empty() || steps.back() == Dim(0); };
    return is_still(view.strides) &&
           std::all_of(view.guards.begin(), view.guards.end(),
                       [&](const Guard& guard) { return is_still(guard.coefficients); });
  }

  // Where the condition holds, the weights are zeros, which make zeros of finite values: so do any
  // weights, times 0. Those of such a row may be no numbers, so its scores are numbers here.
  void AddZeroing(const Step& step, const Zeroing& zeroing, Step& joined, Attention& attention) {
    std::vector<int> to(step.reads.size(), -1);
    for (const ExprId id : Reachable(pool_, std::span(&zeroing.condition, 1))) {
      if (pool_[id].op != ExprOp::kLoad) continue;
      int& place = to[pool_[id].payload];
      if (place >= 0) continue;
      place = static_cast<int>(joined.reads.size());
      joined.reads.push_back(step.reads[pool_[id].payload]);
    }
    const Expr condition(&pool_, Moved(zeroing.condition, to));
    const Expr score(&pool_, attention.score);
    attention.score = Select(condition, Like(score, 0), score).id();
    const Expr sum = Accumulator(pool_, kFloat);
    const Expr zeroed = Select(condition, sum * Like(sum, 0) + Like(sum, 0), sum);
    std::unordered_map<ExprId, ExprId> done;
    attention.roots[0] = Rewrite(
        pool_, attention.roots[0],
        [&](ExprId id) { return id == sum.id() ? zeroed.id() : kNoExpr; }, done);
  }

  std::optional<Step> Joined(const Chain& chain) {
    const Step& scores = StepAt(chain.scores);
    const Step& softmax = StepAt(chain.softmax);
    const Step& sums = StepAt(chain.sums);
    const Contract& first = *scores.As<Contract>();
    const Contract& second = *sums.As<Contract>();
    if (HasComputedCoordinates(scores) || HasComputedCoordinates(softmax) ||
        HasComputedCoordinates(sums)) {
      return std::nullopt;
    }
    const std::optional<Softmax> parsed = SoftmaxParser(pool_, *softmax.As<Row>()).Parse();
    if (!parsed) return std::nullopt;
    const View& between = scores.writes[0];
    const Step* const map_of_weights =
        chain.zeroing == BufferUses::kNoStep ? nullptr : &StepAt(chain.zeroing);
    std::optional<Zeroing> zeroing;
    if (map_of_weights != nullptr) {
      zeroing = ParseZeroing(*map_of_weights, softmax.writes[0], softmax.domain);
      if (!zeroing) return std::nullopt;
    }
    const View& weights = zeroing ? map_of_weights->writes[0] : softmax.writes[0];
    const bool has_roundings = parsed->has_roundings || weights.type != kFloat;
    if (has_roundings && !program_.has_fast_algorithms) return std::nullopt;
    // Over the same axes, softmax along that of the first one's columns, the second one's depth.
    const Shape& domain = softmax.domain;
    if (scores.domain.size() != domain.size() || first.batch_axes != second.batch_axes ||
        sums.domain.size() != domain.size() || second.inner[0] != domain.back() ||
        !std::equal(domain.begin(), domain.end() - 1, sums.domain.begin())) {
      return std::nullopt;
    }
    // A mask may have repeated the scores, or a symbol may leave open whether it does.
    const View repeated = BroadcastTo({between, scores.domain}, domain);
    for (const View& read : softmax.reads) {
      if (read.buffer == between.buffer && !SameOver(domain, read, repeated)) return std::nullopt;
    }
    std::optional<std::vector<View>> score_reads = RepeatedReads(scores, domain);
    if (!score_reads) return std::nullopt;
    // The weights are A of the second product, as they are, and nothing else of it.
    ExprId a = second.a_prologue;
    while (pool_[a].op == ExprOp::kCast && tensor::IsFloat(pool_[a].type)) a = pool_[a].operands[0];
    const auto is_weights = [&](const View& read) { return read.buffer == weights.buffer; };
    if (pool_[a].op != ExprOp::kLoad || pool_[a].payload != 0 ||
        std::count_if(sums.reads.begin(), sums.reads.end(), is_weights) != 1 ||
        !is_weights(sums.reads[0]) || !SameOver(domain, sums.reads[0], weights) ||
        HasLoadOf(second.b_prologue, 0) || HasLoadOf(second.roots[0], 0) ||
        HasLoadOf(second.roots[0], 1)) {
      return std::nullopt;
    }
    // Nor does an operand of the first enter at the coordinates of the scores, or the other's.
    if (HasLoadOf(first.roots[0], 0) || HasLoadOf(first.roots[0], 1) ||
        HasLoadOf(first.a_prologue, 1) || HasLoadOf(first.b_prologue, 0)) {
      return std::nullopt;
    }

    Step joined;
    joined.domain = sums.domain;
    joined.node = scores.node;
    joined.writes = sums.writes;
    joined.reads = {(*score_reads)[0], (*score_reads)[1], sums.reads[1]};
    const std::vector<int> of_scores = AddReads(*score_reads, 2, kNoBuffer, {0, 1}, joined);
    const std::vector<int> of_softmax = AddReads(softmax.reads, 0, between.buffer, {}, joined);
    const std::vector<int> of_sums = AddReads(sums.reads, 2, weights.buffer, {-1, 2}, joined);
    Attention attention;
    attention.keys = domain.back();
    attention.width = first.inner[0];
    attention.query_prologue = Moved(first.a_prologue, of_scores);
    attention.key_prologue = Moved(first.b_prologue, of_scores);
    attention.value_prologue = Moved(second.b_prologue, of_sums);
    attention.score = Moved(parsed->element, of_softmax, Moved(first.roots[0], of_scores));
    attention.roots = {Moved(second.roots[0], of_sums)};
    if (zeroing && !IsNever(*map_of_weights, zeroing->condition)) {
      AddZeroing(*map_of_weights, *zeroing, joined, attention);
    }
    joined.body = std::move(attention);
    return joined;
  }

  Program& program_;
  ExprPool& pool_;
  const PrefersAttention& prefers_;
  BufferUses uses_;
};

}  // namespace

void FuseAttention(Program& program, const PrefersAttention& prefers) {
  Fusion(program, prefers).Run();
  RemoveDeadSteps(program);
}

}  // namespace onnxifi::program
