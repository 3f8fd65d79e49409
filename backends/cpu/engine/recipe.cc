// SPDX-License-Identifier: Apache-2.0
//
// Recipe: predicates that walk the expressions once and decide nothing about extents, so that a
// claim is cheap and holds for all of them.

#include "backends/cpu/engine/recipe.h"

#include <algorithm>
#include <string>

#include "backends/core/program/body_exprs.h"
#include "backends/core/reference/scratch.h"
#include "backends/cpu/engine/code.h"
#include "backends/cpu/engine/extreme_position.h"
#include "backends/cpu/engine/geometry.h"

namespace onnxifi::engine {
namespace {

runtime::RecipeResult MakeRecipe(std::string_view implementation, const device::Facts& facts,
                                 Recipe::Builder build) {
  ONNXIFI_RETURN_IF_ERROR(CheckStep(facts));
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<Recipe>(implementation, facts, build));
}

bool HasComputedCoordinates(const device::Facts& facts) {
  const program::ExprPool& pool = facts.program.exprs;
  const auto nodes = program::Reachable(pool, program::BodyExprs(facts.step));
  return std::ranges::any_of(nodes, [&](program::ExprId id) {
    return pool[id].op == program::ExprOp::kLoad && !pool[id].operands.empty();
  });
}

}  // namespace

base::Status CheckStep(const device::Facts& facts) {
  const program::Step& step = facts.step;
  size_t axes = step.domain.size();
  for (const program::View& view : step.reads) axes = std::max(axes, view.strides.size());
  if (axes > kMaxAxes) {
    return base::Status(base::Code::kUnsupportedShape, "The step has " + std::to_string(axes) +
                                                           " axes; the tile engine walks up to " +
                                                           std::to_string(kMaxAxes) + ".");
  }
  return CheckExpressions(facts.program.exprs, program::BodyExprs(step));
}

KernelResult Recipe::BuildKernel(Runtime& runtime) const {
  std::unique_ptr<device::Kernel> kernel;
  ONNXIFI_RETURN_IF_ERROR(reference::Guarded([&] {
    kernel = build_(facts_, runtime);
    return base::Ok();
  }));
  return kernel;
}

runtime::RecipeResult SelectMap(const device::Facts& facts) {
  return MakeRecipe("engine map", facts, BuildMap);
}

runtime::RecipeResult SelectReduce(const device::Facts& facts) {
  // Under a name of its own, so that no pass lets it compute its elements: where it finds positions
  // in rows of neighbours, they have to lie in memory.
  const bool is_search = FindExtremePosition(facts.program.exprs, facts.step).has_value();
  return MakeRecipe(is_search ? "engine search" : "engine reduce", facts, BuildReduce);
}

runtime::RecipeResult SelectRow(const device::Facts& facts) {
  // Under a name of its own, too: a Map copies rows of a table as rows, which every pass over a row
  // would gather element by element.
  const bool is_gathered = HasComputedCoordinates(facts);
  return MakeRecipe(is_gathered ? "engine row of a table" : "engine row", facts, BuildRow);
}

bool HasFamily(const program::Step& step) {
  return step.As<program::Map>() != nullptr || step.As<program::Reduce>() != nullptr ||
         step.As<program::Row>() != nullptr;
}

runtime::RecipeResult Select(const device::Facts& facts) {
  if (facts.step.As<program::Map>() != nullptr) return SelectMap(facts);
  if (facts.step.As<program::Reduce>() != nullptr) return SelectReduce(facts);
  if (facts.step.As<program::Row>() != nullptr) return SelectRow(facts);
  return base::Status(base::Code::kUnsupportedOperator,
                      "The tile engine does Map, Reduce and Row; the step is a " +
                          std::string(program::FamilyName(facts.step)) + ".");
}

}  // namespace onnxifi::engine
