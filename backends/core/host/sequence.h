// SPDX-License-Identifier: Apache-2.0
//
// Sequences and optionals: SequenceConstruct and its relatives, SplitToSequence,
// ConcatFromSequence, Optional*. Elements are shared, never copied, once they are owned.

#ifndef ONNXIFI_BACKENDS_CORE_HOST_SEQUENCE_H_
#define ONNXIFI_BACKENDS_CORE_HOST_SEQUENCE_H_

#include "backends/core/host/inputs.h"
#include "backends/core/program/host_function.h"

namespace onnxifi::host {

Outputs Run(const program::MakeSequence&, Inputs inputs);
Outputs Run(const program::InsertElement& attributes, Inputs inputs);
Outputs Run(const program::EraseElement&, Inputs inputs);
Outputs Run(const program::TakeElement&, Inputs inputs);
Outputs Run(const program::CountElements&, Inputs inputs);
Outputs Run(const program::SplitTensor& attributes, Inputs inputs);
Outputs Run(const program::JoinElements& attributes, Inputs inputs);
Outputs Run(const program::TestPresence&, Inputs inputs);
Outputs Run(const program::PassValue&, Inputs inputs);

}  // namespace onnxifi::host

#endif  // ONNXIFI_BACKENDS_CORE_HOST_SEQUENCE_H_
