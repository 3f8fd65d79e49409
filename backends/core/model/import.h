// SPDX-License-Identifier: Apache-2.0
//
// Import: the bytes of an ONNX model -> a Graph. The first stage of every call that takes a model:
// scan the bytes, parse what is left without tensor data, resolve names and operator versions,
// check each node against its schema, take the weights in.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_IMPORT_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_IMPORT_H_

#include <cstddef>
#include <span>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"
#include "backends/core/model/import_options.h"

namespace onnxifi::model {

// The graph of the model, model-local functions inlined. No pointer into `model` is kept, unless
// it lasts; tensors in external files stay mapped while the graph or a tensor of it lives. Graph
// inputs that are initializers or weights are constants, no longer inputs. A model that declares no
// outputs gets the values that nothing reads. Errors, each with the offset, node or value
// concerned:
//   INVALID_PROTOBUF      the bytes are no ModelProto, or nest too deep
//   INVALID_MODEL         the model breaks a rule of ONNX
//   UNSUPPORTED_VERSION   IR or operator set version above the newest known
//   UNSUPPORTED_OPERATOR  an operator that neither ONNX nor the model defines; functions that
//   expand without end UNSUPPORTED_DATATYPE, UNSUPPORTED_SHAPE   element types, ranks and sparse
//   tensors beyond what a Graph holds INVALID_NAME          a weight that nothing in the model
//   names, or given twice INVALID_SHAPE, INVALID_MEMORY_LOCATION, MISMATCHING_SHAPE   a weight
//   against its declaration NO_SYSTEM_MEMORY
// Threads: may be called from any number of threads at once.
base::Result<graph::Graph> Import(std::span<const std::byte> model, const ImportOptions& options);

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_IMPORT_H_
