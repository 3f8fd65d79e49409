// SPDX-License-Identifier: Apache-2.0
//
// Model lies: what a library that misreads a model computes. The model is changed before it is
// forwarded.

#ifndef ONNXIFI_CONFORMANCE_MUTANTS_MODEL_LIES_H_
#define ONNXIFI_CONFORMANCE_MUTANTS_MODEL_LIES_H_

#include <span>
#include <string>
#include <string_view>

namespace onnxifi::mutants {

// The model as a library with this lie reads it; the model itself where the lie is another. Lies:
//   "swallows the attribute NAME"   nodes have no attribute of that name
//   "takes the next axis"           the attribute `axis` is one more
//   "changes initializers"          the last byte of each initializer's raw data differs
//   "takes the operators of later sets"  each imported version is two more
std::string Misread(std::string_view lie, std::span<const std::byte> model);

// Whether a node of the model is of an operator that draws random numbers.
bool DrawsNumbers(std::span<const std::byte> model);

// Whether an input of the model's graph has a symbol for an extent.
bool HasSymbols(std::span<const std::byte> model);

}  // namespace onnxifi::mutants

#endif  // ONNXIFI_CONFORMANCE_MUTANTS_MODEL_LIES_H_
