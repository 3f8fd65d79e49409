// SPDX-License-Identifier: Apache-2.0
//
// The report as a table that a person reads at a glance, as a full listing, and as JSON.

#ifndef ONNXIFI_APPS_ONNXIFI_INFO_REPORT_TEXT_H_
#define ONNXIFI_APPS_ONNXIFI_INFO_REPORT_TEXT_H_

#include <string>

#include "apps/onnxifi_info/device_report.h"

namespace onnxifi::info {

// One line per device, then one per plugin that is not used. When nothing is usable, why comes
// first.
std::string MakeTable(const LibraryReport& report);

// Every query of every device, and every candidate plugin.
std::string MakeListing(const LibraryReport& report);

// {"library", "usable", "devices": [...], "plugins": [...]}; members are only ever added.
std::string MakeJson(const LibraryReport& report);

// "23.5 GiB"; "unknown" for 0.
std::string FormatMemory(uint64_t bytes);

}  // namespace onnxifi::info

#endif  // ONNXIFI_APPS_ONNXIFI_INFO_REPORT_TEXT_H_
