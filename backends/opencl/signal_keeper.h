// SPDX-License-Identifier: Apache-2.0
//
// SignalKeeper: leaves the process's signal handlers as they were. Drivers that bring a compiler
// (LLVM's, in PoCL) install handlers of its own for a dozen signals the first time it is used;
// they are the caller's, not a plugin's, to set.

#ifndef ONNXIFI_BACKENDS_OPENCL_SIGNAL_KEEPER_H_
#define ONNXIFI_BACKENDS_OPENCL_SIGNAL_KEEPER_H_

#include <array>
#include <csignal>

namespace onnxifi::opencl {

// Around calls in which a driver may start or compile.
class SignalKeeper {
 public:
  SignalKeeper() {
    for (int signal = 1; signal < kSignals; ++signal) {
      sigaction(signal, nullptr, &before_[static_cast<size_t>(signal)]);
    }
  }
  ~SignalKeeper() {
    for (int signal = 1; signal < kSignals; ++signal) {
      const struct sigaction& before = before_[static_cast<size_t>(signal)];
      struct sigaction now {};
      sigaction(signal, nullptr, &now);
      // Only what changed, so that nothing else that happens meanwhile is undone.
      if (now.sa_handler != before.sa_handler) sigaction(signal, &before, nullptr);
    }
  }
  SignalKeeper(const SignalKeeper&) = delete;
  SignalKeeper& operator=(const SignalKeeper&) = delete;

 private:
  // The classic ones; none of the others is a fault or a wish to end.
  static constexpr int kSignals = 32;
  std::array<struct sigaction, kSignals> before_{};
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_SIGNAL_KEEPER_H_
