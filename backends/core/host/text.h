// SPDX-License-Identifier: Apache-2.0
//
// The text of strings: StringConcat, StringSplit, StringNormalizer, RegexFullMatch, the order that
// Unique gives them, and Cast from and to strings.

#ifndef ONNXIFI_BACKENDS_CORE_HOST_TEXT_H_
#define ONNXIFI_BACKENDS_CORE_HOST_TEXT_H_

#include <string>

#include "backends/core/host/inputs.h"
#include "backends/core/program/host_function.h"

namespace onnxifi::host {

Outputs Run(const program::ConcatStrings&, Inputs inputs);
Outputs Run(const program::SplitStrings& attributes, Inputs inputs);
Outputs Run(const program::NormalizeStrings& attributes, Inputs inputs);
Outputs Run(const program::MatchStrings& attributes, Inputs inputs);
Outputs Run(const program::FormatNumbers&, Inputs inputs);
Outputs Run(const program::ParseNumbers& attributes, Inputs inputs);
Outputs Run(const program::RankStrings&, Inputs inputs);

}  // namespace onnxifi::host

#endif  // ONNXIFI_BACKENDS_CORE_HOST_TEXT_H_
