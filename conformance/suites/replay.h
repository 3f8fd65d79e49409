// SPDX-License-Identifier: Apache-2.0
//
// Replay: one generated case against one device, the way a framework would use it: ask, initialise,
// bind, run, compare. Serves the suites `operators`, `opsets` and `models`.

#ifndef ONNXIFI_CONFORMANCE_SUITES_REPLAY_H_
#define ONNXIFI_CONFORMANCE_SUITES_REPLAY_H_

#include "conformance/cases/case_list.h"
#include "conformance/report/case_result.h"
#include "conformance/suites/case_graph.h"
#include "conformance/suites/oracle.h"
#include "conformance/suites/replay_rules.h"

namespace onnxifi::suites {

// pass: everything the device accepted was right. not-supported: it refused with one of the five
// codes for that, with a reason, and initialisation refused with the same code. not-applicable: the
// case cannot have the variant, or the device refuses it as it is. fail: anything else.
report::CaseResult ReplayCase(const cases::CaseDescription& description, const ReplayRules& rules,
                              const Target& target, Oracle& oracle);

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_REPLAY_H_
