// SPDX-License-Identifier: Apache-2.0
//
// The list of all groups, and running one case by its name.

#include "conformance/suites/interface/interface_suite.h"

#include <fmt/format.h>

#include "conformance/suites/interface/case_groups.h"
#include "conformance/suites/interface/check.h"

namespace onnxifi::suites {

using report::CaseResult;
using report::Verdict;

std::vector<InterfaceCase> ListInterfaceCases() {
  std::vector<InterfaceCase> cases;
  for (const auto& group :
       {DiscoveryCases(), ClaimCases(), BackendCases(), EventCases(), GraphCases(), BindingCases(),
        RunCases(), ShapeCases(), LifetimeCases(), ThreadCases(), ExtensionCases(), ValueCases(),
        BadModelCases(), EnvironmentCases()}) {
    cases.insert(cases.end(), group.begin(), group.end());
  }
  return cases;
}

CaseResult RunInterfaceCase(std::string_view name, const client::Library& library,
                            const client::Extensions& extensions, onnxBackendID id,
                            const ProcessState& initial) {
  CaseResult result;
  for (const InterfaceCase& interface_case : ListInterfaceCases()) {
    if (interface_case.name != name) continue;
    Check check(library, extensions, id, initial);
    interface_case.run(check);
    if (!check.failures().empty()) {
      for (const std::string& failure : check.failures()) {
        // The first few tell the story; a loop may fail a thousand times.
        constexpr size_t kEnough = 2000;
        if (result.sentence.size() < kEnough) {
          result.sentence += (result.sentence.empty() ? "" : "\n") + failure;
        }
      }
      return result;
    }
    result.verdict = check.is_supported() ? Verdict::kPass : Verdict::kNotSupported;
    if (!check.is_supported()) {
      result.status = client::StatusName(check.unsupported_status());
      result.sentence = check.unsupported_reason();
    }
    return result;
  }
  result.sentence = fmt::format("There is no case '{}'.", name);
  return result;
}

}  // namespace onnxifi::suites
