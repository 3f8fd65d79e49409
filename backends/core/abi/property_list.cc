// SPDX-License-Identifier: Apache-2.0
//
// Property lists: a walk over pairs. A value may be 0, so only a key of 0 ends the list.

#include "backends/core/abi/property_list.h"

#include <string>
#include <string_view>

namespace onnxifi::abi {

using base::Code;
using base::Status;

namespace {

base::Result<bool> ReadSwitch(std::string_view name, uint64_t value) {
  if (value <= 1) return value == 1;
  return Status(Code::kInvalidProperty, "The " + std::string(name) + " property is " +
                                            std::to_string(value) + "; it is 0 or 1.");
}

base::Result<tensor::Precision> ReadPrecision(uint64_t value) {
  using tensor::Precision;
  static_assert(static_cast<int>(Precision::kFloat32) == ONNXIFI_SDK_PRECISION_FLOAT32 &&
                static_cast<int>(Precision::kTf32) == ONNXIFI_SDK_PRECISION_TF32 &&
                static_cast<int>(Precision::kBfloat16) == ONNXIFI_SDK_PRECISION_BFLOAT16 &&
                static_cast<int>(Precision::kFloat16) == ONNXIFI_SDK_PRECISION_FLOAT16);
  if (value <= ONNXIFI_SDK_PRECISION_FLOAT16) return static_cast<Precision>(value);
  std::string sentence =
      "The precision property is " + std::to_string(value) + "; the precisions are";
  for (uint64_t known = 0; known <= ONNXIFI_SDK_PRECISION_FLOAT16; ++known) {
    sentence += (known == 0 ? " " : ", ") + std::to_string(known) + " (" +
                std::string(Name(static_cast<Precision>(known))) + ")";
  }
  return Status(Code::kInvalidProperty, sentence + ".");
}

}  // namespace

base::Result<BackendProperties> ReadBackendProperties(const uint64_t* list, const BackendId& id) {
  BackendProperties properties;
  if (list == nullptr) return properties;
  for (; list[0] != ONNXIFI_BACKEND_PROPERTY_NONE; list += 2) {
    const uint64_t key = list[0];
    const bool is_known = key == ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION ||
                          key == ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL || id.TakesBackendProperty(key);
    if (!is_known) {
      return Status(Code::kUnsupportedProperty, "Backend property " + std::to_string(key) +
                                                    " is not known to device '" + id.key() + "'.");
    }
    const uint64_t value = list[1];
    if (key == ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION) {
      if (value > ONNXIFI_OPTIMIZATION_LOW_DELAY) {
        return Status(Code::kInvalidProperty,
                      "Optimisation target " + std::to_string(value) + " exceeds the largest (" +
                          std::to_string(ONNXIFI_OPTIMIZATION_LOW_DELAY) + ").");
      }
      properties.optimization = value;
    } else if (key == ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL) {
      if (value < ONNXIFI_LOG_LEVEL_DEBUG || value > ONNXIFI_LOG_LEVEL_ERROR) {
        return Status(Code::kInvalidProperty, "Log level " + std::to_string(value) +
                                                  " lies outside the range of " +
                                                  std::to_string(ONNXIFI_LOG_LEVEL_DEBUG) + " to " +
                                                  std::to_string(ONNXIFI_LOG_LEVEL_ERROR) + ".");
      }
      properties.log_level = static_cast<base::LogLevel>(value);
    }
    properties.given.push_back({key, value});
  }
  return properties;
}

base::Result<GraphProperties> ReadGraphProperties(const uint64_t* list, const BackendId& id) {
  // Callers built for the foxi fork pass bare flags; the flag they use is 4.
  constexpr uint64_t kFoxiAheadOfTime = 4;
  GraphProperties properties;
  if (list == nullptr) return properties;
  for (; list[0] != ONNXIFI_GRAPH_PROPERTY_NONE; list += 2) {
    const uint64_t key = list[0];
    if (!id.TakesGraphProperty(key)) {
      std::string sentence =
          "Graph property " + std::to_string(key) + " is not known to device '" + id.key() + "'.";
      if (key == kFoxiAheadOfTime) {
        sentence += " It is what callers built with the headers of the foxi fork pass.";
      }
      return Status(Code::kUnsupportedProperty, std::move(sentence));
    }
    const uint64_t value = list[1];
    if (key == ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER) {
      const char* folder = reinterpret_cast<const char*>(static_cast<uintptr_t>(value));
      if (folder == nullptr || folder[0] == '\0') {
        return Status(Code::kInvalidProperty, "The base folder of the model is an empty path.");
      }
      properties.base_folder = folder;
    } else if (key == ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE) {
      ONNXIFI_ASSIGN_OR_RETURN(properties.is_profiled, ReadSwitch("profile", value));
    } else if (key == ONNXIFI_SDK_GRAPH_PROPERTY_VALUES) {
      ONNXIFI_ASSIGN_OR_RETURN(properties.takes_values, ReadSwitch("values", value));
    } else if (key == ONNXIFI_SDK_GRAPH_PROPERTY_FAST_ALGORITHMS) {
      ONNXIFI_ASSIGN_OR_RETURN(properties.has_fast_algorithms,
                               ReadSwitch("fast algorithms", value));
    } else if (key == ONNXIFI_SDK_GRAPH_PROPERTY_PRECISION) {
      ONNXIFI_ASSIGN_OR_RETURN(properties.precision, ReadPrecision(value));
    } else if (key == ONNXIFI_SDK_GRAPH_PROPERTY_DYNAMIC_QUANTIZATION) {
      ONNXIFI_ASSIGN_OR_RETURN(properties.has_dynamic_quantization,
                               ReadSwitch("dynamic quantization", value));
    } else if (key == ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE) {
      ONNXIFI_ASSIGN_OR_RETURN(properties.may_measure, ReadSwitch("measure", value));
    } else if (key == ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL) {
      ONNXIFI_ASSIGN_OR_RETURN(properties.is_mapped_model, ReadSwitch("mapped model", value));
    } else if (key == ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL) {
      ONNXIFI_ASSIGN_OR_RETURN(properties.is_lasting_model, ReadSwitch("lasting model", value));
    } else if (key == ONNXIFI_SDK_GRAPH_PROPERTY_CALLER_RUNS) {
      ONNXIFI_ASSIGN_OR_RETURN(properties.caller_runs, ReadSwitch("caller runs", value));
    }
    properties.given.push_back({key, value});
  }
  return properties;
}

}  // namespace onnxifi::abi
