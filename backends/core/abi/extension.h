// SPDX-License-Identifier: Apache-2.0
//
// Extension: the functions beyond the fifteen that core/abi gives every library, found by name.

#ifndef ONNXIFI_BACKENDS_CORE_ABI_EXTENSION_H_
#define ONNXIFI_BACKENDS_CORE_ABI_EXTENSION_H_

#include <onnx/onnxifi_ext.h>

#include <string>
#include <string_view>

#include "backends/core/abi/provider.h"

namespace onnxifi::abi {

// The name without the suffix "Function", which callers may add.
std::string_view ExtensionBaseName(std::string_view name);

// The function of that base name, or nullptr. `id` is null when the caller gave none: only
// functions of the whole library are found then. Functions of core/abi come before those of the
// provider.
onnxExtensionFunctionPointer FindExtension(Provider& provider, const BackendId* id,
                                           std::string_view base_name);

// Whether a function of that base name exists that needs an ID.
bool NeedsBackendId(std::string_view base_name);

// The EXTENSIONS of core/abi, followed by those of `others` that are not among them.
std::string ExtensionNames(std::string_view others);

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_EXTENSION_H_
