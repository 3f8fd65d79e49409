// SPDX-License-Identifier: Apache-2.0
//
// Scratch: where std::bad_alloc and std::length_error end.

#include "backends/core/reference/scratch.h"

#include <stdexcept>

namespace onnxifi::reference {
namespace {

base::Status OutOfMemory() {
  return base::Status(base::Code::kNoSystemMemory,
                      "The working memory of a kernel cannot be allocated.");
}

}  // namespace

base::Status ForRange(device::Parallel& parallel, int64_t count, int64_t grain,
                      const std::function<void(int64_t begin, int64_t end)>& body) {
  std::atomic<bool> has_failed = false;
  parallel.For(count, grain, [&](int64_t begin, int64_t end) {
    const base::Status status = Guarded([&] {
      body(begin, end);
      return base::Ok();
    });
    if (!status.ok()) has_failed = true;
  });
  return has_failed ? OutOfMemory() : base::Ok();
}

base::Status Guarded(const std::function<base::Status()>& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const std::length_error&) {
    return OutOfMemory();
  }
}

}  // namespace onnxifi::reference
