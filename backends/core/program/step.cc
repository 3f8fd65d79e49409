// SPDX-License-Identifier: Apache-2.0
//
// Step: the names of the families.

#include "backends/core/program/step.h"

#include <onnxifi/sdk.h>

namespace onnxifi::program {

std::string_view FamilyName(const Step& step) {
  struct Visitor {
    std::string_view operator()(const Map&) const { return ONNXIFI_SDK_FAMILY_MAP; }
    std::string_view operator()(const Reduce&) const { return ONNXIFI_SDK_FAMILY_REDUCE; }
    std::string_view operator()(const Row&) const { return ONNXIFI_SDK_FAMILY_ROW; }
    std::string_view operator()(const Scan&) const { return ONNXIFI_SDK_FAMILY_SCAN; }
    std::string_view operator()(const Contract&) const { return ONNXIFI_SDK_FAMILY_CONTRACT; }
    std::string_view operator()(const Window&) const { return ONNXIFI_SDK_FAMILY_WINDOW; }
    std::string_view operator()(const Attention&) const { return ONNXIFI_SDK_FAMILY_ATTENTION; }
    std::string_view operator()(const Recurrent&) const { return ONNXIFI_SDK_FAMILY_RECURRENT; }
    std::string_view operator()(const Index&) const { return ONNXIFI_SDK_FAMILY_INDEX; }
    std::string_view operator()(const Cut&) const { return "Cut"; }
    std::string_view operator()(const Control&) const { return ONNXIFI_SDK_FAMILY_CONTROL; }
    std::string_view operator()(const Host&) const { return ONNXIFI_SDK_FAMILY_HOST; }
  };
  return std::visit(Visitor(), step.body);
}

}  // namespace onnxifi::program
