// SPDX-License-Identifier: Apache-2.0
//
// SignalKeeper: whose a handler is, its address tells. The system offers no way to keep a library
// from setting handlers, nor to set one only if nobody else has meanwhile.

#include "backends/opencl/signal_keeper.h"

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace onnxifi::opencl {
namespace {

struct Segment {
  uintptr_t begin;
  uintptr_t end;
};

int AddSegments(dl_phdr_info* image, size_t /*size*/, void* segments) {
  for (int k = 0; k < image->dlpi_phnum; ++k) {
    const ElfW(Phdr)& header = image->dlpi_phdr[k];
    if (header.p_type != PT_LOAD) continue;
    const uintptr_t begin = image->dlpi_addr + header.p_vaddr;
    static_cast<std::vector<Segment>*>(segments)->push_back({begin, begin + header.p_memsz});
  }
  return 0;
}

// Of the program and its libraries, at the first call.
const std::vector<Segment>& OwnSegments() {
  static const std::vector<Segment> segments = [] {
    std::vector<Segment> found;
    dl_iterate_phdr(AddSegments, &found);
    return found;
  }();
  return segments;
}

bool IsOfADriver(const struct sigaction& action) {
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return false;
  const auto address = reinterpret_cast<uintptr_t>(action.sa_handler);
  for (const Segment& segment : OwnSegments()) {
    if (address >= segment.begin && address < segment.end) return false;
  }
  return true;
}

}  // namespace

void SignalKeeper::RememberLibraries() { OwnSegments(); }

SignalKeeper::SignalKeeper() {
  RememberLibraries();
  for (int signal = 1; signal < kSignals; ++signal) {
    sigaction(signal, nullptr, &before_[static_cast<size_t>(signal)]);
  }
}

SignalKeeper::~SignalKeeper() {
  for (int signal = 1; signal < kSignals; ++signal) {
    const struct sigaction& before = before_[static_cast<size_t>(signal)];
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler != before.sa_handler && IsOfADriver(now)) {
      sigaction(signal, &before, nullptr);
    }
  }
}

}  // namespace onnxifi::opencl
