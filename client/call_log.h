// SPDX-License-Identifier: Apache-2.0
//
// CallLog: which function has answered which status. Every call of the suite goes through it, so
// the list of reached cells of the interface's status table is a fact and not a claim.

#ifndef ONNXIFI_CLIENT_CALL_LOG_H_
#define ONNXIFI_CLIENT_CALL_LOG_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "client/status_names.h"

namespace onnxifi::client {

struct StatusCell {
  Function function;
  // As answered; may be a code that the interface does not have.
  onnxStatus status;

  friend bool operator==(const StatusCell&, const StatusCell&) = default;
};

// Threads: Record may be called from any thread.
class CallLog {
 public:
  void Record(Function function, onnxStatus status);
  // The cells seen, without repetition; of the codes that the interface does not have, the last one
  // per function.
  std::vector<StatusCell> cells() const;

 private:
  std::array<std::array<std::atomic<bool>, kStatusCount>, kFunctionCount> seen_ = {};
  std::array<std::atomic<onnxStatus>, kFunctionCount> unknown_ = {};
};

// A function of a library whose answers are recorded.
template <typename Signature>
class LoggedFunction;

template <typename... Parameters>
class LoggedFunction<onnxStatus(Parameters...)> {
 public:
  using Pointer = onnxStatus(ONNXIFI_ABI*)(Parameters...);

  void Bind(void* address, Function function, CallLog* log) {
    pointer_ = reinterpret_cast<Pointer>(address);
    function_ = function;
    log_ = log;
  }

  [[nodiscard]] onnxStatus operator()(Parameters... parameters) const {
    const onnxStatus status = pointer_(parameters...);
    log_->Record(function_, status);
    return status;
  }

 private:
  Pointer pointer_ = nullptr;
  Function function_ = Function::kGetBackendIDs;
  CallLog* log_ = nullptr;
};

}  // namespace onnxifi::client

#endif  // ONNXIFI_CLIENT_CALL_LOG_H_
