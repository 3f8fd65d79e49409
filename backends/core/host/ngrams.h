// SPDX-License-Identifier: Apache-2.0
//
// N-grams: TfIdfVectorizer.

#ifndef ONNXIFI_BACKENDS_CORE_HOST_NGRAMS_H_
#define ONNXIFI_BACKENDS_CORE_HOST_NGRAMS_H_

#include "backends/core/host/inputs.h"
#include "backends/core/program/host_function.h"

namespace onnxifi::host {

Outputs Run(const program::CountNgrams& attributes, Inputs inputs);

}  // namespace onnxifi::host

#endif  // ONNXIFI_BACKENDS_CORE_HOST_NGRAMS_H_
