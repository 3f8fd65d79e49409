// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/testing/emulated/tracking.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace emulated {
namespace {

// Parts are larger than pages: a write to a new one costs a signal.
constexpr uintptr_t kPartBytes = uintptr_t{32} << 10;

Tracking* the_tracking = nullptr;

void Protect(uintptr_t begin, uintptr_t end, bool is_writable) {
  mprotect(reinterpret_cast<void*>(begin), end - begin,
           is_writable ? PROT_READ | PROT_WRITE : PROT_READ);
}

}  // namespace

Tracking::Tracking(std::vector<Range> ranges) : ranges_(std::move(ranges)) {
  for (const Range& range : ranges_) Protect(range.begin, range.end, /*is_writable=*/false);
  the_tracking = this;
}

Tracking::~Tracking() {
  the_tracking = nullptr;
  for (const Range& range : ranges_) Protect(range.begin, range.end, /*is_writable=*/true);
}

bool Tracking::Allow(uintptr_t address) {
  if (the_tracking == nullptr) return false;
  for (const Range& range : the_tracking->ranges_) {
    if (address < range.begin || address >= range.end) continue;
    const uintptr_t begin = std::max(range.begin, address / kPartBytes * kPartBytes);
    const uintptr_t end = std::min(range.end, (address / kPartBytes + 1) * kPartBytes);
    const auto* const bytes = reinterpret_cast<const char*>(begin);
    the_tracking->parts_.push_back(
        {begin, end, std::vector<char>(bytes, bytes + (end - begin)), {}});
    Protect(begin, end, /*is_writable=*/true);
    return true;
  }
  return false;
}

void Tracking::Restore() {
  for (Part& part : parts_) {
    auto* const bytes = reinterpret_cast<char*>(part.begin);
    part.first_result.assign(bytes, bytes + part.original.size());
    std::memcpy(bytes, part.original.data(), part.original.size());
  }
}

uintptr_t Tracking::FindDifference() const {
  for (const Part& part : parts_) {
    const std::vector<char>& first = part.first_result.empty() ? part.original : part.first_result;
    const auto* const bytes = reinterpret_cast<const char*>(part.begin);
    if (std::memcmp(first.data(), bytes, first.size()) == 0) continue;
    return part.begin + (std::mismatch(first.begin(), first.end(), bytes).first - first.begin());
  }
  return 0;
}

}  // namespace emulated
