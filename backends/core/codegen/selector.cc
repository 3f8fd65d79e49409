// SPDX-License-Identifier: Apache-2.0
//
// Selector: what is generated does every step; the tiles come before it.

#include "backends/core/codegen/selector.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "backends/core/codegen/attention.h"
#include "backends/core/codegen/generated.h"
#include "backends/core/codegen/tiled.h"

namespace onnxifi::codegen {

base::Result<device::Selection> Selector::Select(const device::Facts& facts) const {
  device::Selection selection;
  ONNXIFI_ASSIGN_OR_RETURN(selection.recipe, SelectGenerated(facts, capabilities_));
  if (facts.step.As<program::Contract>() == nullptr) return selection;
  base::Result<std::unique_ptr<const Recipe>> tiled = SelectTiled(facts, capabilities_, tuning_);
  if (tiled.ok()) {
    selection.recipe = *std::move(tiled);
  } else {
    selection.rejected.push_back(std::move(tiled).status());
  }
  return selection;
}

bool Selector::PrefersWinograd(const device::Facts& facts) const {
  const program::Shape& domain = facts.step.domain;
  // In multiply-adds. A kernel's element that is read for few outputs takes as long as it takes to
  // come from memory; a transformed element as long as what is computed and moved for it.
  constexpr double kPerElementOfKernels = 16;
  constexpr double kPerTransformed = 40;
  constexpr double kWorthwhile = 0.8;
  const auto in = static_cast<double>(facts.step.As<program::Contract>()->inner[0].constant());
  const auto out = static_cast<double>(domain[1].constant());
  const auto images = static_cast<double>(domain[0].constant());
  const auto height = static_cast<double>(domain[2].constant());
  const auto width = static_cast<double>(domain[3].constant());
  const double pixels = images * height * width;
  const double tiles = images * std::ceil(height / 4) * std::ceil(width / 4);
  const double direct = std::max(pixels, kPerElementOfKernels) * 9 * in * out;
  const double transformed = std::max(tiles, kPerElementOfKernels) * 36 * in * out +
                             tiles * 36 * (in + out) * kPerTransformed;
  // Both ends of the products lie in memory whole.
  constexpr double kMaxBytes = 128 * 1024 * 1024;
  return tiles * 36 * (in + out) * sizeof(float) <= kMaxBytes &&
         transformed <= kWorthwhile * direct;
}

bool Selector::PrefersNarrowOperands(const device::Facts& facts) const {
  if (!CheckTiles(facts.program, facts.step).ok()) return false;
  const TiledProduct product(facts.program, facts.step);
  return tuning_.TileFor(product.least_rows(), product.most_depth(), product.sum_bits())
      .is_of_group();
}

bool Selector::PrefersAttention(const device::Facts& facts) const {
  // Groups of a processor share nothing but its cache.
  return tuning_.run_length == 1 && IsWorthwhileAttention(facts.step) &&
         Check(facts.program, facts.step, capabilities_).ok();
}

bool Selector::PrefersRecurrent(const device::Facts& facts) const {
  // Groups of a processor share nothing but its cache.
  return tuning_.run_length == 1 && Check(facts.program, facts.step, capabilities_).ok();
}

}  // namespace onnxifi::codegen
