// SPDX-License-Identifier: Apache-2.0
//
// Status: names of the codes, and how sentence and context lines are put together.

#include "backends/core/base/status.h"

#include <atomic>

namespace onnxifi::base {

std::string_view CodeName(Code code) {
  switch (code) {
#define ONNXIFI_MEMBER(name, code_name, meaning) \
  case Code::k##code_name:                       \
    return #name;
    ONNXIFI_SDK_STATUSES(ONNXIFI_MEMBER)
#undef ONNXIFI_MEMBER
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
