// SPDX-License-Identifier: Apache-2.0
//
// Reads a ModelProto only as deep as its outline needs; field numbers are those of onnx.proto.

#include "client/onnx_file/model_outline.h"

#include <algorithm>
#include <set>

#include "client/onnx_file/wire_reader.h"

namespace onnxifi::onnx_file {
namespace {

// Calls `read(field)` for every field of a message.
template <typename Read>
base::Status ForEachField(std::span<const std::byte> message, Read read) {
  WireReader reader(message);
  WireField field;
  while (true) {
    ONNXIFI_ASSIGN_OR_RETURN(const bool has_field, reader.Next(field));
    if (!has_field) return base::Ok();
    ONNXIFI_RETURN_IF_ERROR(read(field));
  }
}

base::Result<std::string> ReadText(std::span<const std::byte> message, uint32_t number) {
  std::string text;
  ONNXIFI_RETURN_IF_ERROR(ForEachField(message, [&](const WireField& field) {
    if (field.number == number) text = field.text();
    return base::Ok();
  }));
  return text;
}

struct InitializerOutline {
  std::string name;
  bool is_external = false;
};

base::Result<InitializerOutline> ReadInitializer(std::span<const std::byte> message) {
  InitializerOutline initializer;
  ONNXIFI_RETURN_IF_ERROR(ForEachField(message, [&](const WireField& field) {
    if (field.number == 8) initializer.name = field.text();
    if (field.number == 14) initializer.is_external = field.value == 1;
    return base::Ok();
  }));
  return initializer;
}

base::Status ReadDimension(std::span<const std::byte> message, DimensionOutline& dimension) {
  return ForEachField(message, [&](const WireField& field) {
    if (field.number == 1) dimension.extent = field.signed_value();
    if (field.number == 2) dimension.symbol = field.text();
    return base::Ok();
  });
}

base::Status ReadShape(std::span<const std::byte> message,
                       std::vector<DimensionOutline>& dimensions) {
  return ForEachField(message, [&](const WireField& field) {
    if (field.number != 1) return base::Ok();
    return ReadDimension(field.bytes, dimensions.emplace_back());
  });
}

base::Status ReadTensorType(std::span<const std::byte> message, ValueOutline& value) {
  return ForEachField(message, [&](const WireField& field) {
    if (field.number == 1) {
      value.type = static_cast<ElementType>(static_cast<int32_t>(field.value));
    }
    if (field.number == 2) return ReadShape(field.bytes, value.shape.emplace());
    return base::Ok();
  });
}

base::Status ReadType(std::span<const std::byte> message, ValueOutline& value) {
  return ForEachField(message, [&](const WireField& field) {
    switch (field.number) {
      case 1:
        value.kind = ValueKind::kTensor;
        return ReadTensorType(field.bytes, value);
      case 4:
        value.kind = ValueKind::kSequence;
        return base::Ok();
      case 5:
        value.kind = ValueKind::kMap;
        return base::Ok();
      case 8:
        value.kind = ValueKind::kSparseTensor;
        return base::Ok();
      case 9:
        value.kind = ValueKind::kOptional;
        return base::Ok();
      default:
        return base::Ok();
    }
  });
}

base::Status ReadValue(std::span<const std::byte> message, ValueOutline& value) {
  return ForEachField(message, [&](const WireField& field) {
    if (field.number == 1) value.name = field.text();
    if (field.number == 2) return ReadType(field.bytes, value);
    return base::Ok();
  });
}

base::Status ReadNode(std::span<const std::byte> message, std::vector<std::string>& operators) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::string name, ReadText(message, 4));
  ONNXIFI_ASSIGN_OR_RETURN(const std::string domain, ReadText(message, 7));
  std::string full = domain.empty() || domain == "ai.onnx" ? name : domain + "." + name;
  if (std::find(operators.begin(), operators.end(), full) == operators.end()) {
    operators.push_back(std::move(full));
  }
  return base::Ok();
}

base::Status ReadGraph(std::span<const std::byte> message, ModelOutline& outline) {
  std::set<std::string, std::less<>> initializers;
  ONNXIFI_RETURN_IF_ERROR(ForEachField(message, [&](const WireField& field) -> base::Status {
    switch (field.number) {
      case 1:
        return ReadNode(field.bytes, outline.operators);
      case 5: {
        ONNXIFI_ASSIGN_OR_RETURN(InitializerOutline initializer, ReadInitializer(field.bytes));
        outline.has_external_data |= initializer.is_external;
        initializers.insert(std::move(initializer.name));
        return base::Ok();
      }
      case 11:
        return ReadValue(field.bytes, outline.inputs.emplace_back());
      case 12: {
        ValueOutline output;
        ONNXIFI_RETURN_IF_ERROR(ReadValue(field.bytes, output));
        // Outputs are bound by name, so that one listed twice is one.
        if (std::ranges::find(outline.outputs, output.name, &ValueOutline::name) ==
            outline.outputs.end()) {
          outline.outputs.push_back(std::move(output));
        }
        return base::Ok();
      }
      default:
        return base::Ok();
    }
  }));
  std::erase_if(outline.inputs,
                [&](const ValueOutline& input) { return initializers.contains(input.name); });
  return base::Ok();
}

}  // namespace

std::string_view NameOf(ValueKind kind) {
  switch (kind) {
    case ValueKind::kTensor:
      return "tensor";
    case ValueKind::kSparseTensor:
      return "sparse tensor";
    case ValueKind::kSequence:
      return "sequence";
    case ValueKind::kMap:
      return "map";
    case ValueKind::kOptional:
      return "optional";
    case ValueKind::kUnknown:
      break;
  }
  return "value of no type";
}

base::Result<ModelOutline> ParseModelOutline(std::span<const std::byte> model) {
  if (model.empty()) return base::Status(base::Code::kInvalidModel, "The model has 0 bytes.");
  ModelOutline outline;
  bool has_graph = false;
  ONNXIFI_RETURN_IF_ERROR(ForEachField(model, [&](const WireField& field) {
    if (field.number == 1) outline.ir_version = field.signed_value();
    if (field.number != 7) return base::Ok();
    has_graph = true;
    return ReadGraph(field.bytes, outline);
  }));
  if (!has_graph) return base::Status(base::Code::kInvalidModel, "The model holds no graph.");
  return outline;
}

}  // namespace onnxifi::onnx_file
