// SPDX-License-Identifier: Apache-2.0
//
// MakeIndex: scattering, selecting and finding.

#include <utility>

#include "backends/core/reference/random_step/family.h"

namespace onnxifi::reference {

using program::Index;
using program::Shape;
using tensor::ElementType;
using tensor::Extents;

void MakeIndex(StepMaker& make) {
  Index index;
  index.kind = make.Pick({Index::Kind::kScatter, Index::Kind::kScatter, Index::Kind::kTopK,
                          Index::Kind::kTopK, Index::Kind::kCountNonZero, Index::Kind::kNonZero});
  const bool needs_axis = index.kind == Index::Kind::kTopK || index.kind == Index::Kind::kNonZero;
  const Extents domain = make.MakeExtents(needs_axis ? 1 : 0, 3, 300);
  make.step.domain = make.MakeShape(domain);
  const ElementType type = make.Pick(std::span<const ElementType>(kNumeric));
  const Data data = make.Chance(50) ? Data::kSmall : Data::kAny;
  make.AddRead(type, domain, data);
  switch (index.kind) {
    case Index::Kind::kScatter: {
      Extents target(static_cast<size_t>(make.Roll(1, 3)));
      for (int64_t& extent : target) extent = make.Roll(1, 5);
      for (size_t axis = 0; axis < target.size(); ++axis) {
        // Small numbers: many duplicates, some out of range.
        make.AddRead(kInt64, domain, Data::kSmall);
      }
      index.target = make.MakeShape(target);
      index.combine = make.Pick({Index::Combine::kNone, Index::Combine::kAdd, Index::Combine::kMul,
                                 Index::Combine::kMin, Index::Combine::kMax});
      if (tensor::IsBool(type)) index.combine = Index::Combine::kNone;
      make.AddWrite(type, target);
      break;
    }
    case Index::Kind::kTopK: {
      Extents out = domain;
      out.back() = make.Roll(out.back() == 0 ? 0 : 1, out.back());
      index.k = make.MakeZeroOr(out.back());
      index.largest = make.Chance(50);
      make.AddWrite(type, out);
      make.AddWrite(kInt64, out);
      break;
    }
    case Index::Kind::kCountNonZero:
      make.AddWrite(kInt64, {});
      break;
    case Index::Kind::kNonZero: {
      const Extents out = {static_cast<int64_t>(domain.size()), tensor::ElementCount(domain)};
      Shape shape = {out[0], out[1]};
      const program::BufferId buffer = make.AddBuffer(kInt64, out, /*is_input=*/false, Data::kAny);
      make.step.writes.push_back(program::DenseView(buffer, kInt64, shape));
      break;
    }
    case Index::Kind::kSuppress:
      break;  // not drawn
  }
  make.step.body = std::move(index);
}

}  // namespace onnxifi::reference
