// SPDX-License-Identifier: Apache-2.0
//
// ProcessState: what a library shares with its caller and leaves as it found it. Taken before the
// library is opened.

#ifndef ONNXIFI_CONFORMANCE_SUITES_INTERFACE_PROCESS_STATE_H_
#define ONNXIFI_CONFORMANCE_SUITES_INTERFACE_PROCESS_STATE_H_

#include <array>
#include <string>

namespace onnxifi::suites {

struct ProcessState {
  // As setlocale(LC_ALL, nullptr) names it.
  std::string locale;
  // Addresses of the handlers of signals 1 to 31, by number.
  std::array<const void*, 32> signal_handlers = {};
};

ProcessState CaptureProcessState();

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_INTERFACE_PROCESS_STATE_H_
