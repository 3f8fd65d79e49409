// SPDX-License-Identifier: Apache-2.0
//
// FirstResult: what passes from the start of the program to the first result, in parts. Libraries
// compile kernels, pack weights or plan in any of these calls, so no single one of them is what
// loading a model takes.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_FIRST_RESULT_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_FIRST_RESULT_H_

namespace onnxifi::run {

// In the order in which the parts happen; all in milliseconds.
struct FirstResult {
  // Plugins are asked in a child process first, which applications do without.
  double probe_ms = 0;
  // The library is opened, its devices are listed, one is chosen.
  double discover_ms = 0;
  // The model file is mapped and its inputs and outputs are read; values of inputs are read or
  // made.
  double read_ms = 0;
  double init_backend_ms = 0;
  double init_graph_ms = 0;
  double infer_shapes_ms = 0;
  // The first onnxSetGraphIO.
  double bind_ms = 0;
  double first_run_ms = 0;

  double total_ms() const {
    return probe_ms + discover_ms + read_ms + init_backend_ms + init_graph_ms + infer_shapes_ms +
           bind_ms + first_run_ms;
  }
};

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_FIRST_RESULT_H_
