// SPDX-License-Identifier: Apache-2.0
//
// Variant: a replay of a generated case in another form, which must give the same answers: what is
// constant, how weights come, whether extents are known, how large tensors are, what ran before or
// runs beside it.

#ifndef ONNXIFI_CONFORMANCE_CASES_VARIANT_H_
#define ONNXIFI_CONFORMANCE_CASES_VARIANT_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace onnxifi::cases {

enum class Variant : uint8_t {
  kPlain,         // The case as it is.
  kInitializers,  // Inputs but the first are initializers; of a single one, that one.
  kConstants,     // All inputs are initializers.
  kDescriptors,   // The inputs of kInitializers are given by the weight descriptors of
                  // onnxInitGraph.
  kSymbols,       // Every extent of inputs is a symbol of its own, lists of integers left out.
  kBounds,        // Outputs of which only data tell an extent are bound with a larger one.
  kRerun,         // Runs again after NaN in floats, without a new binding, and many times.
  kTiled,         // Extents are more than one vector, with a tail.
  kCallers,       // Several threads run the graph at once, each with tensors of its own.
};

// All but kPlain.
inline constexpr std::array<Variant, 8> kVariants = {
    Variant::kInitializers, Variant::kConstants, Variant::kDescriptors, Variant::kSymbols,
    Variant::kBounds,       Variant::kRerun,     Variant::kTiled,       Variant::kCallers};

// "symbols"; empty for kPlain.
std::string_view NameOf(Variant variant);
// The variant of a name; nothing when there is none.
std::optional<Variant> FindVariant(std::string_view name);

// "test_add@symbols": the name or path of a case with its variant; the name alone for kPlain.
std::string WithVariant(std::string_view name, Variant variant);

struct NameAndVariant {
  std::string name;
  Variant variant = Variant::kPlain;
};
// The inverse of WithVariant.
NameAndVariant SplitVariant(std::string_view text);

}  // namespace onnxifi::cases

#endif  // ONNXIFI_CONFORMANCE_CASES_VARIANT_H_
