// SPDX-License-Identifier: Apache-2.0
//
// Reduce and Row: reductions by items or groups, as elements.h has them. Very long reductions are
// shared out to several groups, whose states a second kernel merges.

#include <algorithm>
#include <set>
#include <utility>

#include "backends/core/codegen/elements.h"
#include "backends/core/codegen/family.h"
#include "backends/core/codegen/reduce_kernels.h"
#include "backends/core/program/expr.h"

namespace onnxifi::codegen {
namespace {

using program::ExprId;

// The reads that expressions look at where they are written.
std::set<int> DirectReads(const Source& source, std::vector<ExprId> roots) {
  std::erase(roots, program::kNoExpr);
  std::set<int> reads;
  for (const ExprId id : program::Reachable(source.program.exprs, roots)) {
    const program::ExprNode& node = source.program.exprs[id];
    if (node.op == program::ExprOp::kLoad && node.operands.empty()) {
      reads.insert(static_cast<int>(node.payload));
    }
  }
  return reads;
}

}  // namespace

void WriteRoots(Writer& writer, const Source& source, const Scope& scope,
                std::span<const ExprId> roots) {
  const std::vector<std::string> values =
      WriteExpressions(writer, source.program, source.step, scope, roots);
  for (size_t k = 0; k < values.size(); ++k) {
    if (values[k].empty()) continue;
    WriteStore(writer, source.step, static_cast<int>(k), scope.coordinates, values[k]);
  }
}

Launch WriteReduce(Writer& writer, const Source& source, int kernel) {
  const program::Reduce& reduce = *source.step.As<program::Reduce>();
  Elements elements(writer, source);
  if (kernel == kReduceParts) {
    const std::string parts = writer.UseGiven(kPartCount);
    const Scope scope = elements.Open(parts, writer.UseGiven(kPartLength));
    elements.StoreParts(reduce.reduction, elements.Reduce(scope, reduce.reduction));
    Launch launch = elements.Close();
    launch.given_items = kPartGroups;
    return launch;
  }
  Scope scope = elements.Open();
  if (kernel == kMergeParts) {
    const std::string parts = writer.UseGiven(kPartCount);
    scope.state = elements.ReduceParts(reduce.reduction, parts, parts);
  } else {
    scope.state = elements.Reduce(scope, reduce.reduction);
  }
  scope.coordinates.resize(static_cast<size_t>(source.form.outer_rank));
  elements.OpenFirst();
  WriteRoots(writer, source, scope, reduce.roots);
  elements.CloseFirst();
  return elements.Close();
}

Launch WriteRow(Writer& writer, const Source& source) {
  const program::Row& row = *source.step.As<program::Row>();
  program::ExprIds per_row = row.roots;
  program::ExprIds per_element = row.roots;
  bool has_per_row = false;
  bool has_per_element = false;
  for (size_t k = 0; k < row.roots.size(); ++k) {
    const bool is_per_row = source.form.is_per_row[k];
    (is_per_row ? per_element : per_row)[k] = program::kNoExpr;
    (is_per_row ? has_per_row : has_per_element) = true;
  }
  Elements elements(writer, source);
  // By loop over the elements: a pass, or in the end the roots.
  std::vector<std::set<int>> reads;
  if (source.form.row_capacity > 0) {
    for (const program::Row::Pass& pass : row.passes) {
      std::vector<ExprId> updates;
      for (const auto& state : pass.reduction.states) updates.push_back(state.update);
      reads.push_back(DirectReads(source, std::move(updates)));
    }
    reads.push_back(DirectReads(source, {per_element.begin(), per_element.end()}));
    std::set<int> seen, repeated;
    for (const std::set<int>& of_loop : reads) {
      for (const int read : of_loop) {
        if (!seen.insert(read).second) repeated.insert(read);
      }
    }
    int64_t merged_bytes = 0;
    for (const program::Row::Pass& pass : row.passes) {
      for (const auto& state : pass.reduction.states) {
        merged_bytes += std::max(1, tensor::BitWidth(state.type) / 8);
      }
    }
    elements.KeepReads(repeated, merged_bytes);
  }
  reads.resize(row.passes.size() + 1);
  Scope scope = elements.Open();
  for (size_t k = 0; k < row.passes.size(); ++k) {
    const program::Row::Pass& pass = row.passes[k];
    scope.state = elements.Reduce(scope, pass.reduction, reads[k]);
    std::vector<std::string> results =
        WriteExpressions(writer, source.program, source.step, scope, pass.results);
    // A result may be a state, whose name a later pass does not touch.
    scope.rows.push_back(std::move(results));
  }
  scope.state.clear();
  if (has_per_element) {
    elements.OpenStores();
    elements.ForEach(
        scope, [&](const Scope& inner) { WriteRoots(writer, source, inner, per_element); },
        reads.back());
    elements.CloseStores();
  }
  if (has_per_row) {
    elements.OpenFirst();
    WriteRoots(writer, source, scope, per_row);
    elements.CloseFirst();
  }
  return elements.Close();
}

}  // namespace onnxifi::codegen
