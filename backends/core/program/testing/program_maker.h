// SPDX-License-Identifier: Apache-2.0
//
// ProgramMaker: for tests: a program put together from buffers and steps, each step in one call.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_TESTING_PROGRAM_MAKER_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_TESTING_PROGRAM_MAKER_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/program/program.h"

namespace onnxifi::program {

class ProgramMaker {
 public:
  // What a Map computes of its reads; it may use coordinates too.
  using Formula = std::function<Expr(ExprPool& pool, const std::vector<Expr>& loads)>;

  // Each returns the whole buffer, dense. A dim may be a symbol of `program.dims`.
  Operand Input(const Shape& shape, ElementType type = ElementType::kFloat32) {
    const auto index = static_cast<int>(program.inputs.size());
    Operand operand = Add(Buffer::Kind::kInput, shape, type, index);
    program.inputs.push_back({"in" + std::to_string(index), operand.view.buffer, shape});
    return operand;
  }
  Operand Constant(tensor::Tensor tensor) {
    const Shape shape(tensor.extents().begin(), tensor.extents().end());
    const auto index = static_cast<int>(program.constants.size());
    const ElementType type = tensor.type();
    program.constants.push_back(std::move(tensor));
    return Add(Buffer::Kind::kConstant, shape, type, index);
  }
  Operand Temporary(const Shape& shape, ElementType type = ElementType::kFloat32) {
    return Add(Buffer::Kind::kTemporary, shape, type, -1);
  }
  void Output(const Operand& operand) {
    program.outputs.push_back({"out" + std::to_string(program.outputs.size()), operand.view.buffer,
                               program.buffers[operand.view.buffer].shape});
  }

  // A Map into `target`. Reads that have fewer axes, or extents of 1, are broadcast.
  void MapTo(const Operand& target, const std::vector<Operand>& reads, const Formula& formula) {
    Step step;
    step.domain = target.shape;
    std::vector<Expr> loads;
    for (const Operand& read : reads) {
      loads.push_back(Load(program.exprs, read.type(), static_cast<int>(step.reads.size())));
      step.reads.push_back(BroadcastTo(read, target.shape));
    }
    step.writes = {target.view};
    step.body = program::Map{{formula(program.exprs, loads).id()}};
    AddStep(std::move(step));
  }
  // The same into a new temporary of the type that the formula has.
  Operand Map(const Shape& shape, const std::vector<Operand>& reads, const Formula& formula) {
    const Operand target = Temporary(shape);
    MapTo(target, reads, formula);
    const ElementType type = program.exprs[program.steps.back().As<program::Map>()->roots[0]].type;
    program.buffers[target.view.buffer].type = type;
    program.steps.back().writes[0].type = type;
    return {program.steps.back().writes[0], shape};
  }

  // The sum over the last axis of `x`, to a new temporary.
  Operand SumRows(const Operand& x) {
    const Expr state = State(program.exprs, x.type(), 0);
    Reduce reduce;
    reduce.axes = 1;
    reduce.reduction.states.push_back({x.type(), program::Constant(program.exprs, x.type(), 0).id(),
                                       (state + Load(program.exprs, x.type(), 0)).id(),
                                       (state + Other(program.exprs, x.type(), 0)).id()});
    reduce.roots = {state.id()};
    Operand sum = Temporary(Shape(x.shape.begin(), x.shape.end() - 1), x.type());
    AddStep({x.shape, {x.view}, {sum.view}, std::move(reduce)});
    return sum;
  }

  // a[m, k] x b[k, n] to a new temporary [m, n].
  Operand MatMul(const Operand& a, const Operand& b) {
    Contract contract;
    contract.m_axes = 1;
    contract.n_axes = 1;
    contract.inner = {a.shape[1]};
    contract.a_prologue = Load(program.exprs, a.type(), 0).id();
    contract.b_prologue = Load(program.exprs, b.type(), 1).id();
    contract.roots = {Accumulator(program.exprs, ElementType::kFloat32).id()};
    Operand product = Temporary({a.shape[0], b.shape[1]});
    AddStep({product.shape, {a.view, b.view}, {product.view}, std::move(contract)});
    return product;
  }

  void AddStep(Step step) {
    step.node = static_cast<int>(program.steps.size());
    program.steps.push_back(std::move(step));
  }

  Program program;

 private:
  Operand Add(Buffer::Kind kind, const Shape& shape, ElementType type, int index) {
    const BufferId id = program.AddBuffer({kind, type, shape, index});
    return {DenseView(id, type, shape), shape};
  }
};

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_TESTING_PROGRAM_MAKER_H_
