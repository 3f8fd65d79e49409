// SPDX-License-Identifier: Apache-2.0
//
// Tokenizer: the tokens of strings.

#ifndef ONNXIFI_BACKENDS_CORE_HOST_TOKENS_H_
#define ONNXIFI_BACKENDS_CORE_HOST_TOKENS_H_

#include "backends/core/host/inputs.h"
#include "backends/core/program/host_function.h"

namespace onnxifi::host {

// INVALID_DATATYPE for a string that is no UTF-8.
Outputs Run(const program::TokenizeStrings& attributes, Inputs inputs);

}  // namespace onnxifi::host

#endif  // ONNXIFI_BACKENDS_CORE_HOST_TOKENS_H_
