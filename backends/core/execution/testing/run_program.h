// SPDX-License-Identifier: Apache-2.0
//
// RunProgram: runs a program for the unit tests of what makes and changes programs: on the
// reference and, to hold execution to its transfers and waits, on the reference behind memory that
// the host cannot touch. Results of the first are given; INTERNAL_ERROR if the second's differ.

#ifndef ONNXIFI_BACKENDS_CORE_EXECUTION_TESTING_RUN_PROGRAM_H_
#define ONNXIFI_BACKENDS_CORE_EXECUTION_TESTING_RUN_PROGRAM_H_

#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/execution/executor.h"
#include "backends/core/program/program.h"
#include "backends/core/tensor/tensor.h"
#include "backends/core/tensor/value.h"

namespace onnxifi::execution {

// Gives every output a tensor of its own.
class TensorOutputs : public OutputAllocator {
 public:
  explicit TensorOutputs(const program::Program& program)
      : tensors(program.outputs.size()), program_(program) {}

  base::Result<std::byte*> Allocate(int output, const tensor::Extents& extents) override;

  std::vector<tensor::Tensor> tensors;

 private:
  const program::Program& program_;
};

std::vector<InputTensor> AsInputs(const std::vector<tensor::Tensor>& tensors);

// The outputs of `program`, which must hold what program::Verify checks. Errors of the plan or of
// the run.
base::Result<std::vector<tensor::Tensor>> RunProgram(const program::Program& program,
                                                     const std::vector<tensor::Tensor>& inputs);

// The same with values of any kind.
base::Result<std::vector<tensor::Value>> RunOnValues(const program::Program& program,
                                                     const std::vector<tensor::Value>& inputs);

}  // namespace onnxifi::execution

#endif  // ONNXIFI_BACKENDS_CORE_EXECUTION_TESTING_RUN_PROGRAM_H_
