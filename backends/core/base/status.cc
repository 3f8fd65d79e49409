// SPDX-License-Identifier: Apache-2.0
//
// Status: names of the codes, and how sentence and context lines are put together.

#include "backends/core/base/status.h"

#include <atomic>

namespace onnxifi::base {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "SUCCESS";
    case Code::kFallback:
      return "FALLBACK";
    case Code::kInvalidId:
      return "INVALID_ID";
    case Code::kInvalidSize:
      return "INVALID_SIZE";
    case Code::kInvalidPointer:
      return "INVALID_POINTER";
    case Code::kInvalidProtobuf:
      return "INVALID_PROTOBUF";
    case Code::kInvalidModel:
      return "INVALID_MODEL";
    case Code::kInvalidBackend:
      return "INVALID_BACKEND";
    case Code::kInvalidGraph:
      return "INVALID_GRAPH";
    case Code::kInvalidEvent:
      return "INVALID_EVENT";
    case Code::kInvalidState:
      return "INVALID_STATE";
    case Code::kInvalidName:
      return "INVALID_NAME";
    case Code::kInvalidShape:
      return "INVALID_SHAPE";
    case Code::kInvalidDatatype:
      return "INVALID_DATATYPE";
    case Code::kInvalidMemoryType:
      return "INVALID_MEMORY_TYPE";
    case Code::kInvalidMemoryLocation:
      return "INVALID_MEMORY_LOCATION";
    case Code::kInvalidFenceType:
      return "INVALID_FENCE_TYPE";
    case Code::kInvalidProperty:
      return "INVALID_PROPERTY";
    case Code::kUnsupportedTag:
      return "UNSUPPORTED_TAG";
    case Code::kUnsupportedVersion:
      return "UNSUPPORTED_VERSION";
    case Code::kUnsupportedOperator:
      return "UNSUPPORTED_OPERATOR";
    case Code::kUnsupportedAttribute:
      return "UNSUPPORTED_ATTRIBUTE";
    case Code::kUnsupportedShape:
      return "UNSUPPORTED_SHAPE";
    case Code::kUnsupportedDatatype:
      return "UNSUPPORTED_DATATYPE";
    case Code::kUnsupportedMemoryType:
      return "UNSUPPORTED_MEMORY_TYPE";
    case Code::kUnsupportedFenceType:
      return "UNSUPPORTED_FENCE_TYPE";
    case Code::kUnsupportedProperty:
      return "UNSUPPORTED_PROPERTY";
    case Code::kUnidentifiedName:
      return "UNIDENTIFIED_NAME";
    case Code::kMismatchingShape:
      return "MISMATCHING_SHAPE";
    case Code::kMismatchingDatatype:
      return "MISMATCHING_DATATYPE";
    case Code::kNoSystemMemory:
      return "NO_SYSTEM_MEMORY";
    case Code::kNoDeviceMemory:
      return "NO_DEVICE_MEMORY";
    case Code::kNoSystemResources:
      return "NO_SYSTEM_RESOURCES";
    case Code::kNoDeviceResources:
      return "NO_DEVICE_RESOURCES";
    case Code::kBackendUnavailable:
      return "BACKEND_UNAVAILABLE";
    case Code::kInternalError:
      return "INTERNAL_ERROR";
  }
  return "unknown status";
}

struct Status::Error {
  Code code;
  std::string sentence;
  std::string context;
  std::atomic<int> owner_count = 1;
};

Status::Status(Code code, std::string sentence) {
  if (code == Code::kOk) return;
  error_ = new Error{code, std::move(sentence), {}};
}

void Status::Share(Error* error) noexcept {
  error->owner_count.fetch_add(1, std::memory_order_relaxed);
}

void Status::Release(Error* error) noexcept {
  if (error->owner_count.fetch_sub(1, std::memory_order_acq_rel) == 1) delete error;
}

Code Status::CodeOf(const Error& error) { return error.code; }

std::string_view Status::sentence() const {
  return error_ == nullptr ? std::string_view() : std::string_view(error_->sentence);
}

std::string Status::Text() const {
  return error_ == nullptr ? std::string() : error_->sentence + error_->context;
}

Status& Status::Context(std::string line) & {
  if (error_ == nullptr) return *this;
  if (error_->owner_count.load(std::memory_order_acquire) > 1) {
    *this = Status(new Error{error_->code, error_->sentence, error_->context});
  }
  error_->context += "\n  " + line;
  return *this;
}

Status&& Status::Context(std::string line) && {
  Context(std::move(line));
  return std::move(*this);
}

}  // namespace onnxifi::base
