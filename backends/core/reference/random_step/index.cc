// SPDX-License-Identifier: Apache-2.0
//
// MakeIndex: scattering, selecting, finding and suppressing.

#include <cmath>
#include <span>
#include <utility>

#include "backends/core/reference/random_step/family.h"

namespace onnxifi::reference {

using program::Index;
using program::Shape;
using tensor::ElementType;
using tensor::Extents;

namespace {

std::span<float> Floats(StepMaker& make, program::BufferId buffer) {
  tensor::Tensor& tensor = make.buffers[static_cast<size_t>(buffer)];
  return {reinterpret_cast<float*>(tensor.mutable_data()),
          static_cast<size_t>(tensor.element_count())};
}

// The upper edges of boxes whose lower ones are read `lower`: through an equal view, so that each
// element is at least its box's lower edge.
void AddUpperEdges(StepMaker& make, int lower) {
  program::View view = make.step.reads[static_cast<size_t>(lower)];
  const Extents extents = make.buffers[static_cast<size_t>(view.buffer)].extents();
  const program::BufferId upper =
      make.AddBuffer(kFloat32, extents, /*is_input=*/true, Data::kModerate);
  const std::span<const float> from = Floats(make, view.buffer);
  const std::span<float> to = Floats(make, upper);
  for (size_t k = 0; k < to.size(); ++k) to[k] = from[k] + std::fabs(to[k]);
  view.buffer = upper;
  view.fill.f = static_cast<float>(view.fill.f + make.Uniform(0, 2));
  make.step.reads.push_back(std::move(view));
}

// Boxes, a threshold and a limit per row, behind the candidates.
void AddSuppressionReads(StepMaker& make, const Extents& domain) {
  const int y = make.AddRead(kFloat32, domain, Data::kModerate);
  const int x = make.AddRead(kFloat32, domain, Data::kModerate);
  AddUpperEdges(make, y);
  AddUpperEdges(make, x);
  const int threshold = make.AddRead(kFloat32, domain, Data::kModerate);
  if (make.Chance(75)) {
    // As ratios are: within [0, 1].
    program::View& view = make.step.reads[static_cast<size_t>(threshold)];
    for (float& value : Floats(make, view.buffer)) value = std::fabs(value) / 2;
    view.fill.f = std::fabs(view.fill.f) / 2;
  }
  make.AddRead(kInt64, domain, make.Chance(50) ? Data::kSmall : Data::kModerate);
}

}  // namespace

void MakeIndex(StepMaker& make) {
  Index index;
  index.kind = make.Pick({Index::Kind::kScatter, Index::Kind::kScatter, Index::Kind::kTopK,
                          Index::Kind::kTopK, Index::Kind::kCountNonZero, Index::Kind::kNonZero,
                          Index::Kind::kSuppress});
  const bool needs_axis = index.kind == Index::Kind::kTopK || index.kind == Index::Kind::kNonZero ||
                          index.kind == Index::Kind::kSuppress;
  const Extents domain = make.MakeExtents(needs_axis ? 1 : 0, 3, 300);
  make.step.domain = make.MakeShape(domain);
  const ElementType type = index.kind == Index::Kind::kSuppress
                               ? kBool
                               : make.Pick(std::span<const ElementType>(kNumeric));
  const Data data = make.Chance(50) ? Data::kSmall : Data::kAny;
  make.AddRead(type, domain, data);
  switch (index.kind) {
    case Index::Kind::kScatter: {
      Extents target(static_cast<size_t>(make.Roll(1, 3)));
      {
        const StepMaker::Numbers numbers(make);
        for (int64_t& extent : target) extent = make.Roll(1, 5);
      }
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
      {
        const StepMaker::Numbers numbers(make);
        out.back() = make.Roll(out.back() == 0 ? 0 : 1, out.back());
      }
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
      AddSuppressionReads(make, domain);
      make.AddWrite(kBool, domain);
      break;
  }
  make.step.body = std::move(index);
}

}  // namespace onnxifi::reference
