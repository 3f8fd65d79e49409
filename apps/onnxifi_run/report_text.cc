// SPDX-License-Identifier: Apache-2.0
//
// Text and JSON of a run.

#include "apps/onnxifi_run/report_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "apps/onnxifi_run/run_times.h"
#include "apps/onnxifi_run/twin_text.h"
#include "client/comparison/float_format.h"
#include "client/node_table.h"

namespace onnxifi::run {
namespace {

using nlohmann::json;
using onnx_file::DenseTensor;
using onnx_file::FileValue;

// Names in a model may be no UTF-8.
std::string Dump(const json& object) {
  return object.dump(2, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace) + "\n";
}

// Lines and quotation marks within it are escaped.
std::string Quoted(const std::string& text) {
  return json(text).dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

double ValueAt(const DenseTensor& tensor, int64_t index) {
  return onnx_file::FactsOf(tensor.type).number_class == onnx_file::NumberClass::kComplex
             ? std::abs(comparison::LoadComplex(tensor.type, tensor.bytes, index))
             : comparison::LoadNumber(tensor.type, tensor.bytes, index);
}

void AppendNumbers(const DenseTensor& output, std::string& text) {
  auto out = std::back_inserter(text);
  if (output.element_count() == 0) return;
  const OutputSummary summary = Summarise(output);
  fmt::format_to(out, "  smallest {:.6g}, largest {:.6g}, mean {:.6g}", summary.smallest,
                 summary.largest, summary.mean);
  if (summary.not_finite_count != 0) {
    fmt::format_to(out, ", {} not finite", summary.not_finite_count);
  }
  text += "\n  largest values:";
  for (const int64_t index : summary.top) {
    fmt::format_to(out, "  [{}] {:.6g}", index, ValueAt(output, index));
  }
  text += "\n";
}

// So many elements of a value that is no tensor of numbers are printed.
constexpr size_t kMaxPrinted = 5;

// An element of a tensor, as it is printed among others.
json ElementAt(const DenseTensor& tensor, int64_t index) {
  if (tensor.type == onnx_file::ElementType::kString) {
    return tensor.strings[static_cast<size_t>(index)];
  }
  if (tensor.type == onnx_file::ElementType::kInt64) {  // keys of maps, among them
    int64_t number;
    std::memcpy(&number, tensor.bytes.data() + index * static_cast<int64_t>(sizeof(number)),
                sizeof(number));
    return number;
  }
  return ValueAt(tensor, index);
}

// The value, with as many of its elements as are printed.
json MakeValueJson(const FileValue& value) {
  json elements = json::array();
  for (size_t k = 0; k < std::min(value.elements.size(), kMaxPrinted); ++k) {
    elements.push_back(MakeValueJson(value.elements[k]));
  }
  json first = json::array();
  const auto count = static_cast<size_t>(value.tensor.element_count());
  const bool has_tensor =
      value.kind == FileValue::Kind::kTensor || value.kind == FileValue::Kind::kMap;
  for (size_t k = 0; has_tensor && k < std::min(count, kMaxPrinted); ++k) {
    first.push_back(ElementAt(value.tensor, static_cast<int64_t>(k)));
  }
  switch (value.kind) {
    case FileValue::Kind::kNothing:
      return {{"kind", "nothing"}};
    case FileValue::Kind::kTensor:
      return {{"kind", "tensor"},
              {"type", NameOf(value.tensor.type)},
              {"shape", value.tensor.extents},
              {"first", first}};
    case FileValue::Kind::kSequence:
      return {{"kind", "sequence"}, {"count", value.elements.size()}, {"first", elements}};
    case FileValue::Kind::kMap:
      return {{"kind", "map"},
              {"count", value.elements.size()},
              {"first_keys", first},
              {"first", elements}};
  }
  return nullptr;
}

// The same in a line.
std::string ValueText(const FileValue& value) {
  std::vector<std::string> parts;
  const size_t count = value.kind == FileValue::Kind::kTensor
                           ? static_cast<size_t>(value.tensor.element_count())
                           : value.elements.size();
  for (size_t k = 0; k < std::min(count, kMaxPrinted); ++k) {
    const auto element = [&] {
      const json printed = ElementAt(value.tensor, static_cast<int64_t>(k));
      if (printed.is_string()) return Quoted(printed.get<std::string>());
      return printed.is_number_integer() ? printed.dump()
                                         : fmt::format("{:.6g}", printed.get<double>());
    };
    switch (value.kind) {
      case FileValue::Kind::kMap:
        parts.push_back(fmt::format("{}: {}", element(), ValueText(value.elements[k])));
        break;
      case FileValue::Kind::kSequence:
        parts.push_back(ValueText(value.elements[k]));
        break;
      default:
        parts.push_back(element());
        break;
    }
  }
  if (count > kMaxPrinted) parts.push_back(fmt::format("and {} more", count - kMaxPrinted));
  const bool is_map = value.kind == FileValue::Kind::kMap;
  if (value.kind == FileValue::Kind::kNothing) return "nothing";
  if (value.kind == FileValue::Kind::kTensor && count == 1) return parts[0];
  return fmt::format("{}{}{}", is_map ? "{" : "[", fmt::join(parts, ", "), is_map ? "}" : "]");
}

void AppendOutput(const FileValue& output, std::string& text) {
  auto out = std::back_inserter(text);
  switch (output.kind) {
    case FileValue::Kind::kTensor:
      fmt::format_to(out, "Output '{}' {} {}\n", output.name, NameOf(output.tensor.type),
                     onnx_file::ToString(output.tensor.extents));
      if (output.is_of_numbers()) return AppendNumbers(output.tensor, text);
      break;
    case FileValue::Kind::kSequence:
      fmt::format_to(out, "Output '{}' sequence of {}\n", output.name, output.elements.size());
      break;
    case FileValue::Kind::kMap:
      fmt::format_to(out, "Output '{}' map of {}\n", output.name, output.elements.size());
      break;
    case FileValue::Kind::kNothing:
      fmt::format_to(out, "Output '{}' optional\n", output.name);
      break;
  }
  fmt::format_to(out, "  {}\n", ValueText(output));
}

bool HasPlacedNodes(const client::ModelAnswers& answers, const RunReport& report) {
  const auto places_any = [](const DeviceAnswer& device) {
    return std::ranges::any_of(device.nodes,
                               [](const auto& node) { return !node.placement.empty(); });
  };
  return !report.pinned.empty() || std::ranges::any_of(answers.devices, places_any);
}

// A part of the time to the first result, with its name for programs and for people.
struct Part {
  const char* key;
  const char* description;
  double FirstResult::*milliseconds;
};

constexpr std::array kParts = {
    Part{"probe_ms", "plugins tried in a child process (see --probe-limit)",
         &FirstResult::probe_ms},
    Part{"discover_ms", "library opened, device found", &FirstResult::discover_ms},
    Part{"read_ms", "model and inputs read", &FirstResult::read_ms},
    Part{"init_backend_ms", "device initialised", &FirstResult::init_backend_ms},
    Part{"init_graph_ms", "graph initialised", &FirstResult::init_graph_ms},
    Part{"infer_shapes_ms", "shapes of the outputs inferred", &FirstResult::infer_shapes_ms},
    Part{"bind_ms", "inputs and outputs bound", &FirstResult::bind_ms},
    Part{"first_run_ms", "first run", &FirstResult::first_run_ms}};

void AppendFirstResult(const FirstResult& times, std::string& text) {
  auto out = std::back_inserter(text);
  fmt::format_to(out, "First result after {:.3f} ms\n", times.total_ms());
  for (const Part& part : kParts) {
    fmt::format_to(out, "  {:>10.3f} ms  {}\n", times.*part.milliseconds, part.description);
  }
}

json MakeFirstResultJson(const FirstResult& times) {
  json object = {{"total_ms", times.total_ms()}};
  for (const Part& part : kParts) object[part.key] = times.*part.milliseconds;
  return object;
}

}  // namespace

OutputSummary Summarise(const DenseTensor& tensor) {
  OutputSummary summary;
  summary.smallest = std::numeric_limits<double>::infinity();
  summary.largest = -std::numeric_limits<double>::infinity();
  std::vector<int64_t> finite;
  double sum = 0;
  for (int64_t index = 0; index < tensor.element_count(); ++index) {
    const double value = ValueAt(tensor, index);
    if (!std::isfinite(value)) {
      ++summary.not_finite_count;
      continue;
    }
    finite.push_back(index);
    sum += value;
    summary.smallest = std::min(summary.smallest, value);
    summary.largest = std::max(summary.largest, value);
  }
  if (finite.empty()) {
    summary.smallest = summary.largest = std::numeric_limits<double>::quiet_NaN();
    summary.mean = std::numeric_limits<double>::quiet_NaN();
    return summary;
  }
  summary.mean = sum / static_cast<double>(finite.size());
  const auto last = finite.begin() + std::min<ptrdiff_t>(5, static_cast<ptrdiff_t>(finite.size()));
  std::partial_sort(finite.begin(), last, finite.end(), [&](int64_t left, int64_t right) {
    const double left_value = ValueAt(tensor, left);
    const double right_value = ValueAt(tensor, right);
    return left_value != right_value ? left_value > right_value : left < right;
  });
  summary.top.assign(finite.begin(), last);
  return summary;
}

std::string MakeText(const RunReport& report) {
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "Device {} ({})\n", report.device_key, report.device_name);
  if (report.device_key == "auto" && report.plan && !report.plan->islands.empty()) {
    std::set<std::string> keys;
    for (const PlanIsland& island : report.plan->islands) keys.insert(island.device_key);
    fmt::format_to(out, "Runs on {}\n", fmt::join(keys, ", "));
  }
  for (const DenseTensor& input : report.inputs) {
    fmt::format_to(out, "Input '{}' {} {}\n", input.name, NameOf(input.type),
                   onnx_file::ToString(input.extents));
  }
  for (const FileValue& output : report.outputs) AppendOutput(output, text);
  AppendFirstResult(report.first_result, text);
  fmt::format_to(out, "{} run{}: median {:.3f} ms, best {:.3f} ms\n", report.run_ms.size(),
                 report.run_ms.size() == 1 ? "" : "s", MedianOf(report.run_ms),
                 *std::ranges::min_element(report.run_ms));
  for (const BesideReport& other : report.beside) {
    fmt::format_to(out,
                   "Beside it on {}: first result after {:.3f} ms; median {:.3f} ms, best {:.3f} "
                   "ms; {} takes {:.3f} times as long\n",
                   other.device_key, other.first_result.total_ms(), MedianOf(other.run_ms),
                   *std::ranges::min_element(other.run_ms), report.device_key,
                   RatioOf(report.run_ms, other.run_ms));
  }
  for (size_t index = 0; index < report.differences.size(); ++index) {
    fmt::format_to(out, "Output '{}' {} (worst difference {:.3g} of the tolerance) {}\n",
                   report.outputs[index].name,
                   report.differences[index].empty() ? "is as expected" : "is NOT as expected",
                   report.worst_ratios[index], report.differences[index]);
  }
  if (report.profile) text += MakeProfileTable(*report.profile);
  return text;
}

// Why auto gave the whole model to one device.
std::string WhyWhole(const client::ModelAnswers& answers, const GraphPlan& plan,
                     const RunReport& report) {
  const PlanIsland& island = plan.islands.front();
  const std::string gave = fmt::format("auto gave the model to {}: ", island.device_key);
  if (HasPlacedNodes(answers, report)) {
    return gave + "all of its nodes are placed there, or cannot be parted from those that are.\n";
  }
  if (report.has_placement) return gave + "as the caller's placement says.\n";
  if (island.estimated_duration_ns != 0) {
    return gave + fmt::format("it is expected to take {:.3f} ms, less than any other plan.\n",
                              static_cast<double>(island.estimated_duration_ns) / 1e6);
  }
  for (const DeviceAnswer& device : answers.devices) {
    if (device.device_key == island.device_key && device.status == ONNXIFI_STATUS_FALLBACK) {
      return gave + "it emulates some of the nodes, and no device has kernels for all of them.\n";
    }
  }
  return gave +
         "the first of its order that takes every node without emulation. How long devices take "
         "was "
         "not measured (ONNXIFI_MEASURE=1 does).\n";
}

std::string MakeExplanationText(const client::ModelAnswers& answers, const RunReport* report) {
  client::NodeTableOptions options;
  const GraphPlan* const plan = report != nullptr && report->plan ? &*report->plan : nullptr;
  if (plan != nullptr) options.device_of = client::DevicesOfNodes(*plan, answers);
  if (report != nullptr) options.pinned = report->pinned;
  std::string text = client::MakeNodeTable(answers, options);
  const bool is_chosen = report != nullptr && report->device_key == "auto" &&
                         answers.devices.size() > 1 && plan != nullptr && !plan->islands.empty();
  if (!is_chosen) return text;
  const bool is_placed = HasPlacedNodes(answers, *report) || report->has_placement;
  const std::string twins = MakeTwinText(answers, *plan, is_placed);
  if (plan->islands.size() == 1) return text + WhyWhole(answers, *plan, *report) + twins;
  if (HasPlacedNodes(answers, *report)) {
    return text + fmt::format(
                      "auto cut the model into {} islands. Nodes that the model or the caller "
                      "places are where they are placed, together with nodes that cannot be "
                      "parted from them because nothing carries the values between them. Every "
                      "other node is where it would be if none were placed.\n{}",
                      plan->islands.size(), twins);
  }
  return text + fmt::format(
                    "auto cut the model into {} islands. Where another device runs a node "
                    "without emulation too, the whole is expected to take longer with the node "
                    "there, with what it takes to start islands and to carry values between "
                    "them.\n{}",
                    plan->islands.size(), twins);
}

std::string MakeRefusalJson(const client::ModelAnswers& answers, const std::string& error) {
  json object = {{"error", error}};
  object["explanation"] = client::MakeNodeJson(answers, /*device_of=*/{});
  return Dump(object);
}

std::string MakeJson(const RunReport& report) {
  json outputs = json::array();
  for (size_t index = 0; index < report.outputs.size(); ++index) {
    const FileValue& value = report.outputs[index];
    const DenseTensor& output = value.tensor;
    json object;
    if (value.is_of_numbers()) {
      object = {{"type", NameOf(output.type)}, {"shape", output.extents}};
    } else {
      object = MakeValueJson(value);
    }
    object["name"] = value.name;
    if (value.is_of_numbers() && output.element_count() != 0) {
      const OutputSummary summary = Summarise(output);
      json top = json::array();
      for (const int64_t position : summary.top) {
        top.push_back({{"index", position}, {"value", ValueAt(output, position)}});
      }
      object["smallest"] = summary.smallest;
      object["largest"] = summary.largest;
      object["mean"] = summary.mean;
      object["not_finite"] = summary.not_finite_count;
      object["top"] = std::move(top);
    }
    if (index < report.differences.size()) {
      object["as_expected"] = report.differences[index].empty();
      object["worst_ratio"] = report.worst_ratios[index];
      object["difference"] = report.differences[index];
    }
    outputs.push_back(std::move(object));
  }
  json object = {{"device", report.device_key},
                 {"device_name", report.device_name},
                 {"outputs", std::move(outputs)},
                 {"first_result", MakeFirstResultJson(report.first_result)},
                 {"init_ms", report.first_result.init_graph_ms},
                 {"median_ms", MedianOf(report.run_ms)},
                 {"best_ms", *std::ranges::min_element(report.run_ms)},
                 {"runs", report.run_ms.size()}};
  for (const BesideReport& other : report.beside) {
    object["beside"].push_back({{"device", other.device_key},
                                {"first_result", MakeFirstResultJson(other.first_result)},
                                {"init_ms", other.first_result.init_graph_ms},
                                {"median_ms", MedianOf(other.run_ms)},
                                {"best_ms", *std::ranges::min_element(other.run_ms)},
                                {"ratio", RatioOf(report.run_ms, other.run_ms)}});
  }
  if (report.counters) {
    object["counters"] = {{"lowerings", report.counters->lowerings},
                          {"bindings", report.counters->bindings},
                          {"allocations", report.counters->allocations},
                          {"copies", report.counters->copies},
                          {"kernel_builds", report.counters->kernel_builds},
                          {"runs", report.counters->runs},
                          {"waits", report.counters->waits},
                          {"recordings", report.counters->recordings}};
    // All bits are set where the library does not report it.
    if (report.counters->submissions != ~uint64_t{0}) {
      object["counters"]["submissions"] = report.counters->submissions;
    }
  }
  if (report.profile) object["profile"] = MakeProfileJson(*report.profile);
  if (report.answers) {
    const auto device_of = report.plan ? client::DevicesOfNodes(*report.plan, *report.answers)
                                       : std::map<uint32_t, std::string>();
    object["explanation"] = client::MakeNodeJson(*report.answers, device_of);
  }
  return Dump(object);
}

}  // namespace onnxifi::run
