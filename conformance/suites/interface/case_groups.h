// SPDX-License-Identifier: Apache-2.0
//
// The groups of the interface suite, one file each, in the order in which a caller meets the
// functions.

#ifndef ONNXIFI_CONFORMANCE_SUITES_INTERFACE_CASE_GROUPS_H_
#define ONNXIFI_CONFORMANCE_SUITES_INTERFACE_CASE_GROUPS_H_

#include <span>

#include "conformance/suites/interface/interface_case.h"

namespace onnxifi::suites {

// onnxGetBackendIDs, onnxReleaseBackendID, onnxGetBackendInfo.
std::span<const InterfaceCase> DiscoveryCases();
// onnxGetBackendCompatibility, and that onnxInitGraph answers alike.
std::span<const InterfaceCase> ClaimCases();
// onnxInitBackend, onnxReleaseBackend and the five event functions.
std::span<const InterfaceCase> BackendCases();
std::span<const InterfaceCase> EventCases();
// onnxInitGraph, its weights and properties; onnxReleaseGraph.
std::span<const InterfaceCase> GraphCases();
// onnxSetGraphIO.
std::span<const InterfaceCase> BindingCases();
// onnxRunGraph: fences, order, failures.
std::span<const InterfaceCase> RunCases();
// Symbolic and zero extents.
std::span<const InterfaceCase> ShapeCases();
// Handles of the wrong kind, stale and foreign ones; order of release; repetition.
std::span<const InterfaceCase> LifetimeCases();
std::span<const InterfaceCase> ThreadCases();
// onnxGetExtensionFunctionAddress and what it finds.
std::span<const InterfaceCase> ExtensionCases();
// Inputs and outputs that no descriptor carries.
std::span<const InterfaceCase> ValueCases();
// Bytes that are no model, or one that nobody can run.
std::span<const InterfaceCase> BadModelCases();
// Locale, errno, floating-point mode.
std::span<const InterfaceCase> EnvironmentCases();

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_INTERFACE_CASE_GROUPS_H_
