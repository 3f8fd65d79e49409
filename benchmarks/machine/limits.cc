// SPDX-License-Identifier: Apache-2.0
//
// Limits: the cache file, and what identifies a machine.

#include "benchmarks/machine/limits.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "backends/core/base/cache_folder.h"
#include "backends/core/base/fnv_hash.h"

namespace onnxifi::machine {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Status;
using nlohmann::json;

// Of the layout of the file and of how limits are measured; older files are measured anew.
constexpr int kFormat = 2;

// The value of a line "name : value" of the kernel's list of processors.
std::string ProcessorField(std::string_view name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with(name) || colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(' ', colon + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return {};
}

json ToJsonObject(const ThreadLimits& limits) {
  json copies = json::array();
  for (const CopyLimit& copy : limits.copies) {
    copies.push_back({{"size_bytes", copy.size_bytes}, {"gigabytes_per_s", copy.gigabytes_per_s}});
  }
  return {{"threads", limits.threads},
          {"float32_gflops", limits.float32_gflops},
          {"int8_gops", limits.int8_gops},
          {"read_gigabytes_per_s", limits.read_gigabytes_per_s},
          {"copies", std::move(copies)}};
}

}  // namespace

double ThreadLimits::BandwidthFor(int64_t size_bytes) const {
  if (copies.empty()) return 0;
  const auto large_enough = std::ranges::find_if(
      copies, [&](const CopyLimit& copy) { return 2 * copy.size_bytes >= size_bytes; });
  return large_enough != copies.end() ? large_enough->gigabytes_per_s
                                      : copies.back().gigabytes_per_s;
}

const ThreadLimits* Limits::For(int threads) const {
  const ThreadLimits* best = by_threads.empty() ? nullptr : &by_threads.front();
  for (const ThreadLimits& limits : by_threads) {
    if (limits.threads <= threads) best = &limits;
  }
  return best;
}

std::string ToJson(const Limits& limits) {
  json by_threads = json::array();
  for (const ThreadLimits& threads : limits.by_threads) by_threads.push_back(ToJsonObject(threads));
  const json object = {{"format", kFormat},
                       {"processor", limits.processor},
                       {"instructions", limits.instructions},
                       {"by_threads", std::move(by_threads)}};
  return object.dump(1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace) + "\n";
}

base::Result<Limits> FromJson(std::string_view text) {
  try {
    const json object = json::parse(text);
    if (object.at("format") != kFormat) {
      return Status(Code::kInvalidState,
                    fmt::format("The limits are of format {}; this program reads {}.",
                                object.at("format").dump(), kFormat));
    }
    Limits limits;
    limits.processor = object.at("processor");
    limits.instructions = object.at("instructions");
    for (const json& entry : object.at("by_threads")) {
      ThreadLimits& threads = limits.by_threads.emplace_back();
      threads.threads = entry.at("threads");
      threads.float32_gflops = entry.at("float32_gflops");
      threads.int8_gops = entry.at("int8_gops");
      threads.read_gigabytes_per_s = entry.at("read_gigabytes_per_s");
      for (const json& copy : entry.at("copies")) {
        threads.copies.push_back({copy.at("size_bytes"), copy.at("gigabytes_per_s")});
      }
    }
    return limits;
  } catch (const json::exception& error) {
    return Status(Code::kInvalidState, fmt::format("The limits cannot be read: {}.", error.what()));
  }
}

std::string ProcessorName() {
  std::string name = ProcessorField("model name");
  return name.empty() ? "unknown processor" : name;
}

std::string MachineKey() {
  const std::string all = fmt::format("{}|{}|{}|{}", ProcessorName(), ProcessorField("stepping"),
                                      UsableProcessors(), ProcessorField("flags"));
  return base::HashName(base::FnvHash(all));
}

int UsableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

int ThreadsInUse() {
  if (const char* text = std::getenv("ONNXIFI_NUM_THREADS")) {
    int count = 0;
    const char* const end = text + std::strlen(text);
    const auto [last, error] = std::from_chars(text, end, count);
    if (error == std::errc() && last == end && count >= 1) return count;
  }
  return UsableProcessors();
}

fs::path CachePath() {
  const fs::path root = base::ToolCacheFolder();
  return root.empty() ? root : root / "machine" / (MachineKey() + ".json");
}

base::Result<Limits> ReadCached() {
  const fs::path path = CachePath();
  std::ifstream file(path);
  if (path.empty() || !file) {
    return Status(Code::kInvalidName, "The limits of this machine have not been measured.");
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  base::Result<Limits> limits = FromJson(text);
  if (!limits.ok()) {
    return std::move(limits).status().Context(fmt::format("while reading '{}'", path.string()));
  }
  return limits;
}

Status WriteCached(const Limits& limits) {
  const fs::path path = CachePath();
  if (path.empty()) {
    return Status(
        Code::kInvalidName,
        "There is no cache folder: none of ONNXIFI_CACHE_HOME, XDG_CACHE_HOME and HOME is "
        "set.");
  }
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  // Readers see the old file or the new one.
  const fs::path part = path.string() + ".part";
  {
    std::ofstream file(part);
    file << ToJson(limits);
    if (!file.flush()) {
      return Status(Code::kInvalidName, fmt::format("'{}' cannot be written.", part.string()));
    }
  }
  fs::rename(part, path, error);
  if (error) {
    return Status(Code::kInvalidName,
                  fmt::format("'{}' cannot be written: {}.", path.string(), error.message()));
  }
  return base::Ok();
}

}  // namespace onnxifi::machine
