// SPDX-License-Identifier: Apache-2.0
//
// CompiledStep: from a step to its family.

#include "backends/core/reference/compiled_step.h"

#include <algorithm>
#include <string>

namespace onnxifi::reference {

CompileResult CompileStep(const program::Program& program, const program::Step& step) {
  if (step.As<program::Map>() != nullptr) return CompileMap(program, step);
  if (step.As<program::Reduce>() != nullptr) return CompileReduce(program, step);
  if (step.As<program::Row>() != nullptr) return CompileRow(program, step);
  if (step.As<program::Scan>() != nullptr) return CompileScan(program, step);
  if (step.As<program::Contract>() != nullptr) return CompileContract(program, step);
  if (step.As<program::Window>() != nullptr) return CompileWindow(program, step);
  if (step.As<program::Attention>() != nullptr) return CompileAttention(program, step);
  if (step.As<program::Recurrent>() != nullptr) return CompileRecurrent(program, step);
  if (step.As<program::Index>() != nullptr) return CompileIndex(program, step);
  return base::Status(
      base::Code::kUnsupportedOperator,
      "A step of the family " + std::string(program::FamilyName(step)) + " runs on no device.");
}

int64_t Grain(const device::BoundStep& step, int64_t count, int64_t elements_per_index) {
  for (const device::BoundView& write : step.writes) {
    if (tensor::IsPacked(write.type)) return std::max<int64_t>(count, 1);
  }
  constexpr int64_t kElementsPerRange = 8192;
  return std::max<int64_t>(1, kElementsPerRange / std::max<int64_t>(1, elements_per_index));
}

}  // namespace onnxifi::reference
