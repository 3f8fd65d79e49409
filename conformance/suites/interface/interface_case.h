// SPDX-License-Identifier: Apache-2.0
//
// InterfaceCase: one rule of ONNXIFI as the suite `interface` checks it.

#ifndef ONNXIFI_CONFORMANCE_SUITES_INTERFACE_INTERFACE_CASE_H_
#define ONNXIFI_CONFORMANCE_SUITES_INTERFACE_INTERFACE_CASE_H_

#include <string_view>

namespace onnxifi::suites {

class Check;

struct InterfaceCase {
  std::string_view group;
  // Unique, and says what must be true.
  std::string_view name;
  void (*run)(Check& check);
};

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_INTERFACE_INTERFACE_CASE_H_
