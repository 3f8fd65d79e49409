// SPDX-License-Identifier: Apache-2.0
//
// The suite `interface`: the rules of ONNXIFI that hold for every library, each as a small case.

#ifndef ONNXIFI_CONFORMANCE_SUITES_INTERFACE_INTERFACE_SUITE_H_
#define ONNXIFI_CONFORMANCE_SUITES_INTERFACE_INTERFACE_SUITE_H_

#include <string_view>
#include <vector>

#include "client/library.h"
#include "conformance/report/case_result.h"
#include "conformance/suites/interface/interface_case.h"
#include "conformance/suites/interface/process_state.h"

namespace onnxifi::suites {

// All cases, group by group.
std::vector<InterfaceCase> ListInterfaceCases();

// Runs the case of this name against a device of the library; `initial` is the state of the process
// before the library was opened.
report::CaseResult RunInterfaceCase(std::string_view name, const client::Library& library,
                                    const client::Extensions& extensions, onnxBackendID id,
                                    const ProcessState& initial);

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_INTERFACE_INTERFACE_SUITE_H_
