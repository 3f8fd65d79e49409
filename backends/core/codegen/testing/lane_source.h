// SPDX-License-Identifier: Apache-2.0
//
// MakeLaneSource: for tests: the kernel of a cast whose items take 16 bytes at a time, in any
// language, and how many loads and stores of 16 bytes an item then has. The tests of the languages'
// compilers count them in what these make.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_LANE_SOURCE_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_LANE_SOURCE_H_

#include <string>

#include "backends/core/codegen/generate.h"
#include "backends/core/program/testing/program_maker.h"

namespace onnxifi::codegen {

struct LaneSource {
  std::string text;
  int loads = 0;
  int stores = 0;
};

inline LaneSource MakeLaneSource(const Dialect& dialect, tensor::ElementType from,
                                 tensor::ElementType to) {
  program::ProgramMaker maker;
  const program::Operand x = maker.Input({1000}, from);
  maker.Map({1000}, {x}, [to](program::ExprPool&, const std::vector<program::Expr>& loads) {
    return Cast(loads[0], to);
  });
  const program::Step& step = maker.program.steps[0];
  const device::BoundStep bound = device::Bind(maker.program, step, {});
  const KernelSequence kernels = MakeKernelSequence(FindLoopFacts(maker.program, step), bound, {});
  const LoopForm& form = kernels.launches[0].loops.form;
  const KernelText text = Generate(maker.program, step, /*kernel=*/0, form, {}, dialect);
  return {text.source, form.lanes * tensor::BitWidth(from) / 128,
          form.lanes * tensor::BitWidth(to) / 128};
}

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_LANE_SOURCE_H_
