// SPDX-License-Identifier: Apache-2.0
//
// Every expression that a step's body evaluates.

#include "backends/core/program/body_exprs.h"

namespace onnxifi::program {
namespace {

class Collector {
 public:
  explicit Collector(base::SmallVector<ExprId*, 8>& found) : found_(found) {}

  void operator()(Map& map) { Add(map.roots); }
  void operator()(Reduce& reduce) {
    Add(reduce.reduction);
    Add(reduce.roots);
  }
  void operator()(Row& row) {
    for (Row::Pass& pass : row.passes) {
      Add(pass.reduction);
      Add(pass.results);
    }
    Add(row.roots);
  }
  void operator()(Scan& scan) {
    Add(scan.reduction);
    Add(scan.roots);
  }
  void operator()(Contract& contract) {
    Add(contract.a_prologue);
    Add(contract.b_prologue);
    Add(contract.roots);
  }
  void operator()(Window& window) { Add(window.roots); }
  void operator()(Attention& attention) {
    Add(attention.query_prologue);
    Add(attention.key_prologue);
    Add(attention.value_prologue);
    Add(attention.score);
    Add(attention.roots);
  }
  void operator()(Recurrent&) {}
  void operator()(Index&) {}
  void operator()(Cut&) {}
  void operator()(Control&) {}
  void operator()(Host&) {}

 private:
  void Add(ExprId& id) {
    if (id != kNoExpr) found_.push_back(&id);
  }
  void Add(ExprIds& ids) {
    for (ExprId& id : ids) Add(id);
  }
  void Add(Reduction& reduction) {
    for (Reduction::State& state : reduction.states) {
      Add(state.init);
      Add(state.update);
      Add(state.merge);
    }
  }

  base::SmallVector<ExprId*, 8>& found_;
};

}  // namespace

base::SmallVector<ExprId*, 8> BodyExprs(Step& step) {
  base::SmallVector<ExprId*, 8> found;
  std::visit(Collector(found), step.body);
  return found;
}

ExprIds BodyExprs(const Step& step) {
  ExprIds ids;
  for (const ExprId* id : BodyExprs(const_cast<Step&>(step))) ids.push_back(*id);
  return ids;
}

}  // namespace onnxifi::program
