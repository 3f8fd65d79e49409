// SPDX-License-Identifier: Apache-2.0
//
// OpsetTable: the operator set versions that a model or function imports, checked.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_OPSET_TABLE_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_OPSET_TABLE_H_

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/core/base/result.h"

namespace onnxifi::model {

class Domains;

class OpsetTable {
 public:
  using Imports = google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>;

  // IR versions below 3 had no imports and mean version 1 of the default domain. INVALID_MODEL: no
  // import at all, a version below 1, two versions of one domain. UNSUPPORTED_VERSION: above the
  // newest of a domain that ONNX defines or `domains` has. Lifetime: borrows the imports' strings.
  static base::Result<OpsetTable> Make(const Imports& imports, int64_t ir_version,
                                       const Domains& domains);

  // The version of a canonical domain; nothing if it is not imported.
  std::optional<int64_t> Find(std::string_view domain) const;

 private:
  std::vector<std::pair<std::string_view, int64_t>> versions_;
};

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_OPSET_TABLE_H_
