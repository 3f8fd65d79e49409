// SPDX-License-Identifier: Apache-2.0
//
// Operand: the tensors that a Contract or Window step puts together. Where an operand is more than
// a float32 tensor in memory (another type, padded by its view, dequantised or activated while it
// is read), the reference's loops write it out for the primitive: Prologue.

#ifndef ONNXIFI_BACKENDS_CPU_ONEDNN_OPERAND_H_
#define ONNXIFI_BACKENDS_CPU_ONEDNN_OPERAND_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/core/reference/expression.h"
#include "backends/cpu/onednn/layout.h"

namespace onnxifi::onednn {

// Whether a plain operand has strides that oneDNN can say: not reversed, and expanded along the
// batch axes of a matrix product at most.
bool HasDescriptor(const device::BoundStep& step, int operand);

// What an operand that is not plain holds, as float32.
class Prologue {
 public:
  static base::Result<Prologue> Compile(const program::Program& program, const program::Step& step,
                                        int operand);

  // Whether it comes out the same in every run and for every binding with these extents.
  bool is_constant() const { return is_constant_; }
  const std::shared_ptr<const reference::Expression>& expression() const { return expression_; }

 private:
  std::shared_ptr<const reference::Expression> expression_;  // shared with what is bound from it
  bool is_constant_ = false;
};

class BoundPrologue {
 public:
  BoundPrologue(const Prologue& prologue, const device::BoundStep& step, int operand);

  const Extents& extents() const { return extents_; }
  // Writes the elements, dense, to `target`. NO_SYSTEM_MEMORY.
  base::Status Run(device::Addresses addresses, std::byte* target,
                   device::Parallel& parallel) const;

 private:
  std::shared_ptr<const reference::Expression> expression_;
  std::vector<int64_t> dims_;
  std::vector<device::BoundView> reads_;
  Extents extents_;
};

}  // namespace onnxifi::onednn

#endif  // ONNXIFI_BACKENDS_CPU_ONEDNN_OPERAND_H_
