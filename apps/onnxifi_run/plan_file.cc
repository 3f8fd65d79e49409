// SPDX-License-Identifier: Apache-2.0
//
// PlanFile: the drawings show islands, not nodes: a model has hundreds of nodes and a plan few
// islands.

#include "apps/onnxifi_run/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace onnxifi::run {
namespace {

using nlohmann::json;

// Distinguishable in print and for most eyes; the order of Okabe and Ito.
constexpr std::array<std::string_view, 7> kColors = {"#56b4e9", "#e69f00", "#009e73", "#f0e442",
                                                     "#cc79a7", "#d55e00", "#0072b2"};

// What a library answers that does not count.
constexpr uint64_t kUntold = ~uint64_t{0};

// A color for each device, in the order in which islands name them.
std::map<std::string, std::string> ColorsOf(const GraphPlan& plan) {
  std::map<std::string, std::string> colors;
  for (const PlanIsland& island : plan.islands) {
    colors.emplace(island.device_key, kColors[colors.size() % kColors.size()]);
  }
  return colors;
}

std::string Bytes(uint64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) * 1e-3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
}

std::string Milliseconds(uint64_t nanoseconds) {
  return fmt::format("{:.3f} ms", static_cast<double>(nanoseconds) * 1e-6);
}

// "Conv 12, Relu 9, ...": the commonest operators of an island.
std::string OperatorsOf(const PlanIsland& island, const std::vector<NodeVerdict>& nodes) {
  std::map<uint32_t, const NodeVerdict*> by_index;
  for (const NodeVerdict& node : nodes) by_index.emplace(node.node_index, &node);
  std::map<std::string, int> counts;
  const auto count = [&](const NodeVerdict& node) { ++counts[node.operator_type]; };
  if (island.nodes.empty()) {
    for (const auto& [index, node] : by_index) count(*node);
  }
  for (const uint32_t node : island.nodes) {
    if (by_index.contains(node)) count(*by_index[node]);
  }
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [name, number] : counts) sorted.emplace_back(-number, name);
  std::sort(sorted.begin(), sorted.end());
  constexpr size_t kMaxNamed = 3;
  std::string text;
  for (size_t k = 0; k < sorted.size() && k < kMaxNamed; ++k) {
    text += fmt::format("{}{} {}", k > 0 ? ", " : "", sorted[k].second, -sorted[k].first);
  }
  return sorted.size() > kMaxNamed ? text + ", ..." : text;
}

// What is written into an island, line by line.
std::vector<std::string> LinesOf(const GraphPlan& plan, size_t index,
                                 const std::vector<NodeVerdict>& nodes) {
  const PlanIsland& island = plan.islands[index];
  std::vector<std::string> lines = {fmt::format("{}: {}", index, island.device_key)};
  lines.push_back(island.nodes.empty() ? "the whole model"
                                       : fmt::format("{} node{}", island.nodes.size(),
                                                     island.nodes.size() == 1 ? "" : "s"));
  lines.push_back(OperatorsOf(island, nodes));
  if (island.estimated_duration_ns > 0) {
    lines.push_back("estimated " + Milliseconds(island.estimated_duration_ns));
  }
  if (island.measured_duration_ns > 0) {
    lines.push_back("measured " + Milliseconds(island.measured_duration_ns));
  }
  if (island.copies > 0 && island.copies != kUntold) {
    lines.push_back(fmt::format("{} copies of the device's", island.copies));
  }
  return lines;
}

std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string EscapeDot(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// All that goes one way between two ends, in one line.
struct Route {
  int count = 0;
  uint64_t bytes = 0;
  uint64_t copies = 0;
};
std::map<std::pair<int64_t, int64_t>, Route> RoutesOf(const GraphPlan& plan) {
  std::map<std::pair<int64_t, int64_t>, Route> routes;
  for (const PlanCut& cut : plan.cuts) {
    Route& route = routes[{cut.from_island, cut.to_island}];
    ++route.count;
    route.bytes += cut.size_bytes;
    route.copies += cut.copies;
  }
  return routes;
}

std::string LabelOf(const Route& route) {
  return fmt::format("{} tensor{}, {}", route.count, route.count == 1 ? "" : "s",
                     Bytes(route.bytes)) +
         (route.copies > 0 ? fmt::format(", {} copies", route.copies) : std::string());
}

// "3 islands, estimated 1.520 ms, measured 2.250 ms": of the whole run.
std::string TitleOf(const GraphPlan& plan) {
  uint64_t estimated_ns = 0;
  uint64_t measured_ns = 0;
  for (const PlanIsland& island : plan.islands) {
    estimated_ns = std::max(estimated_ns, island.estimated_start_ns + island.estimated_duration_ns);
    measured_ns = std::max(measured_ns, island.measured_start_ns + island.measured_duration_ns);
  }
  std::string title =
      fmt::format("{} island{}", plan.islands.size(), plan.islands.size() == 1 ? "" : "s");
  if (estimated_ns > 0) title += ", estimated " + Milliseconds(estimated_ns);
  if (measured_ns > 0) title += ", measured " + Milliseconds(measured_ns);
  return title;
}

// Whether every number of an island means one, and what an island waits for lies before it.
bool IsSound(const GraphPlan& plan) {
  const auto count = static_cast<int64_t>(plan.islands.size());
  for (int64_t index = 0; index < count; ++index) {
    for (const uint32_t before : plan.islands[static_cast<size_t>(index)].after) {
      if (before >= index) return false;
    }
  }
  return std::ranges::all_of(plan.cuts, [&](const PlanCut& cut) {
    const auto is_end = [&](int64_t end) {
      return end == ONNXIFI_SDK_UNKNOWN || (end >= 0 && end < count);
    };
    return is_end(cut.from_island) && is_end(cut.to_island) && cut.from_island != cut.to_island;
  });
}

// The column of each island: how many must run before it.
std::vector<int> ColumnsOf(const GraphPlan& plan) {
  std::vector<int> columns;
  for (const PlanIsland& island : plan.islands) {
    int column = 0;
    for (const uint32_t before : island.after) column = std::max(column, columns[before] + 1);
    columns.push_back(column);
  }
  return columns;
}

}  // namespace

std::string MakePlanJson(const GraphPlan& plan, const std::vector<NodeVerdict>& nodes) {
  std::map<uint32_t, const NodeVerdict*> by_index;
  for (const NodeVerdict& node : nodes) by_index.emplace(node.node_index, &node);
  json islands = json::array();
  for (const PlanIsland& island : plan.islands) {
    json listed = json::array();
    for (const uint32_t node : island.nodes) {
      json entry = {{"index", node}};
      if (by_index.contains(node)) {
        entry["name"] = by_index[node]->node_name;
        entry["operator"] = by_index[node]->operator_type;
      }
      listed.push_back(std::move(entry));
    }
    islands.push_back(
        {{"device", island.device_key},
         {"nodes", std::move(listed)},
         {"after", island.after},
         {"estimated_start_us", static_cast<double>(island.estimated_start_ns) * 1e-3},
         {"estimated_us", static_cast<double>(island.estimated_duration_ns) * 1e-3},
         {"measured_start_us", static_cast<double>(island.measured_start_ns) * 1e-3},
         {"measured_us", static_cast<double>(island.measured_duration_ns) * 1e-3},
         {"copies", island.copies == kUntold ? json() : json(island.copies)}});
  }
  json cuts = json::array();
  for (const PlanCut& cut : plan.cuts) {
    const auto end = [](int64_t island) {
      return island == ONNXIFI_SDK_UNKNOWN ? json() : json(island);
    };
    cuts.push_back({{"value", cut.value_name},
                    {"from", end(cut.from_island)},
                    {"to", end(cut.to_island)},
                    {"bytes", cut.size_bytes},
                    {"copies", cut.copies}});
  }
  const json object = {{"islands", std::move(islands)}, {"cuts", std::move(cuts)}};
  return object.dump(1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace) + "\n";
}

std::string MakePlanDot(const GraphPlan& plan, const std::vector<NodeVerdict>& nodes) {
  const std::map<std::string, std::string> colors = ColorsOf(plan);
  std::string text =
      "digraph plan {\n  rankdir = LR\n  node [shape = box, style = filled, fontname = sans]\n"
      "  edge [fontname = sans, fontsize = 10]\n";
  auto out = std::back_inserter(text);
  fmt::format_to(out, "  label = \"{}\"\n", TitleOf(plan));
  for (size_t index = 0; index < plan.islands.size(); ++index) {
    std::string label;
    for (const std::string& line : LinesOf(plan, index, nodes)) label += EscapeDot(line) + "\\n";
    fmt::format_to(out, "  island{} [label = \"{}\", fillcolor = \"{}\"]\n", index, label,
                   colors.at(plan.islands[index].device_key));
  }
  const auto end = [](int64_t island, const char* caller) {
    return island == ONNXIFI_SDK_UNKNOWN ? std::string(caller) : fmt::format("island{}", island);
  };
  for (const auto& [ends, route] : RoutesOf(plan)) {
    fmt::format_to(out, "  {} -> {} [label = \"{}\"]\n", end(ends.first, "inputs"),
                   end(ends.second, "outputs"), LabelOf(route));
  }
  return text + "}\n";
}

std::string MakePlanSvg(const GraphPlan& plan, const std::vector<NodeVerdict>& nodes) {
  // Of a letter, at most in most fonts.
  constexpr int kLetter = 7;
  constexpr int kHeight = 122;
  constexpr int kGapX = 170;
  constexpr int kGapY = 36;
  constexpr int kMargin = 30;
  constexpr int kLine = 18;
  const std::map<std::string, std::string> colors = ColorsOf(plan);
  const std::vector<int> columns = ColumnsOf(plan);
  int box_width = 180;
  for (size_t index = 0; index < plan.islands.size(); ++index) {
    for (const std::string& line : LinesOf(plan, index, nodes)) {
      box_width = std::max(box_width, kLetter * static_cast<int>(line.size()) + 16);
    }
  }
  struct Corner {
    int x = 0;
    int y = 0;
  };
  std::vector<Corner> places;
  std::map<int, int> rows;
  int last_column = 0;
  int most_rows = 1;
  for (const int column : columns) {
    const int row = rows[column]++;
    last_column = std::max(last_column, column);
    most_rows = std::max(most_rows, row + 1);
    places.push_back(
        {kMargin + kGapX + column * (box_width + kGapX), kMargin + row * (kHeight + kGapY)});
  }
  const int width = 2 * kMargin + 2 * kGapX + (last_column + 1) * (box_width + kGapX) - kGapX;
  const int legend_y = kMargin + most_rows * (kHeight + kGapY);
  const int height = legend_y + kLine * static_cast<int>(colors.size()) + kMargin;
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" "
      "fill=\"white\"/>\n",
      width, height);
  auto out = std::back_inserter(text);
  for (const auto& [ends, route] : RoutesOf(plan)) {
    const bool is_input = ends.first == ONNXIFI_SDK_UNKNOWN;
    const bool is_output = ends.second == ONNXIFI_SDK_UNKNOWN;
    const Corner to = is_output ? Corner{} : places[static_cast<size_t>(ends.second)];
    const Corner from = is_input ? Corner{} : places[static_cast<size_t>(ends.first)];
    const int x1 = is_input ? to.x - kGapX + 10 : from.x + box_width;
    const int y1 = (is_input ? to.y : from.y) + kHeight / 2;
    const int x2 = is_output ? from.x + box_width + kGapX - 10 : to.x;
    const int y2 = (is_output ? from.y : to.y) + kHeight / 2 + (is_input || is_output ? 0 : 10);
    const int middle = (x1 + x2) / 2;
    fmt::format_to(out,
                   "<path d=\"M{} {} C{} {} {} {} {} {}\" fill=\"none\" stroke=\"#555\"/>\n"
                   "<circle cx=\"{}\" cy=\"{}\" r=\"3\" fill=\"#555\"/>\n"
                   "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"10\">{}</text>\n",
                   x1, y1, middle, y1, middle, y2, x2, y2, x2, y2, middle, (y1 + y2) / 2 - 5,
                   Escape((is_input    ? "in: "
                           : is_output ? "out: "
                                       : "") +
                          LabelOf(route)));
  }
  for (size_t index = 0; index < plan.islands.size(); ++index) {
    const Corner& place = places[index];
    fmt::format_to(out,
                   "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"{}\" "
                   "stroke=\"black\"/>\n",
                   place.x, place.y, box_width, kHeight, colors.at(plan.islands[index].device_key));
    int y = place.y;
    for (const std::string& line : LinesOf(plan, index, nodes)) {
      fmt::format_to(out, "<text x=\"{}\" y=\"{}\">{}</text>\n", place.x + 8, y += kLine,
                     Escape(line));
    }
  }
  fmt::format_to(out, "<text x=\"{}\" y=\"{}\">{}</text>\n", kMargin, kMargin - kLine / 2,
                 TitleOf(plan));
  int y = legend_y;
  for (const auto& [device, color] : colors) {
    fmt::format_to(out,
                   "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/>"
                   "<text x=\"{}\" y=\"{}\">{}</text>\n",
                   kMargin, y, color, kMargin + 18, y + 10, Escape(device));
    y += kLine;
  }
  return text + "</svg>\n";
}

base::Status WritePlan(const std::filesystem::path& file, const GraphPlan& plan,
                       const std::vector<NodeVerdict>& nodes) {
  using Maker = std::string (*)(const GraphPlan&, const std::vector<NodeVerdict>&);
  static const std::map<std::string, Maker> makers = {
      {".json", MakePlanJson}, {".dot", MakePlanDot}, {".svg", MakePlanSvg}};
  const auto maker = makers.find(file.extension().string());
  if (maker == makers.end()) {
    return {base::Code::kInvalidName,
            fmt::format("'{}' ends in none of .json, .dot and .svg.", file.string())};
  }
  if (!IsSound(plan)) {
    return {base::Code::kInternalError, "The library tells of a plan that is none."};
  }
  std::ofstream stream(file);
  stream << maker->second(plan, nodes);
  if (!stream.flush()) {
    return {base::Code::kInvalidName, fmt::format("'{}' cannot be written.", file.string())};
  }
  return base::Ok();
}

}  // namespace onnxifi::run
