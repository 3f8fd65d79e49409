// SPDX-License-Identifier: Apache-2.0
//
// ModelWriter: builds the bytes of small models, also of wrong ones: nothing is checked here.

#ifndef ONNXIFI_CLIENT_ONNX_FILE_MODEL_WRITER_H_
#define ONNXIFI_CLIENT_ONNX_FILE_MODEL_WRITER_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "client/onnx_file/tensor_file.h"

namespace onnxifi::onnx_file {

// A number, a symbol, or (an empty string) neither.
using Dimension = std::variant<int64_t, std::string>;

// The bytes of an AttributeProto.
std::string MakeIntAttribute(std::string_view name, int64_t value);
std::string MakeIntsAttribute(std::string_view name, const std::vector<int64_t>& values);
std::string MakeGraphAttribute(std::string_view name, std::string_view graph);

class ModelWriter {
 public:
  static constexpr int64_t kDefaultOpset = 17;

  explicit ModelWriter(int64_t ir_version = 8, int64_t opset = kDefaultOpset)
      : ir_version_(ir_version), opset_(opset) {}

  ModelWriter& Input(std::string_view name, ElementType type, std::vector<Dimension> shape);
  ModelWriter& Output(std::string_view name, ElementType type, std::vector<Dimension> shape);
  // A declared intermediate value.
  ModelWriter& Intermediate(std::string_view name, ElementType type, std::vector<Dimension> shape);
  ModelWriter& Initializer(const DenseTensor& tensor);
  // The bytes of a TensorProto, as they are.
  ModelWriter& RawInitializer(std::string_view tensor);
  ModelWriter& Node(std::string_view op_type, std::initializer_list<std::string_view> inputs,
                    std::initializer_list<std::string_view> outputs,
                    const std::vector<std::string>& attributes = {}, std::string_view domain = "");

  // An operator set of another domain than ONNX's.
  ModelWriter& Import(std::string_view domain, int64_t version);

  // The bytes of the GraphProto, and of the ModelProto around it.
  std::string BuildGraph() const;
  std::string Build() const;

 private:
  int64_t ir_version_;
  int64_t opset_;
  std::string graph_;
  std::string imports_;  // fields of the ModelProto
};

// A float32 tensor for an initializer.
DenseTensor MakeFloatTensor(std::string_view name, std::vector<int64_t> extents,
                            const std::vector<float>& values);

}  // namespace onnxifi::onnx_file

#endif  // ONNXIFI_CLIENT_ONNX_FILE_MODEL_WRITER_H_
