// SPDX-License-Identifier: Apache-2.0
//
// Versions: which IR and operator set versions can be imported. Answers information queries too, so
// nothing here touches the schema registry, whose first use costs milliseconds.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_VERSIONS_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_VERSIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onnxifi::model {

// Of the ONNX library that is linked in.
int64_t NewestIrVersion();

// The newest operator set of a domain that ONNX defines ("" is the default domain); nothing for
// other domains.
std::optional<int64_t> NewestOpset(std::string_view domain);

// "1 2 3 ..." and "ai.onnx:28 ai.onnx.ml:5 ...", as the information queries want them.
std::string SupportedIrVersions();
std::string SupportedOpsets();

// "" for "ai.onnx", any other domain as it is.
inline std::string_view CanonicalDomain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}
// "ai.onnx" for "", any other domain as it is; for messages.
inline std::string_view SpelledDomain(std::string_view domain) {
  return domain.empty() ? std::string_view("ai.onnx") : domain;
}

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_VERSIONS_H_
