// SPDX-License-Identifier: Apache-2.0
//
// MakeScan: a reduction along the last axis.

#include <utility>

#include "backends/core/reference/random_step/family.h"
#include "backends/core/reference/random_step/reduction.h"

namespace onnxifi::reference {

using program::Expr;
using tensor::ElementType;
using tensor::Extents;

void MakeScan(StepMaker& make) {
  make.data = Data::kModerate;
  const Extents domain = make.MakeExtents(1, 4, 400);
  make.step.domain = make.MakeShape(domain);
  const StepMaker::AllowedLeaves place{domain, true, nullptr};
  const Extents scanned = {domain.back()};
  MadeReduction made = MakeReduction(
      make,
      [&](ElementType type) {
        return make.MakeExpr(place, type, static_cast<int>(make.Roll(0, 2)));
      },
      scanned, static_cast<int>(domain.size()) - 1);
  program::Scan scan;
  scan.exclusive = make.Chance(40);
  if (make.Chance(30)) {
    for (program::Reduction::State& state : made.reduction.states) state.merge = program::kNoExpr;
  }
  for (const Expr& final : made.finals) {
    const StepMaker::AllowedLeaves result{domain, true, &made.states};
    const Expr root = make.Chance(70) || final.type() == kBool
                          ? final
                          : final + make.MakeExpr(result, final.type(), 1);
    const ElementType type = make.StoredType(root.type());
    scan.roots.push_back(Cast(root, type).id());
    make.AddWrite(type, domain);
  }
  scan.reduction = std::move(made.reduction);
  make.step.body = std::move(scan);
}

}  // namespace onnxifi::reference
