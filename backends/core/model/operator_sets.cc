// SPDX-License-Identifier: Apache-2.0
//
// OperatorSetsOf: the checks are OpsetTable's.

#include "backends/core/model/operator_sets.h"

#include <onnx/onnx_pb.h>

#include <optional>
#include <string_view>

#include "backends/core/model/domains.h"
#include "backends/core/model/opset_table.h"
#include "backends/core/model/versions.h"
#include "backends/core/model/wire_scanner.h"

namespace onnxifi::model {

using base::Code;
using base::Result;
using base::Status;

Result<std::map<std::string, int64_t>> OperatorSetsOf(std::span<const std::byte> model) {
  ONNXIFI_ASSIGN_OR_RETURN(const ScannedModel scanned, ScanModel(model));
  onnx::ModelProto proto;
  if (!proto.ParseFromString(scanned.skeleton)) {
    return Status(Code::kInvalidProtobuf, "The model of " + std::to_string(model.size()) +
                                              " bytes does not parse as a ModelProto.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const OpsetTable table,
                           OpsetTable::Make(proto.opset_import(), proto.ir_version(), NoDomains()));
  std::map<std::string, int64_t> versions;
  // Models from before there were imports have version 1 of the default domain.
  if (const std::optional<int64_t> version = table.Find("")) versions.emplace("", *version);
  for (const onnx::OperatorSetIdProto& import : proto.opset_import()) {
    versions.emplace(CanonicalDomain(import.domain()), import.version());
  }
  return versions;
}

}  // namespace onnxifi::model
