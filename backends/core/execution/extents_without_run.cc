// SPDX-License-Identifier: Apache-2.0
//
// ExtentsWithoutRun: symbols of inputs are bound as for a run; what depends on others is not told.

#include "backends/core/execution/extents_without_run.h"

#include <algorithm>

namespace onnxifi::execution {

using base::Result;
using tensor::Extents;

namespace {

// By node: whether its number follows from the extents of inputs alone.
std::vector<bool> FollowsFromInputs(const tensor::DimTable& dims) {
  std::vector<bool> follows(static_cast<size_t>(dims.node_count()));
  const auto is_known = [&](const program::Dim& dim) {
    return dim.is_constant() || follows[static_cast<size_t>(dim.node()->id)];
  };
  for (int id = 0; id < dims.node_count(); ++id) {
    const tensor::DimNode& node = dims.node(id);
    bool is_followed = node.symbol < 0 || !dims.symbol(node.symbol).is_data;
    for (const program::Dim& operand : node.operands) {
      is_followed = is_followed && is_known(operand);
    }
    for (const tensor::DimNode::Term& term : node.terms) {
      for (const tensor::DimNode* atom : term.atoms) {
        is_followed = is_followed && follows[static_cast<size_t>(atom->id)];
      }
    }
    follows[static_cast<size_t>(id)] = is_followed;
  }
  return follows;
}

}  // namespace

Result<std::vector<Extents>> ExtentsWithoutRun(const plan::Plan& plan, size_t first,
                                               std::span<const InputTensor> inputs) {
  const program::Program& program = plan.program();
  const tensor::DimTable& dims = *program.dims;
  std::vector<Extents> given;
  for (const InputTensor& input : inputs) given.push_back(input.extents);
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<int64_t> symbols, plan.SymbolsFor(given));
  std::vector<int64_t> values(static_cast<size_t>(dims.node_count()));
  dims.Evaluate(symbols, 0, dims.symbol_count(), values);
  const std::vector<bool> follows = FollowsFromInputs(dims);
  std::vector<Extents> results;
  for (size_t output = first; output < program.outputs.size(); ++output) {
    Extents& extents = results.emplace_back();
    for (const program::Dim& dim : program.outputs[output].shape) {
      const bool is_told = dim.is_constant() || follows[static_cast<size_t>(dim.node()->id)];
      extents.push_back(is_told ? std::max<int64_t>(0, ValueOf(dim, values)) : 0);
    }
  }
  return results;
}

}  // namespace onnxifi::execution
