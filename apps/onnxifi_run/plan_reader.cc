// SPDX-License-Identifier: Apache-2.0
//
// PlanReader: JSON with every type checked before it is used. Times, cuts and copies of a plan
// follow from its islands or tell of other runs; nobody reads them.

#include "apps/onnxifi_run/plan_reader.h"

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

namespace onnxifi::run {
namespace {

using nlohmann::json;

// A plan of 100,000 nodes takes a tenth of this; deeper than a plan is nothing.
constexpr size_t kMaxBytes = size_t{1} << 27;
constexpr int kDeepest = 8;

base::Status Refuse(std::string sentence) {
  return {base::Code::kInvalidProperty, std::move(sentence)};
}

json ParseBounded(std::string_view text) {
  bool is_too_deep = false;
  json parsed = json::parse(
      text,
      [&](int depth, json::parse_event_t /*event*/, json& /*value*/) {
        is_too_deep = is_too_deep || depth > kDeepest;
        return !is_too_deep;
      },
      /*allow_exceptions=*/false);
  return is_too_deep ? json(json::value_t::discarded) : parsed;
}

// "node 3 'conv1' (Conv)", with what there is.
std::string Describe(uint32_t index, const std::string& name, const std::string& operator_type) {
  return fmt::format("node {}{}{}", index, name.empty() ? "" : fmt::format(" '{}'", name),
                     operator_type.empty() ? "" : fmt::format(" ({})", operator_type));
}

// A field that need not be there; nothing where it is no string.
std::optional<std::string> OptionalText(const json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end()) return std::string();
  if (!found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

base::Result<uint32_t> ParseNode(const json& entry, const std::string& where,
                                 const std::vector<onnx_file::NodeName>& nodes) {
  const auto index = entry.is_object() ? entry.find("index") : entry.end();
  if (!entry.is_object() || index == entry.end() || !index->is_number_unsigned() ||
      index->get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
    return Refuse(
        fmt::format("An entry among the nodes of {} has no 'index' that is the number of a"
                    " node.",
                    where));
  }
  const auto position = index->get<uint32_t>();
  const std::optional<std::string> name = OptionalText(entry, "name");
  const std::optional<std::string> operator_type = OptionalText(entry, "operator");
  if (!name || !operator_type) {
    return Refuse(
        fmt::format("The name or operator of node {} in {} is no text.", position, where));
  }
  if (position >= nodes.size()) {
    return Refuse(fmt::format("The plan has {} in {}, and the model has {} nodes.",
                              Describe(position, *name, *operator_type), where, nodes.size()));
  }
  const onnx_file::NodeName& node = nodes[position];
  const bool agrees = (!entry.contains("name") || *name == node.name) &&
                      (!entry.contains("operator") || *operator_type == node.operator_type);
  if (!agrees) {
    return Refuse(
        fmt::format("The plan has {} in {}, and the model has {} there: it is a plan of "
                    "another model.",
                    Describe(position, *name, *operator_type), where,
                    Describe(position, node.name, node.operator_type)));
  }
  return position;
}

}  // namespace

base::Result<Placement> ParsePlan(std::string_view text,
                                  const std::vector<onnx_file::NodeName>& nodes) {
  const json plan = ParseBounded(text);
  if (!plan.is_object()) return Refuse("The plan is no JSON object.");
  const auto islands = plan.find("islands");
  if (islands == plan.end() || !islands->is_array()) {
    return Refuse("The plan has no list of 'islands'.");
  }
  Placement placement;
  placement.kind = ONNXIFI_SDK_PLACEMENT_PLAN;
  for (size_t index = 0; index < islands->size(); ++index) {
    const json& island = (*islands)[index];
    const std::string number = fmt::format("island {} of the plan", index);
    const auto device = island.is_object() ? island.find("device") : island.end();
    if (!island.is_object() || device == island.end() || !device->is_string()) {
      return Refuse(fmt::format("There is no 'device' in {} that is a text.", number));
    }
    Placement::Group& group = placement.groups.emplace_back();
    group.device_key = device->get<std::string>();
    const auto listed = island.find("nodes");
    if (listed == island.end() || !listed->is_array()) {
      return Refuse(fmt::format("There is no list of 'nodes' in {}.", number));
    }
    const std::string where = fmt::format("{} on device '{}'", number, group.device_key);
    for (const json& entry : *listed) {
      ONNXIFI_ASSIGN_OR_RETURN(const uint32_t node, ParseNode(entry, where, nodes));
      group.nodes.push_back(node);
    }
  }
  return placement;
}

base::Result<Placement> ReadPlan(const std::filesystem::path& file,
                                 const std::vector<onnx_file::NodeName>& nodes) {
  std::ifstream stream(file, std::ios::binary);
  std::error_code error;
  const uintmax_t size_bytes = std::filesystem::file_size(file, error);
  if (!stream || error) {
    return base::Status(base::Code::kInvalidName,
                        fmt::format("The plan '{}' cannot be read.", file.string()));
  }
  if (size_bytes > kMaxBytes) {
    return Refuse(fmt::format("The plan '{}' has {} bytes, more than the largest of {}.",
                              file.string(), size_bytes, kMaxBytes));
  }
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  auto placement = ParsePlan(text, nodes);
  if (placement.ok()) return placement;
  return std::move(placement).status().Context(fmt::format("while reading '{}'", file.string()));
}

}  // namespace onnxifi::run
