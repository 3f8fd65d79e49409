// SPDX-License-Identifier: Apache-2.0
//
// Versions: one table, checked by its test against the ONNX library's own.

#include "backends/core/model/versions.h"

#include <onnx/onnx_pb.h>

#include <array>

namespace onnxifi::model {
namespace {

struct DomainVersion {
  std::string_view domain;
  int64_t newest;
};

constexpr std::array<DomainVersion, 5> kDomains = {{
    {"", 28},
    {"ai.onnx.ml", 5},
    {"ai.onnx.training", 1},
    {"ai.onnx.preview", 1},
    {"ai.onnx.preview.training", 1},
}};

}  // namespace

int64_t NewestIrVersion() { return onnx::Version::IR_VERSION; }

std::optional<int64_t> NewestOpset(std::string_view domain) {
  for (const DomainVersion& known : kDomains) {
    if (known.domain == domain) return known.newest;
  }
  return std::nullopt;
}

std::string SupportedIrVersions() {
  std::string text;
  for (int64_t version = 1; version <= NewestIrVersion(); ++version) {
    text += (text.empty() ? "" : " ") + std::to_string(version);
  }
  return text;
}

std::string SupportedOpsets() {
  std::string text;
  for (const DomainVersion& known : kDomains) {
    if (!text.empty()) text += " ";
    text += std::string(SpelledDomain(known.domain)) + ":" + std::to_string(known.newest);
  }
  return text;
}

}  // namespace onnxifi::model
