// SPDX-License-Identifier: Apache-2.0
//
// PluginFunction: a function of a plugin that can be called without harm. It is the one guard
// between libonnxifi and the code of plugins: no exception passes it, and a quarantined plugin is
// asked for nothing new.

#ifndef ONNXIFI_DISCOVERY_LIBRARY_PLUGIN_FUNCTION_H_
#define ONNXIFI_DISCOVERY_LIBRARY_PLUGIN_FUNCTION_H_

#include <onnx/onnxifi.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include "discovery/library/plugin_health.h"

namespace onnxifi::library {

// Whether a function is still called once its plugin is quarantined. Objects that the plugin made
// before are in use, so that their runs go on, are waited for and are released.
enum class Reach : uint8_t { kUntilQuarantine, kAlways };

// Empty by default; copies are cheap. The health that it is given must outlive it.
template <typename... Arguments>
class PluginFunction {
 public:
  using Pointer = onnxStatus(ONNXIFI_ABI*)(Arguments...);

  PluginFunction() = default;
  PluginFunction(Pointer function, const char* name, PluginHealth* health, Reach reach)
      : function_(function), name_(name), health_(health), reach_(reach) {}

  bool operator==(std::nullptr_t) const { return function_ == nullptr; }

  // BACKEND_UNAVAILABLE, without a call, for a quarantined plugin, and when the plugin throws,
  // which quarantines it. Whoever gets that status asks the plugin's health.
  onnxStatus operator()(Arguments... arguments) const {
    if (reach_ == Reach::kUntilQuarantine && health_->is_quarantined()) {
      return ONNXIFI_STATUS_BACKEND_UNAVAILABLE;
    }
    try {
      return function_(arguments...);
    } catch (const std::exception& exception) {
      Blame(std::string(": ") + exception.what());
    } catch (...) {
      Blame(" of a type that is not derived from std::exception.");
    }
    return ONNXIFI_STATUS_BACKEND_UNAVAILABLE;
  }

 private:
  void Blame(const std::string& what) const {
    health_->Quarantine("Function " + std::string(name_) + " of the plugin throws an exception" +
                        what);
  }

  Pointer function_ = nullptr;
  const char* name_ = "";
  PluginHealth* health_ = nullptr;
  Reach reach_ = Reach::kUntilQuarantine;
};

// Guards one of the interface's function pointers. Its type is what a member is declared with,
// decltype(Guarded(onnxWaitEventFunction())), since it is deduced here from a type with attributes,
// which is no argument of a template.
template <typename... Arguments>
PluginFunction<Arguments...> Guarded(onnxStatus(ONNXIFI_ABI* function)(Arguments...),
                                     const char* name = "", PluginHealth* health = nullptr,
                                     Reach reach = Reach::kUntilQuarantine) {
  return PluginFunction<Arguments...>(function, name, health, reach);
}

}  // namespace onnxifi::library

#endif  // ONNXIFI_DISCOVERY_LIBRARY_PLUGIN_FUNCTION_H_
