// SPDX-License-Identifier: Apache-2.0
//
// SchemaTable: the operators that the ONNX library defines, each made when it is first asked for.
// The library's own registry makes all of them, which takes 10 to 40 ms and most models a dozen.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_SCHEMA_TABLE_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_SCHEMA_TABLE_H_

#include <string_view>

namespace onnx {
class OpSchema;
}

namespace onnxifi::model {

// The newest schema of the operator that is no newer than `opset` of `domain` (canonical); null if
// there is none. Lives as long as the process. Threads: any.
const onnx::OpSchema* FindSchema(std::string_view op_type, std::string_view domain, int opset);

// Whether the operator exists in any version of the domain.
bool HasSchema(std::string_view op_type, std::string_view domain);

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_SCHEMA_TABLE_H_
