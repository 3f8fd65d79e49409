// SPDX-License-Identifier: Apache-2.0
//
// SummedProducts: makes another step of one, in a program of its own. Its domain has the axes of
// depth behind those of the result; what reads A does not move along the columns, nor what reads B
// along the rows.

#include "backends/cpu/summed_products.h"

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/cpu/engine/recipe.h"
#include "backends/cpu/split_step.h"

namespace onnxifi::cpu {
namespace {

using base::Code;
using base::Status;
using program::Contract;
using program::Dim;
using program::Dims;
using program::Expr;
using program::ExprId;
using program::ExprOp;
using program::Step;
using program::View;
using runtime::RecipeResult;

struct Sums {
  program::Program program;  // without constants and steps
  Step step;
};

class SumsKernel final : public device::Kernel {
 public:
  SumsKernel(std::shared_ptr<const Sums> sums, std::unique_ptr<device::Kernel> kernel)
      : sums_(std::move(sums)), kernel_(std::move(kernel)) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    return kernel_->Bind(device::Bind(sums_->program, sums_->step, step.dims), constants);
  }

 private:
  const std::shared_ptr<const Sums> sums_;
  const std::unique_ptr<device::Kernel> kernel_;
};

class SumsRecipe final : public runtime::Recipe {
 public:
  SumsRecipe(std::string_view implementation, std::shared_ptr<const Sums> sums,
             std::unique_ptr<const device::Recipe> recipe)
      : implementation_(implementation), sums_(std::move(sums)), recipe_(std::move(recipe)) {}

  std::string_view implementation() const override { return implementation_; }
  bool TakesAnyAddress(int read) const override { return recipe_->TakesAnyAddress(read); }
  base::Result<std::unique_ptr<device::Kernel>> Build(
      const runtime::Runtimes& runtimes) const override {
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> kernel,
                             dynamic_cast<const runtime::Recipe&>(*recipe_).Build(runtimes));
    return std::unique_ptr<device::Kernel>(std::make_unique<SumsKernel>(sums_, std::move(kernel)));
  }

 private:
  const std::string_view implementation_;
  const std::shared_ptr<const Sums> sums_;
  const std::unique_ptr<const device::Recipe> recipe_;
};

// Which reads an expression loads over its own axes. UNSUPPORTED_* where it computes coordinates.
base::Result<std::vector<bool>> FindReads(const device::Facts& facts, ExprId root) {
  std::vector<bool> is_read(facts.step.reads.size());
  const program::ExprPool& pool = facts.program.exprs;
  const ExprId roots[] = {root};
  for (const ExprId id : program::Reachable(pool, roots)) {
    const program::ExprNode& node = pool[id];
    if (node.op == ExprOp::kIndex || (node.op == ExprOp::kLoad && !node.operands.empty())) {
      return Status(Code::kUnsupportedAttribute, "What is multiplied depends on where it is.");
    }
    if (node.op == ExprOp::kLoad) is_read[node.payload] = true;
  }
  return is_read;
}

// The axes of an operand as those of [batch, m, n, k]: `order` says for each of them which of the
// operand's it is, or -1.
Dims Arrange(const Dims& per_axis, const std::vector<int>& order) {
  Dims arranged;
  for (const int axis : order) {
    arranged.push_back(axis < 0 ? Dim(0) : per_axis[static_cast<size_t>(axis)]);
  }
  return arranged;
}

void ArrangeReads(Step& step, const std::vector<bool>& is_read, const std::vector<int>& order) {
  for (size_t read = 0; read < step.reads.size(); ++read) {
    if (!is_read[read]) continue;
    View& view = step.reads[read];
    view.strides = Arrange(view.strides, order);
    for (program::Guard& guard : view.guards) {
      guard.coefficients = Arrange(guard.coefficients, order);
    }
  }
}

bool HasOneElement(const Step& step, const Contract& contract) {
  const auto rows = step.domain.begin() + contract.batch_axes;
  return std::all_of(rows, step.domain.end(), [](const Dim& extent) { return extent == Dim(1); });
}

Status CheckProduct(const device::Facts& facts) {
  const Step& step = facts.step;
  const auto* contract = step.As<Contract>();
  if (contract == nullptr || contract->form != Contract::Form::kMatMul) {
    return Status(Code::kUnsupportedOperator, "The step is no matrix product.");
  }
  if (contract->inner.empty()) {
    return Status(Code::kUnsupportedShape, "The product has no axis of depth.");
  }
  for (const size_t operand : {size_t{0}, size_t{1}}) {
    const tensor::ElementType type = step.reads[operand].type;
    if (type == tensor::ElementType::kFloat32) continue;
    return Status(Code::kUnsupportedDatatype,
                  "Operand " + std::to_string(operand) + " has the type " +
                      std::string(tensor::Name(type)) + ", not float32.");
  }
  if (!HasOneElement(step, *contract)) {
    return Status(Code::kUnsupportedShape, "The product may have several rows or columns.");
  }
  return base::Ok();
}

RecipeResult SelectAlone(const device::Facts& facts, std::string_view implementation) {
  ONNXIFI_RETURN_IF_ERROR(CheckProduct(facts));
  const Contract& contract = *facts.step.As<Contract>();
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<bool> is_of_a, FindReads(facts, contract.a_prologue));
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<bool> is_of_b, FindReads(facts, contract.b_prologue));
  for (size_t read = 0; read < is_of_a.size(); ++read) {
    if (is_of_a[read] && is_of_b[read]) {
      return Status(Code::kUnsupportedAttribute,
                    "Both operands read " + std::to_string(read) + ".");
    }
  }
  const int batch = contract.batch_axes, rows = contract.m_axes, columns = contract.n_axes;
  const int depth = static_cast<int>(contract.inner.size());
  std::vector<int> order_of_a, order_of_b, order_of_result;
  for (int axis = 0; axis < batch + rows + columns + depth; ++axis) {
    const bool is_row = axis >= batch && axis < batch + rows;
    const bool is_depth = axis >= batch + rows + columns;
    const bool is_column = axis >= batch + rows && !is_depth;
    order_of_result.push_back(is_depth ? -1 : axis);
    order_of_a.push_back(is_column ? -1 : is_depth ? axis - columns : axis);
    order_of_b.push_back(is_row      ? -1
                         : is_depth  ? axis - rows - columns
                         : is_column ? axis - rows + depth
                                     : axis);
  }

  auto sums = std::make_shared<Sums>();
  program::Program& program = sums->program;
  program.exprs = facts.program.exprs;
  program.buffers = facts.program.buffers;
  static_cast<tensor::Permissions&>(program) = facts.program;
  Step& step = sums->step;
  step.domain = facts.step.domain;
  step.domain.insert(step.domain.end(), contract.inner.begin(), contract.inner.end());
  step.reads = facts.step.reads;
  step.writes = facts.step.writes;
  step.node = facts.step.node;
  std::vector<bool> is_of_result(step.reads.size());
  for (size_t read = 0; read < step.reads.size(); ++read) {
    is_of_result[read] = !is_of_a[read] && !is_of_b[read];
  }
  ArrangeReads(step, is_of_a, order_of_a);
  ArrangeReads(step, is_of_b, order_of_b);
  ArrangeReads(step, is_of_result, order_of_result);

  program::ExprPool& pool = program.exprs;
  const tensor::ElementType type = contract.accumulator;
  const Expr product = Expr(&pool, contract.a_prologue) * Expr(&pool, contract.b_prologue);
  const Expr state = program::State(pool, type, 0);
  program::Reduce reduce;
  reduce.axes = depth;
  reduce.reduction.states = {{type, program::IntConstant(pool, type, 0).id(),
                              (state + product).id(),
                              (state + program::Other(pool, type, 0)).id()}};
  std::unordered_map<ExprId, ExprId> done;
  for (const ExprId root : contract.roots) {
    reduce.roots.push_back(program::Rewrite(
        pool, root,
        [&](ExprId id) {
          return pool[id].op == ExprOp::kAccumulator ? state.id() : program::kNoExpr;
        },
        done));
  }
  step.body = std::move(reduce);
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<const device::Recipe> recipe,
                           engine::SelectReduce({program, step}));
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<SumsRecipe>(implementation, std::move(sums), std::move(recipe)));
}

}  // namespace

RecipeResult SelectSummedProducts(const device::Facts& facts, std::string_view implementation) {
  ONNXIFI_RETURN_IF_ERROR(CheckProduct(facts));
  const program::ExprPool& pool = facts.program.exprs;
  const std::vector<ExprId> nodes = program::Reachable(pool, facts.step.As<Contract>()->roots);
  const bool reads_more = std::any_of(nodes.begin(), nodes.end(),
                                      [&](ExprId id) { return pool[id].op == ExprOp::kLoad; });
  // What becomes of a reduced row reads nothing.
  if (!reads_more) return SelectAlone(facts, implementation);
  return SplitEpilogue(facts, implementation, [&](const device::Facts& sums) {
    return SelectAlone(sums, implementation);
  });
}

}  // namespace onnxifi::cpu
