// SPDX-License-Identifier: Apache-2.0
//
// A worker for pool_test: its cases pass, crash, hang, compute without an end, end the process,
// wait for a processor that another has, or poison a later case or the exit, as their names say.

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>

#include "conformance/process/worker.h"

namespace {

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

[[noreturn]] void Spin() {
  while (true) static_cast<void>(ProcessorSeconds());
}

// Computes for a tenth of a second, which takes one: nine others want the same processor.
void Starve() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(first, &only);
  sched_setaffinity(0, sizeof(only), &only);
  std::array<pid_t, 9> others;
  for (pid_t& other : others) {
    other = fork();
    if (other != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Spin();
  }
  const double end = ProcessorSeconds() + 0.1;
  while (ProcessorSeconds() < end) {
  }
  for (const pid_t other : others) {
    kill(other, SIGKILL);
    waitpid(other, nullptr, 0);
  }
}

}  // namespace

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
    if (id.starts_with("spin")) Spin();
    if (id.starts_with("starve")) Starve();
    if (id.starts_with("leave")) _exit(7);
    if (id.starts_with("poison")) is_poisoned = true;
    if (id.starts_with("victim") && is_poisoned) raise(SIGABRT);
    if (id.starts_with("exit")) breaks_at_exit = true;
    return "ran " + id;
  });
  return breaks_at_exit ? 9 : 0;
}
