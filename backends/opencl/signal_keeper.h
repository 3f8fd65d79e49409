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

// Around calls in which a driver may start or compile. When it ends, handlers are put back that
// have been replaced by functions of libraries which were not there when the first keeper (or
// RememberLibraries) was: those of the driver. What other threads of the program set meanwhile
// stays, unless it lies in a library that came as late as the driver.
class SignalKeeper {
 public:
  SignalKeeper();
  ~SignalKeeper();
  SignalKeeper(const SignalKeeper&) = delete;
  SignalKeeper& operator=(const SignalKeeper&) = delete;

  // Counts what is loaded now as the program's own, if nothing was counted before.
  static void RememberLibraries();

 private:
  // The classic ones; none of the others is a fault or a wish to end.
  static constexpr int kSignals = 32;
  std::array<struct sigaction, kSignals> before_{};
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_SIGNAL_KEEPER_H_
