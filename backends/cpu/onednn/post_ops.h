// SPDX-License-Identifier: Apache-2.0
//
// PostOps: the operations of an epilogue as oneDNN appends them to a primitive.

#ifndef ONNXIFI_BACKENDS_CPU_ONEDNN_POST_OPS_H_
#define ONNXIFI_BACKENDS_CPU_ONEDNN_POST_OPS_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/core/program/program.h"
#include "backends/cpu/epilogue/operation.h"
#include "backends/cpu/onednn/sequence.h"

namespace onnxifi::onednn {

// The operations that turn the accumulator into `root`, of which oneDNN appends all. Refusals are
// those of epilogue::OperationsOf, or UNSUPPORTED_ATTRIBUTE where there are too many.
base::Result<std::vector<epilogue::Operation>> TranslatePostOps(const program::Program& program,
                                                                const program::Step& step,
                                                                program::ExprId root,
                                                                epilogue::ReadTypes types);

// Post-ops as attributes and arguments of a primitive whose destination has `extents`;
// `operands[k]` is the other operand of operations[k], if it has one. A whole tensor takes
// whatever layout the destination has.
class BoundPostOps {
 public:
  // Nothing when an operand has strides that oneDNN cannot say.
  static base::Result<BoundPostOps> Create(std::vector<epilogue::Operation> operations,
                                           std::vector<device::BoundView> operands,
                                           const Extents& extents);

  void AddTo(dnnl::primitive_attr& attributes) const;
  // After the primitive descriptor chose layouts: the arguments, reordered where it chose another.
  base::Status AddArguments(const dnnl::primitive_desc_base& desc, SequenceBuilder& builder,
                            std::vector<Argument>& arguments) const;

 private:
  struct Operand {
    device::BoundView view;
    Desc given;
    Desc wanted;
  };
  std::vector<epilogue::Operation> operations_;
  std::vector<Operand> operands_;  // one per operation; empty for element-wise ones
};

}  // namespace onnxifi::onednn

#endif  // ONNXIFI_BACKENDS_CPU_ONEDNN_POST_OPS_H_
