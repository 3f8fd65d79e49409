// SPDX-License-Identifier: Apache-2.0
//
// NodeVerdict, field by field.

#include "backends/core/abi/node_verdict.h"

namespace onnxifi::abi {

onnxNodeVerdict ToRecord(const NodeVerdict& verdict) {
  onnxNodeVerdict record = {};
  record.struct_size = sizeof(record);
  record.node_index = verdict.node_index;
  record.status = static_cast<onnxStatus>(verdict.code);
  record.node_name = verdict.node_name.c_str();
  record.domain = verdict.domain.c_str();
  record.operator_type = verdict.operator_type.c_str();
  record.opset_version = verdict.opset_version;
  record.subject_kind = verdict.subject_kind;
  record.subject = verdict.subject.c_str();
  record.sentence = verdict.sentence.c_str();
  record.limit = verdict.limit.c_str();
  return record;
}

}  // namespace onnxifi::abi
