// SPDX-License-Identifier: Apache-2.0
//
// Status: how every fallible function of the project answers. It carries an ONNXIFI status code,
// one sentence for a person, and the context lines that callers add on the way up. Every other
// folder rests on this one.

#ifndef ONNXIFI_BACKENDS_CORE_BASE_STATUS_H_
#define ONNXIFI_BACKENDS_CORE_BASE_STATUS_H_

#include <onnxifi/statuses.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace onnxifi::base {

// ONNXIFI_STATUS_* under names of C++ (kInvalidShape for ONNXIFI_STATUS_INVALID_SHAPE), with the
// same numbers, so that a code crosses the interface unchanged.
enum class Code : int32_t {
#define ONNXIFI_MEMBER(name, code_name, meaning) k##code_name = ONNXIFI_STATUS_##name,
  ONNXIFI_SDK_STATUSES(ONNXIFI_MEMBER)
#undef ONNXIFI_MEMBER
};

#define ONNXIFI_MEMBER(name, code_name, meaning) +1
inline constexpr int kCodeCount = ONNXIFI_SDK_STATUSES(ONNXIFI_MEMBER);
#undef ONNXIFI_MEMBER

// The standard's name of a code without its prefix, e.g. "INVALID_SHAPE".
std::string_view CodeName(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  // `sentence` is a full sentence with the actual value and the limit, e.g.
  // "Kernel height (9) exceeds the largest supported (7)."
  [[gnu::cold]] Status(Code code, std::string sentence);

  Status(const Status& other) : error_(other.error_) {
    if (error_ != nullptr) [[unlikely]]
      Share(error_);
  }
  Status(Status&& other) noexcept : error_(std::exchange(other.error_, nullptr)) {}
  Status& operator=(Status other) noexcept {
    std::swap(error_, other.error_);
    return *this;
  }
  ~Status() {
    if (error_ != nullptr) [[unlikely]]
      Release(error_);
  }

  bool ok() const { return error_ == nullptr; }
  Code code() const { return error_ == nullptr ? Code::kOk : CodeOf(*error_); }
  // The sentence alone; empty when ok.
  std::string_view sentence() const;
  // The sentence followed by its context lines, innermost first, one per line.
  std::string Text() const;

  // Adds a context line such as "while importing node 'conv1' (Conv)". No effect on an ok status.
  [[gnu::cold]] Status&& Context(std::string line) &&;
  [[gnu::cold]] Status& Context(std::string line) &;

 private:
  // Shared because a status is copied into events that several waiters read; never changed once
  // shared. It counts its owners itself, and what is done with it is no part of its callers, which
  // are every function there is and hardly ever see one.
  struct Error;
  explicit Status(Error* owned) : error_(owned) {}
  [[gnu::cold]] static void Share(Error* error) noexcept;
  [[gnu::cold]] static void Release(Error* error) noexcept;
  [[gnu::cold]] static Code CodeOf(const Error& error);

  Error* error_ = nullptr;
};

inline Status Ok() { return Status(); }

}  // namespace onnxifi::base

// Returns early with the status of `expr` if it is not ok.
#define ONNXIFI_RETURN_IF_ERROR(expr)                 \
  do {                                                \
    ::onnxifi::base::Status onnxifi_status_ = (expr); \
    if (!onnxifi_status_.ok()) [[unlikely]]           \
      return onnxifi_status_;                         \
  } while (false)

#endif  // ONNXIFI_BACKENDS_CORE_BASE_STATUS_H_
