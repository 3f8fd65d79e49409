// SPDX-License-Identifier: Apache-2.0
//
// SharedNumber: a number in a file that mock devices and the test which made them have mapped, so
// that neither needs a symbol of the other.

#ifndef ONNXIFI_BACKENDS_MOCK_TESTING_SHARED_NUMBER_H_
#define ONNXIFI_BACKENDS_MOCK_TESTING_SHARED_NUMBER_H_

#include <cstdint>
#include <filesystem>
#include <memory>

#include "backends/core/base/result.h"

namespace onnxifi::mock {

// Threads: any.
class SharedNumber {
 public:
  // 0 in a file that is made by this. INTERNAL_ERROR where it cannot be made, opened or mapped.
  static base::Result<std::shared_ptr<SharedNumber>> Open(const std::filesystem::path& file);
  ~SharedNumber();
  SharedNumber(const SharedNumber&) = delete;
  SharedNumber& operator=(const SharedNumber&) = delete;

  int64_t Get() const;
  void Add(int64_t addend);

 private:
  explicit SharedNumber(int64_t* number) : number_(number) {}

  int64_t* const number_;
};

}  // namespace onnxifi::mock

#endif  // ONNXIFI_BACKENDS_MOCK_TESTING_SHARED_NUMBER_H_
