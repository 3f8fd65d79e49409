// SPDX-License-Identifier: Apache-2.0
//
// Model lies: messages of onnx.proto are copied field by field. What is no model is left as it is.

#include "conformance/mutants/model_lies.h"

#include <algorithm>
#include <array>
#include <vector>

#include "client/onnx_file/wire_reader.h"
#include "client/onnx_file/wire_writer.h"

namespace onnxifi::mutants {
namespace {

using onnx_file::WireField;
using onnx_file::WireReader;
using onnx_file::WireType;

// Field numbers of onnx.proto.
constexpr uint32_t kModelGraph = 7;
constexpr uint32_t kModelOperatorSet = 8;
constexpr uint32_t kOperatorSetVersion = 2;
constexpr uint32_t kGraphNode = 1;
constexpr uint32_t kGraphInitializer = 5;
constexpr uint32_t kGraphInput = 11;
// From a value of the graph to the axes of its tensor, and an axis's symbol.
constexpr std::array<uint32_t, 4> kAxisOfValue = {2, 1, 2, 1};
constexpr uint32_t kAxisSymbol = 2;
constexpr uint32_t kNodeOperator = 4;
constexpr uint32_t kNodeAttribute = 5;
constexpr uint32_t kAttributeName = 1;
constexpr uint32_t kAttributeInt = 3;
constexpr uint32_t kTensorRawData = 9;

constexpr std::string_view kSwallows = "swallows the attribute ";

// Calls `change(field, copy)` for each field, which appends what takes its place.
template <typename Change>
std::string Copy(std::span<const std::byte> message, Change change) {
  std::string copy;
  WireReader reader(message);
  WireField field;
  while (true) {
    const base::Result<bool> has_field = reader.Next(field);
    if (!has_field.ok() || !*has_field) return copy;
    change(field, copy);
  }
}

std::string TextOf(std::span<const std::byte> message, uint32_t number) {
  std::string text;
  (void)Copy(message, [&](const WireField& field, std::string&) {
    if (field.number == number && field.type == WireType::kBytes) text = field.text();
  });
  return text;
}

// Whether the messages down this path of field numbers have the field `last`.
bool HasField(std::span<const std::byte> message, std::span<const uint32_t> path, uint32_t last) {
  bool has = false;
  (void)Copy(message, [&](const WireField& field, std::string&) {
    if (path.empty()) has = has || field.number == last;
    if (path.empty() || field.number != path.front() || field.type != WireType::kBytes) return;
    has = has || HasField(field.bytes, path.subspan(1), last);
  });
  return has;
}

std::string MisreadOperatorSet(std::span<const std::byte> import) {
  return Copy(import, [](const WireField& field, std::string& copy) {
    if (field.number != kOperatorSetVersion) return AppendField(copy, field);
    onnx_file::AppendIntegerField(copy, kOperatorSetVersion, field.signed_value() + 2);
  });
}

std::string MisreadNode(std::string_view lie, std::span<const std::byte> node) {
  return Copy(node, [&](const WireField& field, std::string& copy) {
    if (field.number != kNodeAttribute) return AppendField(copy, field);
    const std::string name = TextOf(field.bytes, kAttributeName);
    if (lie.starts_with(kSwallows) && lie.substr(kSwallows.size()) == name) return;
    if (lie != "takes the next axis" || name != "axis") return AppendField(copy, field);
    const std::string attribute =
        Copy(field.bytes, [](const WireField& part, std::string& content) {
          if (part.number != kAttributeInt) return AppendField(content, part);
          onnx_file::AppendIntegerField(content, kAttributeInt, part.signed_value() + 1);
        });
    onnx_file::AppendBytesField(copy, kNodeAttribute, attribute);
  });
}

std::string MisreadInitializer(std::span<const std::byte> tensor) {
  return Copy(tensor, [](const WireField& field, std::string& copy) {
    if (field.number != kTensorRawData || field.bytes.empty()) return AppendField(copy, field);
    std::string data(field.text());
    data.back() = static_cast<char>(data.back() ^ 0x03);
    onnx_file::AppendBytesField(copy, kTensorRawData, data);
  });
}

}  // namespace

std::string Misread(std::string_view lie, std::span<const std::byte> model) {
  const bool misreads_nodes = lie.starts_with(kSwallows) || lie == "takes the next axis";
  const bool misreads_initializers = lie == "changes initializers";
  return Copy(model, [&](const WireField& field, std::string& copy) {
    if (field.number == kModelOperatorSet && lie == "takes the operators of later sets") {
      return onnx_file::AppendBytesField(copy, kModelOperatorSet, MisreadOperatorSet(field.bytes));
    }
    if (field.number != kModelGraph || field.type != WireType::kBytes) {
      return AppendField(copy, field);
    }
    const std::string graph = Copy(field.bytes, [&](const WireField& part, std::string& content) {
      if (misreads_nodes && part.number == kGraphNode) {
        return onnx_file::AppendBytesField(content, kGraphNode, MisreadNode(lie, part.bytes));
      }
      if (misreads_initializers && part.number == kGraphInitializer) {
        return onnx_file::AppendBytesField(content, kGraphInitializer,
                                           MisreadInitializer(part.bytes));
      }
      AppendField(content, part);
    });
    onnx_file::AppendBytesField(copy, kModelGraph, graph);
  });
}

bool DrawsNumbers(std::span<const std::byte> model) {
  static constexpr std::array<std::string_view, 6> kGenerators = {
      "Bernoulli",        "Multinomial",   "RandomNormal",
      "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
  bool draws = false;
  (void)Copy(model, [&](const WireField& field, std::string&) {
    if (field.number != kModelGraph) return;
    (void)Copy(field.bytes, [&](const WireField& part, std::string&) {
      if (part.number != kGraphNode) return;
      const std::string name = TextOf(part.bytes, kNodeOperator);
      draws = draws || std::ranges::find(kGenerators, name) != kGenerators.end();
    });
  });
  return draws;
}

bool HasSymbols(std::span<const std::byte> model) {
  std::vector<uint32_t> path = {kModelGraph, kGraphInput};
  path.insert(path.end(), kAxisOfValue.begin(), kAxisOfValue.end());
  return HasField(model, path, kAxisSymbol);
}

}  // namespace onnxifi::mutants
