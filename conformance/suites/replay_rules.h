// SPDX-License-Identifier: Apache-2.0
//
// ReplayRules: how a suite replays its cases.

#ifndef ONNXIFI_CONFORMANCE_SUITES_REPLAY_RULES_H_
#define ONNXIFI_CONFORMANCE_SUITES_REPLAY_RULES_H_

#include "conformance/cases/variant.h"

namespace onnxifi::suites {

struct ReplayRules {
  cases::Variant variant = cases::Variant::kPlain;
  // A case whose expected output has one value throughout would check nothing; it fails.
  bool refuse_constant_outputs = false;
  // Buffers start on no more than their element's natural alignment.
  bool misalign = false;
  // The model's bytes are lent to the library (ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL), with the
  // weights at odd addresses.
  bool lend_model = false;
};

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_REPLAY_RULES_H_
