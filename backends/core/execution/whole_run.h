// SPDX-License-Identifier: Apache-2.0
//
// WholeRun: what a run needs whose inputs and outputs are values (tensor::Value) in place of memory
// of the caller's: strings under their numbers, and places that keep what comes out.

#ifndef ONNXIFI_BACKENDS_CORE_EXECUTION_WHOLE_RUN_H_
#define ONNXIFI_BACKENDS_CORE_EXECUTION_WHOLE_RUN_H_

#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/execution/executor.h"
#include "backends/core/tensor/string_table.h"
#include "backends/core/tensor/value.h"

namespace onnxifi::execution {

// What a program's input or output of this buffer is as a value.
program::ValueType TypeOf(const program::Buffer& buffer);

// `value` as an input of a run for the buffer of a program's input: MISMATCHING_DATATYPE,
// MISMATCHING_SHAPE, about "`what`". Tensors of numbers are borrowed from `value`, which outlives
// the run; strings get their numbers in `strings`.
base::Result<InputTensor> AsInput(const program::Buffer& buffer, const tensor::ValueRef& value,
                                  const std::string& what, tensor::StringTable& strings);

// Keeps the outputs of one run of `program`. Tensors lie in host memory.
class KeptOutputs : public OutputAllocator {
 public:
  explicit KeptOutputs(const program::Program& program);

  base::Result<std::byte*> Allocate(int output, const tensor::Extents& extents) override;
  base::Status Take(int output, tensor::ValueRef value) override;

  // After the run; strings by their numbers in `strings`.
  tensor::ValueRef Get(int output, const tensor::StringTable& strings) const;

 private:
  const program::Program& program_;
  std::vector<tensor::Tensor> tensors_;
  std::vector<tensor::ValueRef> values_;
};

}  // namespace onnxifi::execution

#endif  // ONNXIFI_BACKENDS_CORE_EXECUTION_WHOLE_RUN_H_
