// SPDX-License-Identifier: Apache-2.0
//
// MakeRow: up to three passes over a row, each free to use the results of those before it.

#include <utility>

#include "backends/core/reference/random_step/family.h"
#include "backends/core/reference/random_step/reduction.h"

namespace onnxifi::reference {

using program::Expr;
using program::Operand;
using tensor::ElementType;
using tensor::Extents;

void MakeRow(StepMaker& make) {
  make.data = Data::kModerate;
  const Extents domain = make.MakeExtents(1, 4, make.Chance(20) ? 1500 : 300);
  const int axes = static_cast<int>(make.Roll(1, static_cast<int64_t>(domain.size())));
  const auto outer_rank = static_cast<int>(domain.size()) - axes;
  const Extents reduced(domain.begin() + outer_rank, domain.end());
  make.step.domain = make.MakeShape(domain);
  std::vector<Expr> results;
  program::Row row;
  row.axes = axes;
  const int passes = static_cast<int>(make.Roll(1, 3));
  for (int pass = 0; pass < passes; ++pass) {
    const StepMaker::AllowedLeaves place{domain, true, &results};
    MadeReduction made = MakeReduction(
        make,
        [&](ElementType type) {
          return make.MakeExpr(place, type, static_cast<int>(make.Roll(0, 2)));
        },
        reduced, outer_rank);
    program::Row::Pass made_pass{std::move(made.reduction), {}};
    for (size_t k = 0; k < made.finals.size(); ++k) {
      made_pass.results.push_back(made.finals[k].id());
      results.push_back(RowResult(make.pool(), made.finals[k].type(), pass, static_cast<int>(k)));
    }
    row.passes.push_back(std::move(made_pass));
  }
  const StepMaker::AllowedLeaves place{domain, true, &results};
  const ElementType computed = make.Pick({kFloat32, kFloat64, ElementType::kInt32});
  const ElementType type = make.StoredType(computed);
  row.roots.push_back(Cast(make.MakeExpr(place, computed, 2), type).id());
  make.AddWrite(type, domain);
  if (make.Chance(40)) {
    // A result of the row itself, written once per row.
    const Expr result = make.Pick(std::span<const Expr>(results));
    row.roots.push_back(result.id());
    const Extents outer(domain.begin(), domain.begin() + outer_rank);
    Operand operand = make.MakeOperand(result.type(), outer, /*is_input=*/false, Data::kAny);
    for (int k = 0; k < axes; ++k) operand = InsertAxis(operand, operand.rank());
    make.step.writes.push_back(operand.view);
  }
  make.step.body = std::move(row);
}

}  // namespace onnxifi::reference
