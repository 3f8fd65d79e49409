// SPDX-License-Identifier: Apache-2.0
//
// Cost: the extents over which each view of a step runs, and what is computed at each point.

#include "backends/core/program/cost.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "backends/core/program/body_exprs.h"
#include "backends/core/program/operand_extents.h"
#include "backends/core/program/recurrent_extents.h"

namespace onnxifi::program {
namespace {

using Extents = std::vector<int64_t>;

int64_t Times(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

int64_t Plus(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

int64_t Count(std::span<const int64_t> extents) {
  int64_t count = 1;
  for (const int64_t extent : extents) count = Times(count, extent);
  return count;
}

bool IsArithmetic(const ExprPool& pool, const ExprNode& node) {
  if (node.operands.empty() || node.op == ExprOp::kLoad || node.op == ExprOp::kCast ||
      node.op == ExprOp::kBitcast) {
    return false;
  }
  // Comparisons of floats give bools; arithmetic on indices is none that counts.
  return tensor::IsFloat(node.type) || tensor::IsFloat(pool[node.operands[0]].type);
}

class Counter {
 public:
  Counter(const Program& program, const Step& step, std::span<const int64_t> dims)
      : program_(program), step_(step), dims_(dims), domain_(Numbers(step.domain)) {
    for (const ExprId root : BodyExprs(step)) {
      for (const ExprId id : Reachable(program.exprs, {&root, 1})) {
        const ExprNode& node = program.exprs[id];
        if (node.op == ExprOp::kLoad && !node.operands.empty()) {
          indexed_reads_.insert(static_cast<int>(node.payload));
        }
      }
    }
  }

  StepCost Take() {
    StepCost cost{flops_, 0, 0};
    for (const auto& [buffer, bytes] : read_) {
      cost.read_bytes = Plus(cost.read_bytes, std::min(bytes, BufferBytes(buffer)));
    }
    for (const auto& [buffer, bytes] : written_) {
      cost.written_bytes = Plus(cost.written_bytes, std::min(bytes, BufferBytes(buffer)));
    }
    return cost;
  }

  void operator()(const Map& map) {
    Compute(map.roots, domain_);
    ReadAllOver(domain_);
    WriteAllOver(domain_);
  }

  void operator()(const Reduce& reduce) {
    const Extents outer(domain_.begin(), domain_.end() - reduce.axes);
    Compute(Updates(reduce.reduction), domain_);
    Compute(reduce.roots, outer);
    ReadAllOver(domain_);
    WriteAllOver(outer);
  }

  void operator()(const Row& row) {
    const Extents outer(domain_.begin(), domain_.end() - row.axes);
    for (const Row::Pass& pass : row.passes) {
      Compute(Updates(pass.reduction), domain_);
      Compute(pass.results, outer);
    }
    Compute(row.roots, domain_);
    ReadAllOver(domain_);
    WriteAllOver(domain_);
  }

  void operator()(const Scan& scan) {
    Compute(Updates(scan.reduction), domain_);
    Compute(scan.roots, domain_);
    ReadAllOver(domain_);
    WriteAllOver(domain_);
  }

  void operator()(const Contract& contract) {
    const Extents inner = Numbers(contract.inner);
    const Extents a = OperandExtents(step_, 0, dims_);
    const Extents b = OperandExtents(step_, 1, dims_);
    // A product per element of the result and of the inner axes; a transposed convolution spreads
    // each element of A over a kernel instead.
    const int64_t products = contract.form == Contract::Form::kConvTranspose
                                 ? Times(Count(a), Count({b.begin() + 1, b.end()}))
                                 : Times(Count(domain_), Count(inner));
    flops_ = Plus(flops_, Times(2, products));
    ReadOperand(0, contract.a_prologue, a);
    ReadOperand(1, contract.b_prologue, b);
    Compute(contract.roots, domain_);
    ReadOver(contract.roots, domain_);
    WriteAllOver(domain_);
  }

  void operator()(const Window& window) {
    const bool is_sum_of_powers =
        window.kind == Window::Kind::kLp || window.kind == Window::Kind::kLrn;
    const int64_t elements = Times(Count(domain_), Count(Numbers(window.kernel)));
    flops_ = Plus(flops_, Times(is_sum_of_powers ? 2 : 1, elements));
    Read(0, OperandExtents(step_, 0, dims_));
    Compute(window.roots, domain_);
    ReadOver(window.roots, domain_);
    WriteAllOver(domain_);
  }

  void operator()(const Attention& attention) {
    const Extents q = OperandExtents(step_, 0, dims_);
    const Extents k = OperandExtents(step_, 1, dims_);
    const Extents v = OperandExtents(step_, 2, dims_);
    Extents scores(q);
    scores.back() = k.back();
    flops_ = Plus(flops_, Times(2, Times(Count(scores), q.back())));
    flops_ = Plus(flops_, Times(2, Times(Count(domain_), k.back())));
    // Of softmax: largest score, difference, exponential and sum, and a quotient for each output.
    flops_ = Plus(flops_, Plus(Times(4, Count(scores)), Count(domain_)));
    ReadOperand(0, attention.query_prologue, q);
    ReadOperand(1, attention.key_prologue, k);
    ReadOperand(2, attention.value_prologue, v);
    Compute({&attention.score, 1}, scores);
    ReadOver({&attention.score, 1}, scores);
    Compute(attention.roots, domain_);
    ReadOver(attention.roots, domain_);
    WriteAllOver(domain_);
  }

  void operator()(const Index&) {
    ReadAllOver(domain_);
    // Where elements go depends on data; each goes to one place.
    for (const View& write : step_.writes) {
      Add(written_, write, Count(domain_));
    }
  }

  void operator()(const Recurrent& recurrent) {
    const int64_t elements = Count(domain_);  // of states, at each time step one
    const int64_t gates = recurrent.gates();
    // At each time step a product per element of the weights and row, then what step.h says of each
    // element of the states, an activation as one operation.
    const int64_t products = Times(Times(elements, gates), domain_.empty() ? 0 : domain_.back());
    flops_ = Plus(flops_, Times(2, products));
    int64_t operations = recurrent.kind == Recurrent::Kind::kRnn   ? 2
                         : recurrent.kind == Recurrent::Kind::kGru ? 11
                                                                   : 13;
    if (step_.reads[Recurrent::kPeepholes].buffer != kNoBuffer) operations += 6;
    if (step_.reads[Recurrent::kHiddenBias].buffer != kNoBuffer) operations += 1;
    flops_ = Plus(flops_, Times(operations, elements));
    for (int read = 0; read < Recurrent::kReads; ++read) {
      if (step_.reads[read].buffer != kNoBuffer) Read(read, OperandExtents(step_, read, dims_));
    }
    for (int write = 0; write < Recurrent::kWrites; ++write) {
      const View& view = step_.writes[write];
      if (view.buffer == kNoBuffer) continue;
      Add(written_, view, Reached(view, Numbers(RecurrentWriteShape(step_, write))));
    }
  }

  void operator()(const Cut&) {}
  void operator()(const Control&) {}
  void operator()(const Host&) {}

 private:
  Extents Numbers(const Shape& shape) const {
    Extents numbers;
    for (const Dim& dim : shape) numbers.push_back(tensor::ValueOf(dim, dims_));
    return numbers;
  }

  static std::vector<ExprId> Updates(const Reduction& reduction) {
    std::vector<ExprId> updates;
    for (const Reduction::State& state : reduction.states) updates.push_back(state.update);
    return updates;
  }

  int64_t BufferBytes(BufferId id) const {
    const Buffer& buffer = program_.buffers[id];
    return tensor::SizeBytes(buffer.type, Count(Numbers(buffer.shape)));
  }

  void Compute(std::span<const ExprId> roots, const Extents& extents) {
    int64_t count = 0;
    for (const ExprId id : Reachable(program_.exprs, roots)) {
      count += IsArithmetic(program_.exprs, program_.exprs[id]) ? 1 : 0;
    }
    flops_ = Plus(flops_, Times(count, Count(extents)));
  }

  static void Add(std::map<BufferId, int64_t>& bytes, const View& view, int64_t count) {
    if (view.buffer == kNoBuffer) return;
    bytes[view.buffer] = Plus(bytes[view.buffer], tensor::SizeBytes(view.type, count));
  }

  // Elements that a view reaches: those of the axes along which it moves.
  int64_t Reached(const View& view, const Extents& extents) const {
    int64_t count = 1;
    for (int axis = 0; axis < view.rank() && axis < static_cast<int>(extents.size()); ++axis) {
      if (tensor::ValueOf(view.strides[axis], dims_) != 0) count = Times(count, extents[axis]);
    }
    // Nothing is reached over no coordinates, by a view that does not move either.
    return Count(extents) == 0 ? 0 : count;
  }

  void Read(int read, const Extents& extents) {
    const View& view = step_.reads[read];
    const bool is_indexed = indexed_reads_.contains(read);
    Add(read_, view, is_indexed ? Count(extents) : Reached(view, extents));
  }

  void ReadAllOver(const Extents& extents) {
    for (int read = 0; read < static_cast<int>(step_.reads.size()); ++read) Read(read, extents);
  }

  void ReadOver(std::span<const ExprId> roots, const Extents& extents) {
    std::set<int> reads;
    for (const ExprId id : Reachable(program_.exprs, roots)) {
      const ExprNode& node = program_.exprs[id];
      if (node.op == ExprOp::kLoad) reads.insert(static_cast<int>(node.payload));
    }
    for (const int read : reads) Read(read, extents);
  }

  void ReadOperand(int operand, ExprId prologue, const Extents& extents) {
    if (prologue == kNoExpr) {
      Read(operand, extents);
      return;
    }
    Compute({&prologue, 1}, extents);
    ReadOver({&prologue, 1}, extents);
  }

  void WriteAllOver(const Extents& extents) {
    for (const View& write : step_.writes) Add(written_, write, Reached(write, extents));
  }

  const Program& program_;
  const Step& step_;
  const std::span<const int64_t> dims_;
  const Extents domain_;
  std::set<int> indexed_reads_;
  int64_t flops_ = 0;
  std::map<BufferId, int64_t> read_;
  std::map<BufferId, int64_t> written_;
};

}  // namespace

StepCost CostOf(const Program& program, const Step& step, std::span<const int64_t> dims) {
  Counter counter(program, step, dims);
  std::visit(counter, step.body);
  return counter.Take();
}

}  // namespace onnxifi::program
