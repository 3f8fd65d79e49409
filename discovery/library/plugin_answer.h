// SPDX-License-Identifier: Apache-2.0
//
// PluginAnswer: texts and lists that a plugin gives in two calls, first how large they are and then
// what they are. Nothing is allocated beyond a limit, whatever the plugin says.

#ifndef ONNXIFI_DISCOVERY_LIBRARY_PLUGIN_ANSWER_H_
#define ONNXIFI_DISCOVERY_LIBRARY_PLUGIN_ANSWER_H_

#include <onnx/onnxifi.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/library/plugin_health.h"
#include "discovery/library/plugin_library.h"

namespace onnxifi::library {

// Far above what a name, a list of extensions or a reason needs.
inline constexpr size_t kMaxTextBytes = size_t{1} << 20;
// Far above what a machine has.
inline constexpr size_t kMaxDevices = 1024;

struct TextAnswer {
  onnxStatus status = ONNXIFI_STATUS_SUCCESS;
  // Without the NULs at its end: some plugins count them and some do not.
  std::string text;
};

struct DeviceAnswer {
  onnxStatus status = ONNXIFI_STATUS_SUCCESS;
  std::vector<onnxBackendID> ids;
};

namespace detail {

// Calls `call(elements, &count)` until what it gives fits. What is wanted may grow between two
// calls, so it is asked again, but not for ever. Quarantines the plugin for a count above
// `max_count`, for more elements than there is room for, and for an answer that never settles.
// `subject` names the elements: "bytes of text", "devices".
template <typename Elements, typename Call>
onnxStatus ReadGrowing(PluginHealth& health, std::string_view function, std::string_view subject,
                       size_t max_count, Elements* out_elements, Call&& call) {
  constexpr int kMaxAttempts = 8;
  const auto fault = [&](const std::string& what) -> onnxStatus {
    health.Quarantine("Function " + std::string(function) + " of the plugin " + what);
    out_elements->clear();
    return ONNXIFI_STATUS_BACKEND_UNAVAILABLE;
  };
  size_t count = 0;
  onnxStatus status = call(nullptr, &count);
  // Some plugins answer SUCCESS where there is no buffer yet.
  if (status == ONNXIFI_STATUS_SUCCESS && count > 0) status = ONNXIFI_STATUS_FALLBACK;
  for (int attempt = 0; status == ONNXIFI_STATUS_FALLBACK; ++attempt) {
    if (count > max_count) {
      return fault("announces " + std::to_string(count) + " " + std::string(subject) +
                   "; the limit is " + std::to_string(max_count) + ".");
    }
    if (attempt == kMaxAttempts) {
      return fault("announces more " + std::string(subject) + " than before at each of " +
                   std::to_string(kMaxAttempts) + " calls.");
    }
    // An empty buffer has no address, which would ask for the count once more.
    out_elements->assign(std::max<size_t>(count, 1), {});
    count = out_elements->size();
    status = call(out_elements->data(), &count);
  }
  if (status != ONNXIFI_STATUS_SUCCESS) {
    out_elements->clear();
    return status;
  }
  if (count > out_elements->size()) {
    return fault("gives " + std::to_string(count) + " " + std::string(subject) +
                 " where there is room for " + std::to_string(out_elements->size()) + ".");
  }
  out_elements->resize(count);
  return status;
}

}  // namespace detail

// `call(char*, size_t*)` asks `function`, whose name is for messages, for one text.
template <typename Call>
TextAnswer ReadText(PluginHealth& health, std::string_view function, Call&& call) {
  TextAnswer answer;
  answer.status =
      detail::ReadGrowing(health, function, "bytes of text", kMaxTextBytes, &answer.text, call);
  while (!answer.text.empty() && answer.text.back() == '\0') answer.text.pop_back();
  return answer;
}

// The devices of the plugin.
DeviceAnswer ReadDevices(const PluginFunctions& functions);

}  // namespace onnxifi::library

#endif  // ONNXIFI_DISCOVERY_LIBRARY_PLUGIN_ANSWER_H_
