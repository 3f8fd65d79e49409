// SPDX-License-Identifier: Apache-2.0
//
// Definition: what the author of a domain's operator writes its function with: what a node says,
// and the nodes of other operators that compute the same.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_DEFINITION_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_DEFINITION_H_

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/tensor/element_type.h"

namespace onnx {
class OpSchema;
}

namespace onnxifi::model {

// A node that is to be defined, as far as whoever asks knows it.
class DefinedNode {
 public:
  virtual ~DefinedNode() = default;
  virtual const onnx::AttributeProto* FindAttribute(const std::string& name) const = 0;
  virtual int input_count() const = 0;
  virtual bool Has(int input) const = 0;
  // Null where it is not known.
  virtual const onnx::TypeProto* FindType(int input) const = 0;
  virtual int output_count() const = 0;
  virtual bool Wants(int output) const = 0;
};

class Definition {
 public:
  // The name of a value in the function.
  using Value = std::string;
  using AttributeValue = std::variant<int64_t, float, std::string, std::vector<int64_t>,
                                      std::vector<float>, std::vector<std::string>>;
  using Attributes = std::vector<std::pair<const char*, AttributeValue>>;

  // The operator set of ONNX's that the nodes are of.
  static constexpr int kOpset = 27;

  // All outlive this object. `body` is empty.
  Definition(const DefinedNode& node, const onnx::OpSchema& schema, onnx::FunctionProto& body);

  // Inputs. Types and extents are those of the node at hand.
  int input_count() const { return node_.input_count(); }
  bool Has(int input) const { return node_.Has(input); }
  Value In(int input) const { return "i" + std::to_string(input); }
  // Undefined where it is not known.
  tensor::ElementType Type(int input) const;
  std::optional<int> Rank(int input) const;
  std::optional<int64_t> Extent(int input, int axis) const;  // a negative axis counts from the end
  // UNSUPPORTED_SHAPE where the number of axes is not known, INVALID_MODEL where it is another.
  base::Status NeedRank(int input, int rank) const;
  // The same for an extent that the definition depends on.
  base::Result<int64_t> NeedExtent(int input, int axis) const;

  // Attributes, with the default of the declaration. Without one: 0, or empty.
  bool HasAttribute(const std::string& name) const { return node_.FindAttribute(name) != nullptr; }
  int64_t Int(const std::string& name) const;
  float Float(const std::string& name) const;
  std::string String(const std::string& name) const;
  std::vector<int64_t> Ints(const std::string& name) const;
  std::vector<float> Floats(const std::string& name) const;
  // Those of the node that have one of these names, as they are.
  Attributes Given(std::initializer_list<const char*> names) const;

  // Nodes.
  Value Apply(const char* op_type, std::vector<Value> inputs, Attributes attributes = {});
  // With several outputs. A domain other than ONNX's has to be of version 1.
  std::vector<Value> ApplyAll(const char* op_type, std::vector<Value> inputs, int outputs,
                              Attributes attributes = {}, std::string_view domain = "");
  Value Ints1D(std::vector<int64_t> numbers);               // int64 [n]
  Value Int0D(int64_t number);                              // int64 []
  Value Scalar(double number, tensor::ElementType type);    // []
  Value Scalar1D(double number, tensor::ElementType type);  // [1]
  Value Cast(Value value, tensor::ElementType type);
  Value Add(Value a, Value b) { return Apply("Add", {std::move(a), std::move(b)}); }
  Value Sub(Value a, Value b) { return Apply("Sub", {std::move(a), std::move(b)}); }
  Value Mul(Value a, Value b) { return Apply("Mul", {std::move(a), std::move(b)}); }
  Value Div(Value a, Value b) { return Apply("Div", {std::move(a), std::move(b)}); }
  Value MatMul(Value a, Value b) { return Apply("MatMul", {std::move(a), std::move(b)}); }
  // 0 keeps an extent, one -1 is what is left.
  Value Reshape(Value value, std::vector<int64_t> shape);
  Value ReshapeTo(Value value, Value shape) {
    return Apply("Reshape", {std::move(value), std::move(shape)});
  }
  Value Transpose(Value value, std::vector<int64_t> perm);
  Value Unsqueeze(Value value, std::vector<int64_t> axes);
  Value Squeeze(Value value, std::vector<int64_t> axes);
  // [start, end) of one axis; the bounds are int64 [1].
  Value Slice(Value value, int64_t axis, Value start, Value end);
  Value Slice(Value value, int64_t axis, int64_t start, int64_t end);
  std::vector<Value> Split(Value value, int64_t axis, std::vector<int64_t> sizes);
  Value Concat(std::vector<Value> values, int64_t axis);
  Value ExtentOf(Value value, int64_t axis);  // int64 [1]

  // Output `output` of the node is `value`. Outputs that the node wants and nothing is returned for
  // end the definition with an error.
  void Return(int output, Value value);
  bool Wants(int output) const { return node_.Wants(output); }

  // Refusals; each names the operator.
  base::Status Unsupported(std::string sentence) const;  // UNSUPPORTED_ATTRIBUTE
  base::Status UnsupportedShape(std::string sentence) const;
  base::Status Invalid(std::string sentence) const;

  // What a caller of a define function checks after it.
  bool HasReturned(int output) const;

 private:
  Value NewName();

  const DefinedNode& node_;
  const onnx::OpSchema& schema_;
  onnx::FunctionProto& body_;
  int names_ = 0;
  std::vector<bool> returned_;
};

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_DEFINITION_H_
