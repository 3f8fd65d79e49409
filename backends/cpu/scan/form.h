// SPDX-License-Identifier: Apache-2.0
//
// Form: a Scan step of which every state is combined with something that no state enters.

#ifndef ONNXIFI_BACKENDS_CPU_SCAN_FORM_H_
#define ONNXIFI_BACKENDS_CPU_SCAN_FORM_H_

#include <vector>

#include "backends/cpu/engine/code.h"
#include "backends/cpu/engine/recipe.h"
#include "backends/cpu/scan/loops.h"

namespace onnxifi::scan {

struct Form {
  struct State {
    tensor::ElementType type;
    Loop loop;
    program::ExprId init;
    program::ExprId element;  // what the state is combined with
  };
  std::vector<State> states;
  // The only root is the only state as it is.
  bool writes_state = false;
};

// UNSUPPORTED_* for other updates, and for what the engine does not compute.
base::Result<Form> FindForm(const device::Facts& facts);

// The expressions of a form. A root of `elements` per state, likewise of `init`; the step's roots
// read the states from outside.
struct FormCode {
  Form form;
  engine::Code init;
  engine::Code elements;
  engine::Code roots;

  static FormCode Compile(const device::Facts& facts, Form form, engine::LoopSet loops);
};

}  // namespace onnxifi::scan

#endif  // ONNXIFI_BACKENDS_CPU_SCAN_FORM_H_
