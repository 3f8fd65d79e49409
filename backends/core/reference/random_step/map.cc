// SPDX-License-Identifier: Apache-2.0
//
// MakeMap: one or two expressions over a domain, complex numbers and plain moves among them.

#include "backends/core/reference/random_step/family.h"

namespace onnxifi::reference {

using program::Expr;
using tensor::ElementType;
using tensor::Extents;

void MakeMap(StepMaker& make) {
  make.has_specials = make.Chance(15);
  const Extents domain = make.MakeExtents(0, 4, 700);
  make.step.domain = make.MakeShape(domain);
  const StepMaker::AllowedLeaves place{domain, true, nullptr};
  program::Map map;
  const int writes = make.Chance(20) ? 2 : 1;
  for (int k = 0; k < writes; ++k) {
    if (make.Chance(4)) {
      const ElementType type = make.Pick({ElementType::kComplex64, ElementType::kComplex128});
      const Expr a = Load(make.pool(), type, make.AddRead(type, domain, make.data));
      const Expr b = Load(make.pool(), type, make.AddRead(type, domain, make.data));
      map.roots.push_back(Select(make.MakeExpr(place, kBool, 2), a, b).id());
      make.AddWrite(type, domain);
      continue;
    }
    const ElementType type = make.Pick(std::span<const ElementType>(kNumeric));
    const ElementType computed = tensor::ArithmeticType(type);
    if (make.Chance(10)) {
      // A pure move, of the storage type itself.
      map.roots.push_back(Load(make.pool(), type, make.AddRead(type, domain, make.data)).id());
    } else {
      map.roots.push_back(
          Cast(make.MakeExpr(place, computed, static_cast<int>(make.Roll(1, 4))), type).id());
    }
    make.AddWrite(type, domain);
  }
  make.step.body = std::move(map);
}

}  // namespace onnxifi::reference
