// SPDX-License-Identifier: Apache-2.0
//
// Asks the C library and the system.

#include "conformance/suites/interface/process_state.h"

#include <clocale>
#include <csignal>

namespace onnxifi::suites {

ProcessState CaptureProcessState() {
  ProcessState state;
  state.locale = std::setlocale(LC_ALL, nullptr);
  for (size_t number = 1; number < state.signal_handlers.size(); ++number) {
    struct sigaction action = {};
    sigaction(static_cast<int>(number), nullptr, &action);
    state.signal_handlers[number] = reinterpret_cast<const void*>(action.sa_handler);
  }
  return state;
}

}  // namespace onnxifi::suites
