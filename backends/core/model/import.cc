// SPDX-License-Identifier: Apache-2.0
//
// Import: the stages of one call. The graph itself is built by GraphImporter.

#include "backends/core/model/import.h"

#include <google/protobuf/arena.h>
#include <onnx/onnx_pb.h>

#include <utility>

#include "backends/core/model/domains.h"
#include "backends/core/model/external_data.h"
#include "backends/core/model/graph_importer.h"
#include "backends/core/model/opset_table.h"
#include "backends/core/model/protobuf_cleanup.h"
#include "backends/core/model/tensor_proto.h"
#include "backends/core/model/versions.h"
#include "backends/core/model/wire_scanner.h"

namespace onnxifi::model {
namespace {

using base::Code;
using base::Result;
using base::Status;

const ProtobufCleanup kProtobufCleanup;

Status CheckIrVersion(const onnx::ModelProto& model) {
  if (model.ir_version() > NewestIrVersion()) {
    return {Code::kUnsupportedVersion,
            "The model's IR version (" + std::to_string(model.ir_version()) +
                ") exceeds the newest supported (" + std::to_string(NewestIrVersion()) + ")."};
  }
  if (model.ir_version() < 1) {
    return {Code::kInvalidModel, "The model's IR version (" + std::to_string(model.ir_version()) +
                                     ") is below the oldest that exists (1)."};
  }
  return base::Ok();
}

}  // namespace

Result<graph::Graph> Import(std::span<const std::byte> model, const ImportOptions& options) {
  ONNXIFI_ASSIGN_OR_RETURN(const ScannedModel scanned, ScanModel(model));
  // A block on the stack holds a model of a few nodes without a single allocation.
  alignas(std::max_align_t) char block[8192];
  google::protobuf::ArenaOptions arena_options;
  arena_options.initial_block = block;
  arena_options.initial_block_size = sizeof(block);
  google::protobuf::Arena arena(arena_options);
  auto* proto = google::protobuf::Arena::CreateMessage<onnx::ModelProto>(&arena);
  if (!proto->ParseFromArray(scanned.skeleton.data(), static_cast<int>(scanned.skeleton.size()))) {
    return Status(Code::kInvalidProtobuf, "The model of " + std::to_string(model.size()) +
                                              " bytes does not parse as a ModelProto.");
  }
  ONNXIFI_RETURN_IF_ERROR(CheckIrVersion(*proto));
  ONNXIFI_ASSIGN_OR_RETURN(
      const OpsetTable opsets,
      OpsetTable::Make(proto->opset_import(), proto->ir_version(), DomainsOf(options)));
  if (!proto->has_graph()) {
    return Status(Code::kInvalidModel, "The model has no graph.");
  }
  ExternalData external_data(options.base_folder);
  TensorReader tensors(
      scanned.tensors, external_data,
      {.is_mapped = options.is_mapped_model, .is_lasting = options.is_lasting_model});
  GraphImporter importer(*proto, tensors, options);
  return importer.Run(opsets);
}

}  // namespace onnxifi::model
