// SPDX-License-Identifier: Apache-2.0
//
// ModelInputs: messages are copied field by field; `Copy` is one level of that.

#include "client/onnx_file/model_inputs.h"

#include <algorithm>
#include <cstdint>

#include "client/onnx_file/wire_reader.h"
#include "client/onnx_file/wire_writer.h"

namespace onnxifi::onnx_file {
namespace {

// Field numbers of onnx.proto.
constexpr uint32_t kModelIrVersion = 1;
constexpr uint32_t kModelGraph = 7;
constexpr uint32_t kGraphInitializer = 5;
constexpr uint32_t kGraphInput = 11;
constexpr uint32_t kGraphOutput = 12;
constexpr uint32_t kGraphValueInfo = 13;
constexpr uint32_t kValueName = 1;
constexpr uint32_t kValueType = 2;
constexpr uint32_t kTypeTensor = 1;
constexpr uint32_t kTensorShape = 2;
constexpr uint32_t kShapeDimension = 1;
constexpr uint32_t kDimensionExtent = 1;
constexpr uint32_t kDimensionSymbol = 2;

// From this IR version on an initializer need not be an input.
constexpr int64_t kFreeInitializersIr = 4;

// Copies a message. `replace(field, copy)` appends what takes the place of a field.
template <typename Replace>
base::Result<std::string> Copy(std::span<const std::byte> message, Replace replace) {
  std::string copy;
  copy.reserve(message.size());
  WireReader reader(message);
  WireField field;
  while (true) {
    ONNXIFI_ASSIGN_OR_RETURN(const bool has_field, reader.Next(field));
    if (!has_field) return copy;
    ONNXIFI_RETURN_IF_ERROR(replace(field, copy));
  }
}

// Copies a message, with `replace(content)` in place of the content of each field `number`.
template <typename Replace>
base::Result<std::string> CopyWith(std::span<const std::byte> message, uint32_t number,
                                   Replace replace) {
  return Copy(message, [&](const WireField& field, std::string& copy) -> base::Status {
    if (field.number != number || field.type != WireType::kBytes) {
      AppendField(copy, field);
      return base::Ok();
    }
    ONNXIFI_ASSIGN_OR_RETURN(const std::string content, replace(field.bytes));
    AppendBytesField(copy, number, content);
    return base::Ok();
  });
}

// The last field of this number; an empty one if there is none.
base::Result<WireField> Find(std::span<const std::byte> message, uint32_t number) {
  WireField found;
  WireReader reader(message);
  WireField field;
  while (true) {
    ONNXIFI_ASSIGN_OR_RETURN(const bool has_field, reader.Next(field));
    if (!has_field) return found;
    if (field.number == number) found = field;
  }
}

std::string MakeDimension(const Dimension& dimension) {
  std::string content;
  if (const auto* extent = std::get_if<int64_t>(&dimension)) {
    AppendIntegerField(content, kDimensionExtent, *extent);
  } else if (const auto& symbol = std::get<std::string>(dimension); !symbol.empty()) {
    AppendBytesField(content, kDimensionSymbol, symbol);
  }
  return content;
}

// A value with other dimensions. `change(number, dimension)` is given the content of dimension
// `number` of its tensor type and returns the new one.
template <typename Change>
base::Result<std::string> ChangeDimensions(std::span<const std::byte> value, Change change) {
  return CopyWith(value, kValueType, [&](std::span<const std::byte> type) {
    return CopyWith(type, kTypeTensor, [&](std::span<const std::byte> tensor) {
      return CopyWith(tensor, kTensorShape, [&](std::span<const std::byte> shape) {
        size_t number = 0;
        return CopyWith(shape, kShapeDimension, [&](std::span<const std::byte> dimension) {
          return base::Result<std::string>(change(number++, dimension));
        });
      });
    });
  });
}

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

base::Result<std::string> MakeInitializers(std::span<const std::byte> model,
                                           std::span<const DenseTensor> tensors) {
  ONNXIFI_ASSIGN_OR_RETURN(const WireField ir_version, Find(model, kModelIrVersion));
  const bool stays_input = ir_version.signed_value() < kFreeInitializersIr;
  return CopyWith(model, kModelGraph, [&](std::span<const std::byte> graph) {
    base::Result<std::string> copy =
        Copy(graph, [&](const WireField& field, std::string& written) -> base::Status {
          if (field.number == kGraphInput && !stays_input) {
            ONNXIFI_ASSIGN_OR_RETURN(const WireField name, Find(field.bytes, kValueName));
            const bool is_taken = std::ranges::any_of(
                tensors, [&](const DenseTensor& tensor) { return tensor.name == name.text(); });
            if (is_taken) return base::Ok();
          }
          AppendField(written, field);
          return base::Ok();
        });
    if (!copy.ok()) return copy;
    for (const DenseTensor& tensor : tensors) {
      AppendBytesField(*copy, kGraphInitializer, SerializeTensor(tensor));
    }
    return copy;
  });
}

base::Result<std::string> ChangeExtents(std::span<const std::byte> model,
                                        const ExtentsByName& extents) {
  const auto change_value = [&](const WireField& field, std::string& copy) -> base::Status {
    ONNXIFI_ASSIGN_OR_RETURN(const WireField name, Find(field.bytes, kValueName));
    const auto known = extents.find(name.text());
    const bool is_input = field.number == kGraphInput;
    if (is_input && known == extents.end()) {
      AppendField(copy, field);
      return base::Ok();
    }
    ONNXIFI_ASSIGN_OR_RETURN(
        const std::string value,
        ChangeDimensions(field.bytes, [&](size_t number, std::span<const std::byte> dimension) {
          if (!is_input) return std::string();
          if (number >= known->second.size()) return std::string(TextOf(dimension));
          return MakeDimension(known->second[number]);
        }));
    AppendBytesField(copy, field.number, value);
    return base::Ok();
  };
  return CopyWith(model, kModelGraph, [&](std::span<const std::byte> graph) {
    return Copy(graph, [&](const WireField& field, std::string& copy) -> base::Status {
      if (field.number == kGraphValueInfo) return base::Ok();
      if (field.number == kGraphInput || field.number == kGraphOutput) {
        return change_value(field, copy);
      }
      AppendField(copy, field);
      return base::Ok();
    });
  });
}

base::Result<std::string> DeclareExtents(std::span<const std::byte> model,
                                         const ExtentsByName& extents) {
  const auto declare = [](std::span<const std::byte> tensor,
                          const std::vector<Dimension>& given) -> base::Result<std::string> {
    ONNXIFI_ASSIGN_OR_RETURN(
        std::string declared,
        Copy(tensor, [](const WireField& field, std::string& copy) -> base::Status {
          if (field.number != kTensorShape) AppendField(copy, field);
          return base::Ok();
        }));
    std::string shape;
    for (const Dimension& dimension : given) {
      AppendBytesField(shape, kShapeDimension, MakeDimension(dimension));
    }
    AppendBytesField(declared, kTensorShape, shape);
    return declared;
  };
  return CopyWith(model, kModelGraph, [&](std::span<const std::byte> graph) {
    return CopyWith(graph, kGraphInput,
                    [&](std::span<const std::byte> value) -> base::Result<std::string> {
                      ONNXIFI_ASSIGN_OR_RETURN(const WireField name, Find(value, kValueName));
                      const auto found = extents.find(name.text());
                      if (found == extents.end()) return std::string(TextOf(value));
                      return CopyWith(value, kValueType, [&](std::span<const std::byte> type) {
                        return CopyWith(type, kTypeTensor, [&](std::span<const std::byte> tensor) {
                          return declare(tensor, found->second);
                        });
                      });
                    });
  });
}

}  // namespace onnxifi::onnx_file
