// SPDX-License-Identifier: Apache-2.0
//
// Replay: one generated case against one device, the way a framework would use it: ask, initialise,
// bind, run, compare. Serves the suites `operators` and `models`.

#ifndef ONNXIFI_CONFORMANCE_SUITES_REPLAY_H_
#define ONNXIFI_CONFORMANCE_SUITES_REPLAY_H_

#include <span>

#include "client/device_list.h"
#include "client/library.h"
#include "conformance/cases/case_list.h"
#include "conformance/report/case_result.h"

namespace onnxifi::suites {

struct ReplayRules {
  // A case whose expected output has one value throughout would check nothing; it fails.
  bool refuse_constant_outputs = false;
  // Buffers start on no more than their element's natural alignment.
  bool misalign = false;
  // The model's bytes are lent to the library (ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL), with the
  // weights at odd addresses.
  bool lend_model = false;
};

// A device that is ready to take graphs.
struct Target {
  const client::Library& library;
  const client::Extensions& extensions;
  onnxBackendID id;
  onnxBackend backend;
  // Devices that models name for their nodes in turn; empty: models are taken as they are.
  std::span<const client::Device> alternates;
};

// pass: everything the device accepted was right. not-supported: it refused with one of the five
// codes for that, with a reason, and initialisation refused with the same code. fail: anything
// else.
report::CaseResult ReplayCase(const cases::CaseDescription& description, const ReplayRules& rules,
                              const Target& target);

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_REPLAY_H_
