// SPDX-License-Identifier: Apache-2.0
//
// A worker for pool_test: its cases pass, crash, hang, end the process, or poison a later case or
// the exit, as their names say.

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "conformance/process/worker.h"

int main() {
  bool is_poisoned = false;
  bool breaks_at_exit = false;
  onnxifi::process::ServeCases([&](const std::string& id) -> std::string {
    if (id.starts_with("crash")) {
      std::cerr << "about to crash\n";
      // A sanitizer would turn it into an exit.
      signal(SIGSEGV, SIG_DFL);
      raise(SIGSEGV);
    }
    if (id.starts_with("hang")) pause();
    if (id.starts_with("leave")) _exit(7);
    if (id.starts_with("poison")) is_poisoned = true;
    if (id.starts_with("victim") && is_poisoned) raise(SIGABRT);
    if (id.starts_with("exit")) breaks_at_exit = true;
    return "ran " + id;
  });
  return breaks_at_exit ? 9 : 0;
}
