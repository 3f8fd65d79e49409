// SPDX-License-Identifier: Apache-2.0
//
// SharedNumber: one mapping per object.

#include "backends/mock/testing/shared_number.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <system_error>

namespace onnxifi::mock {
namespace {

base::Status Refuse(const std::filesystem::path& file, const char* verb) {
  return {base::Code::kInternalError, "The number in '" + file.string() + "' cannot be " + verb +
                                          ": " + std::generic_category().message(errno) + "."};
}

}  // namespace

base::Result<std::shared_ptr<SharedNumber>> SharedNumber::Open(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return Refuse(file, "opened");
  if (ftruncate(descriptor, sizeof(int64_t)) != 0) {
    const base::Status refusal = Refuse(file, "made");
    close(descriptor);
    return refusal;
  }
  void* const mapped =
      mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  const base::Status refusal = mapped == MAP_FAILED ? Refuse(file, "mapped") : base::Ok();
  close(descriptor);
  if (!refusal.ok()) return refusal;
  return std::shared_ptr<SharedNumber>(new SharedNumber(static_cast<int64_t*>(mapped)));
}

SharedNumber::~SharedNumber() { munmap(number_, sizeof(int64_t)); }

int64_t SharedNumber::Get() const { return std::atomic_ref(*number_).load(); }

void SharedNumber::Add(int64_t addend) { std::atomic_ref(*number_).fetch_add(addend); }

}  // namespace onnxifi::mock
