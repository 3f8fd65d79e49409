// SPDX-License-Identifier: Apache-2.0
//
// LeaveOut and IsLeftOut.

#include "backends/cpu/runtime/left_out.h"

#include <algorithm>
#include <utility>

namespace onnxifi::runtime {
namespace {

std::vector<std::string>& Names() {
  static std::vector<std::string> names;
  return names;
}

}  // namespace

void LeaveOut(std::vector<std::string> names) { Names() = std::move(names); }

bool IsLeftOut(std::string_view name) { return std::ranges::find(Names(), name) != Names().end(); }

}  // namespace onnxifi::runtime
