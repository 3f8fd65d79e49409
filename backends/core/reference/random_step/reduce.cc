// SPDX-License-Identifier: Apache-2.0
//
// MakeReduce: a reduction over any number of trailing axes.

#include <utility>

#include "backends/core/reference/random_step/family.h"
#include "backends/core/reference/random_step/reduction.h"

namespace onnxifi::reference {

using program::Expr;
using tensor::ElementType;
using tensor::Extents;

void MakeReduce(StepMaker& make) {
  make.data = Data::kModerate;
  const Extents domain = make.MakeExtents(1, 4, make.Chance(20) ? 3000 : 400);
  const int axes = static_cast<int>(make.Roll(0, static_cast<int64_t>(domain.size())));
  const auto outer_rank = static_cast<int>(domain.size()) - axes;
  make.step.domain = make.MakeShape(domain);
  const StepMaker::AllowedLeaves place{domain, true, nullptr};
  const Extents outer(domain.begin(), domain.begin() + outer_rank);
  const Extents reduced(domain.begin() + outer_rank, domain.end());
  MadeReduction made = MakeReduction(
      make,
      [&](ElementType type) {
        return make.MakeExpr(place, type, static_cast<int>(make.Roll(0, 2)));
      },
      reduced, outer_rank);
  program::Reduce reduce;
  reduce.axes = axes;
  for (const Expr& final : made.finals) {
    const StepMaker::AllowedLeaves result{outer, false, &made.states};
    const Expr root = make.Chance(60) || final.type() == kBool
                          ? final
                          : final + make.MakeExpr(result, final.type(), 1);
    const ElementType type = make.StoredType(root.type());
    reduce.roots.push_back(Cast(root, type).id());
    make.AddWrite(type, outer);
  }
  reduce.reduction = std::move(made.reduction);
  make.step.body = std::move(reduce);
}

}  // namespace onnxifi::reference
