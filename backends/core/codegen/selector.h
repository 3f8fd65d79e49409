// SPDX-License-Identifier: Apache-2.0
//
// Selector: the implementations of each family on a device that compiles, fastest first. Knows the
// device by its description alone.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_SELECTOR_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_SELECTOR_H_

#include <utility>

#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/tuning.h"
#include "backends/core/device/device.h"

namespace onnxifi::codegen {

class Selector final : public device::Selector {
 public:
  Selector(const Capabilities& capabilities, Tuning tuning)
      : capabilities_(capabilities), tuning_(std::move(tuning)) {}

  // The recipe is a codegen::Recipe.
  base::Result<device::Selection> Select(const device::Facts& facts) const override;
  bool PrefersWinograd(const device::Facts& facts) const override;
  bool PrefersAttention(const device::Facts& facts) const override;
  bool PrefersRecurrent(const device::Facts& facts) const override;
  bool PrefersNarrowOperands(const device::Facts& facts) const override;

 private:
  const Capabilities capabilities_;
  const Tuning tuning_;
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_SELECTOR_H_
