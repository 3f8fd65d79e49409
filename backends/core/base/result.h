// SPDX-License-Identifier: Apache-2.0
//
// Result<T>: a value, or the Status that says why there is none.

#ifndef ONNXIFI_BACKENDS_CORE_BASE_RESULT_H_
#define ONNXIFI_BACKENDS_CORE_BASE_RESULT_H_

#include <cassert>
#include <optional>
#include <utility>

#include "backends/core/base/status.h"

namespace onnxifi::base {

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    assert(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const& { return status_; }
  Status&& status() && { return std::move(status_); }

  const T& operator*() const& { return *value_; }
  T& operator*() & { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  const T* operator->() const { return &*value_; }
  T* operator->() { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace onnxifi::base

#define ONNXIFI_CONCAT_INNER_(a, b) a##b
#define ONNXIFI_CONCAT_(a, b) ONNXIFI_CONCAT_INNER_(a, b)
// ONNXIFI_ASSIGN_OR_RETURN(auto x, F()): declares x from F()'s value, or returns F()'s status.
#define ONNXIFI_ASSIGN_OR_RETURN(declaration, expr) \
  ONNXIFI_ASSIGN_OR_RETURN_INNER_(ONNXIFI_CONCAT_(onnxifi_result_, __LINE__), declaration, expr)
#define ONNXIFI_ASSIGN_OR_RETURN_INNER_(result, declaration, expr) \
  auto result = (expr);                                            \
  if (!result.ok()) [[unlikely]]                                   \
    return std::move(result).status();                             \
  declaration = *std::move(result)

#endif  // ONNXIFI_BACKENDS_CORE_BASE_RESULT_H_
