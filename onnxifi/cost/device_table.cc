// SPDX-License-Identifier: Apache-2.0
//
// DeviceTable: a line for each number; the last is the digest of all before it.

#include "onnxifi/cost/device_table.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

namespace onnxifi::cost {
namespace {

constexpr std::string_view kHeader = "onnxifi costs 1";

// Takes the first word, or the first line, off `text`.
std::string_view Take(std::string_view& text, char end) {
  const size_t size = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  return taken;
}

template <typename T>
bool Parse(std::string_view word, T& number, int base = 10) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, base);
  return error == std::errc() && end == word.data() + word.size() && !word.empty();
}

bool ParseTime(std::string_view word, int64_t& time) { return Parse(word, time) && time >= 0; }

bool ParseDigest(std::string_view word, split::Digest& digest) {
  constexpr size_t kHalf = 16;
  return word.size() == 2 * kHalf && Parse(word.substr(0, kHalf), digest.high, kHalf) &&
         Parse(word.substr(kHalf), digest.low, kHalf);
}

bool ParseTimes(std::string_view line, std::map<split::Digest, int64_t>& times) {
  split::Digest digest;
  int64_t time = 0;
  if (!ParseDigest(Take(line, ' '), digest) || !ParseTime(line, time)) return false;
  return times.emplace(digest, time).second;
}

bool ParseEdges(std::string_view line, DeviceTable& table) {
  partition::DeviceCost cost;
  for (int64_t* number : {&cost.launch_ns, &cost.enter.latency_ns, &cost.enter.picoseconds_per_byte,
                          &cost.leave.latency_ns, &cost.leave.picoseconds_per_byte}) {
    if (!ParseTime(Take(line, ' '), *number)) return false;
  }
  table.edges = cost;
  return line.empty();
}

std::string DigestOf(std::string_view text) { return split::Digester().Add(text).Get().Text(); }

}  // namespace

void DeviceTable::Merge(const DeviceTable& newer) {
  if (newer.edges) edges = newer.edges;
  for (const auto& [digest, time] : newer.node_ns) node_ns.insert_or_assign(digest, time);
  for (const auto& [digest, time] : newer.run_ns) run_ns.insert_or_assign(digest, time);
}

std::string ToText(const DeviceTable& table, std::string_view identity) {
  std::string text(kHeader);
  text += "\ndevice " + std::string(identity) + "\n";
  if (table.edges) {
    text += "edges";
    const partition::DeviceCost& cost = *table.edges;
    for (const int64_t number :
         {cost.launch_ns, cost.enter.latency_ns, cost.enter.picoseconds_per_byte,
          cost.leave.latency_ns, cost.leave.picoseconds_per_byte}) {
      text += " " + std::to_string(number);
    }
    text += "\n";
  }
  const auto add = [&](const char* kind, const std::map<split::Digest, int64_t>& times) {
    for (const auto& [digest, time] : times) {
      text += kind + digest.Text() + " " + std::to_string(time) + "\n";
    }
  };
  add("node ", table.node_ns);
  add("run ", table.run_ns);
  return text + "end " + DigestOf(text) + "\n";
}

std::optional<DeviceTable> FromText(std::string_view text, std::string_view identity) {
  constexpr std::string_view kEnd = "\nend ";
  const size_t end = text.rfind(kEnd);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view body = text.substr(0, end + 1);
  if (text.substr(end + kEnd.size()) != DigestOf(body) + "\n") return std::nullopt;
  std::string_view rest = body;
  if (Take(rest, '\n') != kHeader) return std::nullopt;
  if (Take(rest, '\n') != "device " + std::string(identity)) return std::nullopt;
  DeviceTable table;
  while (!rest.empty()) {
    std::string_view line = Take(rest, '\n');
    const std::string_view kind = Take(line, ' ');
    const bool is_known = kind == "edges"  ? ParseEdges(line, table)
                          : kind == "node" ? ParseTimes(line, table.node_ns)
                          : kind == "run"  ? ParseTimes(line, table.run_ns)
                                           : false;
    if (!is_known) return std::nullopt;
  }
  return table;
}

}  // namespace onnxifi::cost
