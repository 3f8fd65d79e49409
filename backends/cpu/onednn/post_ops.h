// SPDX-License-Identifier: Apache-2.0
//
// PostOps: the epilogue of a Contract or Window as operations that oneDNN appends to a primitive.

#ifndef ONNXIFI_BACKENDS_CPU_ONEDNN_POST_OPS_H_
#define ONNXIFI_BACKENDS_CPU_ONEDNN_POST_OPS_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/core/program/program.h"
#include "backends/cpu/onednn/sequence.h"

namespace onnxifi::onednn {

struct PostOp {
  dnnl::algorithm algorithm;
  float alpha = 0;  // element-wise algorithms
  float beta = 0;
  int read = -1;  // binary algorithms: the other operand is this read of the step

  bool is_binary() const { return read >= 0; }
};

// What turns the accumulator into `root`, first operation first. UNSUPPORTED_ATTRIBUTE naming the
// operation that oneDNN does not append, or does only roughly: its exponentials near 1 and its
// error function lose digits that the reference keeps, so Elu, Gelu and their like stay with the
// Map. A NaN that meets a fused Maximum or Minimum may come out as the other operand.
base::Result<std::vector<PostOp>> TranslatePostOps(const program::Program& program,
                                                   const program::Step& step, program::ExprId root);

// Post-ops as attributes and arguments of a primitive whose destination has `extents`;
// reads_strides[k] are the strides of post_ops[k]'s operand along them. A whole tensor takes
// whatever layout the destination has.
class BoundPostOps {
 public:
  // Nothing when an operand has strides that oneDNN cannot say.
  static base::Result<BoundPostOps> Create(std::vector<PostOp> post_ops,
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
  std::vector<PostOp> post_ops_;
  std::vector<Operand> operands_;  // one per post-op; empty for element-wise ones
};

}  // namespace onnxifi::onednn

#endif  // ONNXIFI_BACKENDS_CPU_ONEDNN_POST_OPS_H_
