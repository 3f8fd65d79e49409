// SPDX-License-Identifier: Apache-2.0
//
// Dump: both forms walk the graph in node order, so that two dumps of one graph can be compared
// line by line.

#include "backends/core/graph/dump.h"

#include <sstream>

namespace onnxifi::graph {
namespace {

constexpr size_t kListedElements = 8;

std::string Label(const Graph& graph, ValueId id) {
  if (id == kNoValue) return "-";
  const std::string& name = graph.values[static_cast<size_t>(id)].name;
  return "%" + std::to_string(id) + (name.empty() ? "" : ":" + name);
}

std::string Labels(const Graph& graph, const ValueIds& ids) {
  std::string text;
  for (const ValueId id : ids) text += (text.empty() ? "" : ", ") + Label(graph, id);
  return text;
}

std::string ConstantText(const tensor::Tensor& tensor) {
  std::string text(tensor::Name(tensor.type()));
  text += tensor::ToString(tensor.extents());
  const auto count = static_cast<size_t>(tensor.element_count());
  if (count > kListedElements || tensor::IsComplex(tensor.type())) return text;
  text += " = {";
  for (size_t index = 0; index < count; ++index) {
    if (index > 0) text += ", ";
    if (tensor.type() == tensor::ElementType::kString) {
      text += "'" + tensor.strings()[index] + "'";
    } else if (tensor::IsFloat(tensor.type())) {
      std::ostringstream number;
      number << tensor.AsDouble(static_cast<int64_t>(index));
      text += number.str();
    } else {
      text += std::to_string(tensor.AsInt(static_cast<int64_t>(index)));
    }
  }
  return text + "}";
}

template <typename T>
std::string ListText(const std::vector<T>& elements) {
  std::ostringstream text;
  text << "[";
  for (size_t index = 0; index < elements.size() && index < kListedElements; ++index) {
    text << (index > 0 ? ", " : "") << elements[index];
  }
  if (elements.size() > kListedElements) text << ", ... " << elements.size() << " in all";
  text << "]";
  return text.str();
}

std::string ToText(int64_t value) { return std::to_string(value); }
std::string ToText(float value) {
  std::ostringstream text;
  text << value;
  return text.str();
}
std::string ToText(const std::string& value) { return "'" + value + "'"; }
std::string ToText(const std::vector<int64_t>& value) { return ListText(value); }
std::string ToText(const std::vector<float>& value) { return ListText(value); }
std::string ToText(const std::vector<std::string>& value) { return ListText(value); }
std::string ToText(const tensor::Tensor& value) { return ConstantText(value); }
std::string ToText(const std::vector<tensor::Tensor>& value) {
  return std::to_string(value.size()) + " tensors";
}
std::string ToText(const std::shared_ptr<const Graph>& value) {
  return "graph '" + value->name + "'";
}
std::string ToText(const std::vector<std::shared_ptr<const Graph>>& value) {
  return std::to_string(value.size()) + " graphs";
}
std::string ToText(const Type& value) { return ToString(value); }

std::string AttributesText(const Node& node) {
  std::string text;
  for (const auto& [name, attribute] : node.attributes) {
    text += text.empty() ? " {" : ", ";
    text += name + "=" + std::visit([](const auto& value) { return ToText(value); }, attribute);
  }
  return text.empty() ? text : text + "}";
}

void AppendText(const Graph& graph, const std::string& indent, std::string& text) {
  text += indent + "graph '" + graph.name + "'\n";
  for (const ValueId id : graph.inputs) {
    text += indent + "  input " + Label(graph, id) + " " +
            ToString(graph.values[static_cast<size_t>(id)].type) + "\n";
  }
  for (size_t id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph.values[id];
    const std::string label = Label(graph, static_cast<ValueId>(id));
    if (value.constant) {
      text += indent + (value.is_weight ? "  weight " : "  constant ") + label + " " +
              ConstantText(*value.constant) + "\n";
    } else if (value.is_weight) {
      text += indent + "  weight " + label + " " + ToString(value.type) + " (no values)\n";
    } else if (value.outer != kNoValue) {
      text += indent + "  capture " + label + " of %" + std::to_string(value.outer) + "\n";
    }
  }
  for (const Node& node : graph.nodes) {
    text += indent + "  " + Labels(graph, node.outputs) + " = " +
            (node.domain.empty() ? "" : node.domain + ".") + node.op_type + "-" +
            std::to_string(node.since_version) + "(" + Labels(graph, node.inputs) + ")" +
            AttributesText(node) + "  # " + Describe(node) + "\n";
    ForEachSubgraph(node, [&](const std::shared_ptr<const Graph>& subgraph) {
      AppendText(*subgraph, indent + "    ", text);
    });
  }
  for (const ValueId id : graph.outputs) {
    text += indent + "  output " + Label(graph, id) + " " +
            ToString(graph.values[static_cast<size_t>(id)].type) + "\n";
  }
}

std::string Quote(const std::string& text) {
  std::string quoted = "\"";
  for (const char character : text) {
    if (character == '"' || character == '\\') quoted += '\\';
    quoted += character;
  }
  return quoted + "\"";
}

// Names of DOT nodes are prefixed with the path of the subgraph, so that they are unique in the
// file.
void AppendDot(const Graph& graph, const std::string& prefix, std::string& text) {
  std::vector<std::string> origins(graph.values.size());
  for (const ValueId id : graph.inputs) {
    const Value& value = graph.values[static_cast<size_t>(id)];
    origins[static_cast<size_t>(id)] = prefix + "v" + std::to_string(id);
    text += "  " + Quote(origins[static_cast<size_t>(id)]) +
            " [shape=ellipse, label=" + Quote(value.name) + "];\n";
  }
  const auto add_edge = [&](ValueId id, const std::string& target) {
    if (id == kNoValue || origins[static_cast<size_t>(id)].empty()) return;
    const Value& value = graph.values[static_cast<size_t>(id)];
    text += "  " + Quote(origins[static_cast<size_t>(id)]) + " -> " + Quote(target) +
            " [label=" + Quote(value.name + " " + ToString(value.type)) + "];\n";
  };
  for (size_t node_id = 0; node_id < graph.nodes.size(); ++node_id) {
    const Node& node = graph.nodes[node_id];
    const std::string self = prefix + "n" + std::to_string(node_id);
    text += "  " + Quote(self) + " [shape=box, label=" + Quote(Describe(node)) + "];\n";
    for (const ValueId input : node.inputs) add_edge(input, self);
    int subgraph_index = 0;
    ForEachSubgraph(node, [&](const std::shared_ptr<const Graph>& subgraph) {
      const std::string inner = self + "g" + std::to_string(subgraph_index++) + "_";
      text += "  subgraph " + Quote("cluster_" + inner) +
              " {\n  label=" + Quote(Describe(node) + ": " + subgraph->name) + ";\n";
      AppendDot(*subgraph, inner, text);
      text += "  }\n";
    });
    for (const ValueId output : node.outputs) {
      if (output != kNoValue) origins[static_cast<size_t>(output)] = self;
    }
  }
  for (size_t index = 0; index < graph.outputs.size(); ++index) {
    const std::string self = prefix + "o" + std::to_string(index);
    const std::string& name = graph.values[static_cast<size_t>(graph.outputs[index])].name;
    text += "  " + Quote(self) + " [shape=ellipse, label=" + Quote(name) + "];\n";
    add_edge(graph.outputs[index], self);
  }
}

}  // namespace

std::string ToString(const Type& type) {
  const std::string inner = type.inner ? ToString(*type.inner) : "unknown";
  switch (type.kind) {
    case Type::Kind::kUnknown:
      return "unknown";
    case Type::Kind::kSequence:
      return "sequence(" + inner + ")";
    case Type::Kind::kOptional:
      return "optional(" + inner + ")";
    case Type::Kind::kMap:
      return "map(" + std::string(tensor::Name(type.element)) + ", " + inner + ")";
    case Type::Kind::kTensor:
      break;
  }
  std::string text(tensor::Name(type.element));
  if (!type.extents) return text;
  text += "[";
  for (size_t axis = 0; axis < type.extents->size(); ++axis) {
    const Extent& extent = (*type.extents)[axis];
    if (axis > 0) text += ", ";
    text += extent.is_known()       ? std::to_string(extent.number)
            : extent.symbol.empty() ? "?"
                                    : extent.symbol;
  }
  return text + "]";
}

std::string DumpText(const Graph& graph) {
  std::string text;
  AppendText(graph, "", text);
  return text;
}

std::string DumpDot(const Graph& graph) {
  std::string text = "digraph " + Quote(graph.name) + " {\n";
  AppendDot(graph, "", text);
  return text + "}\n";
}

}  // namespace onnxifi::graph
