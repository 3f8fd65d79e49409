// SPDX-License-Identifier: Apache-2.0
//
// The names of variants.

#include "conformance/cases/variant.h"

namespace onnxifi::cases {
namespace {

constexpr std::array<std::string_view, 9> kNames = {
    "",       "initializers", "constants", "descriptors", "symbols",
    "bounds", "rerun",        "tiled",     "callers"};

}  // namespace

std::string_view NameOf(Variant variant) { return kNames[static_cast<size_t>(variant)]; }

std::optional<Variant> FindVariant(std::string_view name) {
  for (const Variant variant : kVariants) {
    if (NameOf(variant) == name) return variant;
  }
  return std::nullopt;
}

std::string WithVariant(std::string_view name, Variant variant) {
  std::string text(name);
  if (variant != Variant::kPlain) text.append("@").append(NameOf(variant));
  return text;
}

NameAndVariant SplitVariant(std::string_view text) {
  const size_t at = text.rfind('@');
  if (at != std::string_view::npos) {
    if (const std::optional<Variant> variant = FindVariant(text.substr(at + 1))) {
      return {std::string(text.substr(0, at)), *variant};
    }
  }
  return {std::string(text), Variant::kPlain};
}

}  // namespace onnxifi::cases
