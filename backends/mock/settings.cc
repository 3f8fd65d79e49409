// SPDX-License-Identifier: Apache-2.0
//
// Settings: one table of keys; a misspelt one would make a test pass for the wrong reason, so it is
// refused.

#include "backends/mock/settings.h"

#include <onnxifi/sdk.h>

#include <array>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace onnxifi::mock {
namespace {

using base::Code;
using base::Status;
using nlohmann::json;

onnxEnum DeviceType(const std::string& name) {
  if (name == "cpu") return ONNXIFI_DEVICE_TYPE_CPU;
  if (name == "gpu") return ONNXIFI_DEVICE_TYPE_GPU;
  if (name == "npu") return ONNXIFI_DEVICE_TYPE_NPU;
  throw std::invalid_argument("the device type '" + name + "' is none of cpu, gpu, npu");
}

using Setter = std::function<void(const json& value, Settings& settings)>;

template <typename T>
Setter Assign(T Settings::*member) {
  return [member](const json& value, Settings& settings) { settings.*member = value.get<T>(); };
}

// The file's number, opened.
Setter Open(std::shared_ptr<SharedNumber> Settings::*member) {
  return [member](const json& value, Settings& settings) {
    auto number = SharedNumber::Open(value.get<std::string>());
    if (!number.ok()) throw std::invalid_argument(number.status().Text());
    settings.*member = *std::move(number);
  };
}

const std::map<std::string, Setter>& Setters() {
  static const std::map<std::string, Setter> setters = {
      {"devices", Assign(&Settings::device_count)},
      {"type",
       [](const json& value, Settings& settings) {
         settings.device_type = DeviceType(value.get<std::string>());
       }},
      {"operators",
       [](const json& value, Settings& settings) {
         settings.operators = value.get<std::set<std::string>>();
       }},
      {"refused", Assign(&Settings::refused)},
      {"lies", Assign(&Settings::lies)},
      {"emulated", Assign(&Settings::emulated)},
      {"behind",
       [](const json& value, Settings& settings) {
         const auto name = value.get<std::string>();
         if (name != "opencl" && name != "vulkan") {
           throw std::invalid_argument("the interface " + value.dump() +
                                       " is neither opencl nor vulkan");
         }
         settings.memory_types = name == "opencl" ? uint64_t{ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER}
                                                  : ONNXIFI_SDK_MEMORY_TYPE_VULKAN_BUFFER;
       }},
      {"uuid", Assign(&Settings::uuid)},
      {"luid", Assign(&Settings::luid)},
      {"pci", [](const json& value,
                 Settings& settings) { settings.pci = value.get<std::array<uint64_t, 3>>(); }},
      {"misstates",
       [](const json& value, Settings& settings) {
         settings.misstates = value.get<std::set<std::string>>();
         for (const std::string& what : settings.misstates) {
           static const std::set<std::string> known = {"shapes", "types", "run shapes", "run types",
                                                       "kept"};
           if (!known.contains(what)) {
             throw std::invalid_argument("'" + what + "' is nothing that can be misstated");
           }
         }
       }},
      {"step_ms", Assign(&Settings::step_ms)},
      {"launch_ms", Assign(&Settings::launch_ms)},
      {"clock", Open(&Settings::clock)},
      {"gate", Open(&Settings::gate)},
      {"measured", Open(&Settings::measured)},
      {"gate_opens_at", Assign(&Settings::gate_opens_at)},
      {"init_ms", Assign(&Settings::init_ms)},
      {"memory_bytes", Assign(&Settings::memory_bytes)},
      {"fails_at_run", Assign(&Settings::fails_at_run)},
      {"vanishes_at_run", Assign(&Settings::vanishes_at_run)},
  };
  return setters;
}

Status Refuse(const std::string& reason) {
  return {Code::kInvalidProperty, "The mock's settings cannot be used: " + reason + "."};
}

}  // namespace

bool Settings::Claims(const std::string& operator_type) const {
  if (refused.contains(operator_type)) return false;
  return operator_type == "Constant" || !operators || operators->contains(operator_type);
}

bool Settings::Emulates(const std::string& operator_type) const {
  return operator_type != "Constant" &&
         (emulated.contains(operator_type) || emulated.contains("*"));
}

std::chrono::nanoseconds Settings::StepTime(const std::string& operator_type) const {
  auto found = step_ms.find(operator_type);
  if (found == step_ms.end() && operator_type != "Constant") found = step_ms.find("*");
  const double milliseconds = found == step_ms.end() ? 0 : found->second;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double, std::milli>(milliseconds));
}

base::Result<Settings> ParseSettings(std::string_view text) {
  try {
    const json file = json::parse(text);
    if (!file.is_object()) return Refuse("they are no JSON object");
    Settings settings;
    for (const auto& [key, value] : file.items()) {
      const auto setter = Setters().find(key);
      if (setter == Setters().end()) return Refuse("there is no key '" + key + "'");
      setter->second(value, settings);
    }
    if (settings.device_count < 1) return Refuse("there is no device");
    return settings;
  } catch (const std::exception& error) {
    return Refuse(error.what());
  }
}

base::Result<Settings> ReadSettings(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) return Settings();
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  return ParseSettings(text);
}

}  // namespace onnxifi::mock
