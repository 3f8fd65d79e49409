// SPDX-License-Identifier: Apache-2.0
//
// Selector: what is generated does every step; the tiles come before it.

#include "backends/core/codegen/selector.h"

#include <memory>

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

}  // namespace onnxifi::codegen
