// SPDX-License-Identifier: Apache-2.0
//
// Tables and n-grams: LabelEncoder, CategoryMapper and TfIdfVectorizer.

#ifndef ONNXIFI_BACKENDS_CORE_HOST_TABLE_H_
#define ONNXIFI_BACKENDS_CORE_HOST_TABLE_H_

#include "backends/core/host/inputs.h"
#include "backends/core/program/host_function.h"

namespace onnxifi::host {

Outputs Run(const program::LookUp& attributes, Inputs inputs);
Outputs Run(const program::CountNgrams& attributes, Inputs inputs);

}  // namespace onnxifi::host

#endif  // ONNXIFI_BACKENDS_CORE_HOST_TABLE_H_
