// SPDX-License-Identifier: Apache-2.0
//
// NodeTable: devices may tell of different nodes, so that rows are made of what any of them tells.
// What is left out is counted.

#include "client/node_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "client/status_names.h"

namespace onnxifi::client {
namespace {

using nlohmann::json;

// What somebody reads before asking for all of it.
constexpr size_t kMaxRows = 40;
constexpr size_t kMaxReasons = 30;
constexpr size_t kMaxRanges = 8;
constexpr size_t kMaxNameBytes = 48;
constexpr size_t kMaxLines = 8;
// Of auto's answer, which repeats what the devices say.
constexpr size_t kMaxLinesOfAuto = 1;
constexpr std::string_view kHint = "onnxifi_info --ops MODEL --verbose lists all";

// What one device says of one node.
struct Cell {
  bool is_told = false;
  bool is_emulated = false;
  std::vector<uint32_t> reasons;  // none: it runs it

  bool runs() const { return is_told && reasons.empty(); }
  bool refuses() const { return is_told && !reasons.empty(); }
};

struct Row {
  uint32_t node = 0;
  std::string operator_type;
  std::string name;
  bool is_work = true;
  std::string placement;
  std::vector<Cell> cells;  // by device

  bool is_refused() const { return std::ranges::any_of(cells, &Cell::refuses); }
};

struct Reason {
  onnxStatus status = ONNXIFI_STATUS_SUCCESS;
  std::string sentence;  // of the first node
  std::set<std::string> operators;
  // By device, ascending.
  std::vector<std::vector<uint32_t>> nodes;
};

struct Facts {
  std::vector<Row> rows;  // by position in graph.node
  std::map<uint32_t, Reason> reasons;
  size_t given_count = 0;
};

Facts Collect(const std::vector<DeviceAnswer>& devices) {
  Facts facts;
  std::map<uint32_t, Row> rows;
  for (size_t device = 0; device < devices.size(); ++device) {
    for (const NodeAnswer& answer : devices[device].nodes) {
      const NodeVerdict& verdict = answer.verdict;
      Row& row = rows[verdict.node_index];
      row.node = verdict.node_index;
      row.operator_type = verdict.domain == "ai.onnx" || verdict.domain.empty()
                              ? verdict.operator_type
                              : verdict.domain + "." + verdict.operator_type;
      row.name = verdict.node_name;
      row.is_work = answer.role == ONNXIFI_SDK_NODE_WORK;
      row.placement = answer.placement;
      row.cells.resize(devices.size());
      row.cells[device].is_told = true;
      if (verdict.status == ONNXIFI_STATUS_FALLBACK) row.cells[device].is_emulated = true;
      if (IsAcceptance(verdict.status)) continue;
      row.cells[device].reasons.push_back(answer.reason);
      Reason& reason = facts.reasons[answer.reason];
      if (reason.sentence.empty()) reason.sentence = verdict.sentence;
      reason.status = verdict.status;
      reason.operators.insert(row.operator_type);
      reason.nodes.resize(devices.size());
      std::vector<uint32_t>& nodes = reason.nodes[device];
      if (nodes.empty() || nodes.back() != verdict.node_index) nodes.push_back(verdict.node_index);
    }
  }
  for (auto& [node, row] : rows) {
    facts.given_count += row.is_work ? 0U : 1U;
    facts.rows.push_back(std::move(row));
  }
  return facts;
}

std::string Count(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// "3, 7 to 9 and 4 more".
std::string RangesOf(const std::vector<uint32_t>& nodes, bool lists_all) {
  std::string text;
  size_t ranges = 0;
  for (size_t first = 0; first < nodes.size();) {
    if (ranges == kMaxRanges && !lists_all) {
      return text + fmt::format(" and {} more", nodes.size() - first);
    }
    size_t last = first;
    while (last + 1 < nodes.size() && nodes[last + 1] == nodes[last] + 1) ++last;
    ++ranges;
    text += text.empty() ? "" : ", ";
    text += last == first ? fmt::format("{}", nodes[first])
                          : fmt::format("{} to {}", nodes[first], nodes[last]);
    first = last + 1;
  }
  return text;
}

// The end tells more of a long name than its middle. No character of UTF-8 is cut.
std::string Shorten(const std::string& name, bool lists_all) {
  if (lists_all || name.size() <= kMaxNameBytes) return name;
  const auto is_inside = [&](size_t place) {
    return (static_cast<unsigned char>(name[place]) & 0xC0) == 0x80;
  };
  size_t head = 12;
  size_t tail = name.size() - (kMaxNameBytes - head - 3);
  while (head > 0 && is_inside(head)) --head;
  while (tail + 1 < name.size() && is_inside(tail)) ++tail;
  return name.substr(0, head) + "..." + name.substr(tail);
}

// The sentence with its context lines, each indented.
void AppendSentence(const std::string& sentence, std::string_view indent, size_t most_lines,
                    std::string& text) {
  size_t line_count = 0;
  for (size_t start = 0; start <= sentence.size();) {
    const size_t end = std::min(sentence.find('\n', start), sentence.size());
    if (line_count == most_lines) {
      const auto left =
          std::count(sentence.begin() + static_cast<ptrdiff_t>(start), sentence.end(), '\n') + 1;
      text += fmt::format("{}and {} ({}).\n", indent, Count(static_cast<size_t>(left), "more line"),
                          kHint);
      return;
    }
    text += fmt::format("{}{}\n", indent, sentence.substr(start, end - start));
    ++line_count;
    start = end + 1;
  }
}

void TrimEnd(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

using Line = std::vector<std::string>;

// Columns as wide as what is in them.
void AppendColumns(const std::vector<Line>& lines, std::string& text) {
  std::vector<size_t> widths;
  for (const Line& line : lines) {
    widths.resize(std::max(widths.size(), line.size()), 0);
    for (size_t column = 0; column < line.size(); ++column) {
      widths[column] = std::max(widths[column], line[column].size());
    }
  }
  for (const Line& line : lines) {
    std::string row;
    for (size_t column = 0; column < line.size(); ++column) {
      row += fmt::format("{:<{}}  ", line[column], widths[column]);
    }
    TrimEnd(row);
    text += row + "\n";
  }
}

class Table {
 public:
  Table(const ModelAnswers& answers, const NodeTableOptions& options)
      : answers_(answers), options_(options), facts_(Collect(answers.devices)) {}

  std::string Make() {
    AppendHead();
    AppendRows();
    AppendOperators();
    AppendReasons();
    AppendDevices();
    return std::move(text_);
  }

 private:
  size_t work_count() const { return facts_.rows.size() - facts_.given_count; }

  void AppendHead() {
    if (facts_.rows.empty()) return;
    text_ += Count(work_count(), "node");
    if (facts_.given_count > 0) {
      text_ += fmt::format(
          "; {} more that no device is asked about: constants, shapes that the model fixes, what "
          "nobody reads",
          facts_.given_count);
    }
    text_ += ".\n\n";
  }

  std::string CellOf(const Row& row, size_t device) const {
    const Cell& cell = row.cells[device];
    if (!row.is_work) return "given";
    if (cell.refuses()) {
      std::string numbers;
      for (const uint32_t reason : cell.reasons) {
        numbers += (numbers.empty() ? "" : ",") + std::to_string(reason);
      }
      return "no [" + numbers + "]";
    }
    const auto place = options_.device_of.find(row.node);
    if (place != options_.device_of.end() && place->second == answers_.devices[device].device_key) {
      return "here";
    }
    if (cell.is_emulated) return "emulated";
    return cell.is_told ? "yes" : "-";
  }

  Line HeadLine(Line line) const {
    for (const DeviceAnswer& device : answers_.devices) line.push_back(device.device_key);
    return line;
  }

  // Nodes that somebody refuses, or all.
  void AppendRows() {
    std::vector<Line> lines;
    size_t refused_count = 0;
    for (const Row& row : facts_.rows) {
      refused_count += row.is_refused() ? 1U : 0U;
      const auto pin = options_.pinned.find(row.node);
      const bool is_placed = pin != options_.pinned.end() || !row.placement.empty();
      const bool is_listed =
          options_.lists_all || is_placed || (row.is_refused() && refused_count <= kMaxRows);
      if (!is_listed) continue;
      if (lines.empty()) lines.push_back(HeadLine({"NODE", "OPERATOR", "NAME"}));
      Line& line = lines.emplace_back();
      line = {std::to_string(row.node), row.operator_type, Shorten(row.name, options_.lists_all)};
      for (size_t device = 0; device < row.cells.size(); ++device) {
        line.push_back(CellOf(row, device));
        const std::vector<uint32_t>& reasons = row.cells[device].reasons;
        shown_reasons_.insert(reasons.begin(), reasons.end());
      }
      if (!row.placement.empty()) line.push_back("placed on " + row.placement + " by the model");
      if (pin != options_.pinned.end()) {
        line.push_back("placed on " + pin->second + " by the caller");
      }
    }
    AppendColumns(lines, text_);
    if (refused_count > kMaxRows && !options_.lists_all) {
      text_ +=
          fmt::format("{} more that a device refuses ({}).\n", refused_count - kMaxRows, kHint);
    }
    if (!lines.empty()) text_ += "\n";
  }

  // How many nodes of each operator each device runs, where they are not all.
  void AppendOperators() {
    struct Counts {
      size_t nodes = 0;
      // By device.
      std::vector<size_t> told;
      std::vector<size_t> runs;
    };
    std::map<std::string, Counts> operators;
    for (const Row& row : facts_.rows) {
      if (!row.is_work) continue;
      Counts& counts = operators[row.operator_type];
      ++counts.nodes;
      counts.told.resize(answers_.devices.size());
      counts.runs.resize(answers_.devices.size());
      for (size_t device = 0; device < row.cells.size(); ++device) {
        counts.told[device] += row.cells[device].is_told ? 1U : 0U;
        counts.runs[device] += row.cells[device].runs() ? 1U : 0U;
      }
    }
    std::vector<Line> lines;
    size_t left_out = 0;
    for (const auto& [name, counts] : operators) {
      const bool is_mixed = counts.runs != counts.told;
      if (!is_mixed && !options_.lists_all) continue;
      if (lines.size() > kMaxRows && !options_.lists_all) {
        ++left_out;
        continue;
      }
      if (lines.empty()) lines.push_back(HeadLine({"OPERATOR", "NODES"}));
      Line& line = lines.emplace_back();
      line = {name, std::to_string(counts.nodes)};
      for (size_t device = 0; device < counts.runs.size(); ++device) {
        const size_t runs = counts.runs[device];
        const size_t told = counts.told[device];
        line.push_back(told == 0      ? "-"
                       : runs == told ? "all"
                       : runs == 0    ? "none"
                                      : fmt::format("{} of {}", runs, told));
      }
    }
    AppendColumns(lines, text_);
    if (left_out > 0) {
      text_ +=
          fmt::format("{} more that a device refuses ({}).\n", Count(left_out, "operator"), kHint);
    }
    if (!lines.empty()) text_ += "\n";
  }

  void AppendReasons() {
    size_t listed_count = 0;
    size_t left_out = 0;
    // Those that rows point to come whatever their number.
    size_t others = kMaxReasons - std::min(kMaxReasons, shown_reasons_.size());
    for (const auto& [number, reason] : facts_.reasons) {
      if (!options_.lists_all && !shown_reasons_.contains(number)) {
        if (others == 0) {
          ++left_out;
          continue;
        }
        --others;
      }
      ++listed_count;
      text_ += fmt::format("[{}] {}, {}, {}\n", number, StatusName(reason.status),
                           OperatorsOf(reason), PlacesOf(reason));
      AppendSentence(reason.sentence, "    ", MaxLines(kMaxLines), text_);
    }
    if (left_out > 0) {
      text_ += fmt::format("{} more ({}).\n", Count(left_out, "reason"), kHint);
    }
    if (listed_count > 0) text_ += "\n";
  }

  std::string OperatorsOf(const Reason& reason) const {
    constexpr size_t kMaxOperators = 6;
    std::string text;
    size_t count = 0;
    for (const std::string& name : reason.operators) {
      if (count == kMaxOperators && !options_.lists_all) {
        return text + fmt::format(" and {} more", reason.operators.size() - count);
      }
      ++count;
      text += (text.empty() ? "" : " ") + name;
    }
    return text;
  }

  // "2 nodes (3, 7) on a:0 and b:0; 1 node (3) on c:0".
  std::string PlacesOf(const Reason& reason) const {
    std::string text;
    std::vector<bool> is_told(reason.nodes.size(), false);
    for (size_t device = 0; device < reason.nodes.size(); ++device) {
      const std::vector<uint32_t>& nodes = reason.nodes[device];
      if (nodes.empty() || is_told[device]) continue;
      std::string keys;
      for (size_t other = device; other < reason.nodes.size(); ++other) {
        if (reason.nodes[other] != nodes) continue;
        is_told[other] = true;
        keys += (keys.empty() ? "" : " and ") + answers_.devices[other].device_key;
      }
      text += text.empty() ? "" : "; ";
      text += fmt::format("{} ({}) on {}", Count(nodes.size(), "node"),
                          RangesOf(nodes, options_.lists_all), keys);
    }
    return text;
  }

  void AppendDevices() {
    for (size_t device = 0; device < answers_.devices.size(); ++device) AppendDevice(device);
    if (answers_.chosen) {
      text_ += answers_.chosen->device_key + ": ";
      AppendWhole(*answers_.chosen, MaxLines(kMaxLinesOfAuto));
    }
  }

  void AppendDevice(size_t device) {
    const DeviceAnswer& answer = answers_.devices[device];
    text_ += answer.device_key + ": ";
    std::vector<uint32_t> has;
    size_t told_count = 0;
    size_t runs_count = 0;
    for (const Row& row : facts_.rows) {
      if (!row.is_work) continue;
      told_count += row.cells[device].is_told ? 1U : 0U;
      runs_count += row.cells[device].runs() ? 1U : 0U;
      const auto place = options_.device_of.find(row.node);
      if (place != options_.device_of.end() && place->second == answer.device_key) {
        has.push_back(row.node);
      }
    }
    if (told_count > 0) {
      text_ += fmt::format("runs {} of {}", runs_count, Count(told_count, "node"));
      if (answer.nodes_told == ONNXIFI_SDK_NODES_ASKED_ALONE) text_ += ", each asked by itself";
      if (!has.empty()) {
        text_ += fmt::format(", has {} ({})", has.size(), RangesOf(has, options_.lists_all));
      } else if (!options_.device_of.empty()) {
        text_ += ", has none";
      }
      text_ += "; ";
    } else if (!answer.runs_model()) {
      text_ += "tells of no nodes; ";
    }
    AppendWhole(answer, MaxLines(kMaxLines));
  }

  // What it says of the model, by the number of the reason where that has been told.
  void AppendWhole(const DeviceAnswer& answer, size_t most_lines) {
    if (answer.runs_model()) {
      text_ += answer.status == ONNXIFI_STATUS_FALLBACK ? "runs the model, emulating nodes.\n"
                                                        : "runs the model.\n";
      return;
    }
    const auto first_line = [](const std::string& text) {
      return std::string_view(text).substr(0, text.find('\n'));
    };
    for (const NodeAnswer& node : answer.nodes) {
      if (node.reason == 0 || answer.sentence.empty() ||
          first_line(node.verdict.sentence) != first_line(answer.sentence)) {
        continue;
      }
      text_ += fmt::format("not the model ({}, [{}]).\n", StatusName(answer.status), node.reason);
      return;
    }
    text_ += fmt::format("not the model ({}):\n", StatusName(answer.status));
    AppendSentence(answer.sentence.empty() ? "It gives no reason." : answer.sentence, "    ",
                   most_lines, text_);
  }

  size_t MaxLines(size_t where_short) const {
    return options_.lists_all ? std::string::npos : where_short;
  }

  const ModelAnswers& answers_;
  const NodeTableOptions& options_;
  const Facts facts_;
  std::set<uint32_t> shown_reasons_;
  std::string text_;
};

json JsonOf(const DeviceAnswer& answer) {
  return {{"key", answer.device_key},
          {"status", StatusName(answer.status)},
          {"sentence", answer.sentence},
          {"runs_model", answer.runs_model()},
          {"physical_device", answer.physical_device}};
}

std::string NameOfNodesTold(uint32_t nodes_told) {
  switch (nodes_told) {
    case ONNXIFI_SDK_NODES_EXPLAINED:
      return "explained";
    case ONNXIFI_SDK_NODES_ASKED_ALONE:
      return "asked alone";
    default:
      return "not told";
  }
}

}  // namespace

std::string MakeNodeTable(const ModelAnswers& answers, const NodeTableOptions& options) {
  return Table(answers, options).Make();
}

json MakeNodeJson(const ModelAnswers& answers, const std::map<uint32_t, std::string>& device_of) {
  const Facts facts = Collect(answers.devices);
  json object = json::object();
  json& devices = object["devices"] = json::array();
  for (size_t device = 0; device < answers.devices.size(); ++device) {
    json told = JsonOf(answers.devices[device]);
    size_t runs_count = 0;
    size_t told_count = 0;
    for (const Row& row : facts.rows) {
      if (!row.is_work) continue;
      told_count += row.cells[device].is_told ? 1U : 0U;
      runs_count += row.cells[device].runs() ? 1U : 0U;
    }
    told["nodes_told"] = NameOfNodesTold(answers.devices[device].nodes_told);
    told["node_count"] = told_count;
    told["runs_count"] = runs_count;
    devices.push_back(std::move(told));
  }
  if (answers.chosen) object["auto"] = JsonOf(*answers.chosen);
  json& nodes = object["nodes"] = json::array();
  for (const Row& row : facts.rows) {
    json node = {{"index", row.node},
                 {"operator", row.operator_type},
                 {"name", row.name},
                 {"is_work", row.is_work}};
    if (!row.placement.empty()) node["placement"] = row.placement;
    const auto place = device_of.find(row.node);
    if (place != device_of.end()) node["device"] = place->second;
    json& runs = node["runs"] = json::array();
    json& refuses = node["refuses"] = json::object();
    for (size_t device = 0; device < row.cells.size(); ++device) {
      const Cell& cell = row.cells[device];
      const std::string& key = answers.devices[device].device_key;
      if (cell.runs() && row.is_work) runs.push_back(key);
      if (cell.refuses()) refuses[key] = cell.reasons;
    }
    nodes.push_back(std::move(node));
  }
  json& reasons = object["reasons"] = json::array();
  for (const auto& [number, reason] : facts.reasons) {
    json told = {{"number", number},
                 {"status", StatusName(reason.status)},
                 {"sentence", reason.sentence},
                 {"operators", reason.operators},
                 {"nodes", json::object()}};
    for (size_t device = 0; device < reason.nodes.size(); ++device) {
      if (!reason.nodes[device].empty()) {
        told["nodes"][answers.devices[device].device_key] = reason.nodes[device];
      }
    }
    reasons.push_back(std::move(told));
  }
  return object;
}

}  // namespace onnxifi::client
