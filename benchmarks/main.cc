// SPDX-License-Identifier: Apache-2.0
//
// onnxifi_bench. Exit status 0: measured or found; 1: the limits could not be kept; 2: the command
// line is wrong.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "benchmarks/machine/limits.h"
#include "benchmarks/machine/measure.h"

namespace onnxifi::machine {
namespace {

// A line that is written over on a terminal; nothing elsewhere, the whole takes some seconds.
void ShowProgress(std::string_view part) {
  if (isatty(fileno(stderr)) != 0) fmt::print(stderr, "\r\033[Konnxifi_bench: {}", part);
}

std::string SizeText(int64_t size_bytes) {
  return size_bytes < 1024 * 1024 ? fmt::format("{} KiB", size_bytes / 1024)
                                  : fmt::format("{} MiB", size_bytes / (1024 * 1024));
}

std::string MakeTable(const Limits& limits) {
  std::string text = fmt::format("{}, {}\n", limits.processor, limits.instructions);
  auto out = std::back_inserter(text);
  fmt::format_to(out, "{:<38}", "threads");
  for (const ThreadLimits& threads : limits.by_threads) {
    fmt::format_to(out, "{:>10}", threads.threads);
  }
  fmt::format_to(out, "\n{:<38}", "float32 multiply-adds, GFLOP/s");
  for (const ThreadLimits& threads : limits.by_threads) {
    fmt::format_to(out, "{:>10.1f}", threads.float32_gflops);
  }
  fmt::format_to(out, "\n{:<38}", "int8 products, GOP/s");
  for (const ThreadLimits& threads : limits.by_threads) {
    fmt::format_to(out, "{:>10.1f}", threads.int8_gops);
  }
  fmt::format_to(out, "\n{:<38}", "read of main memory, GB/s");
  for (const ThreadLimits& threads : limits.by_threads) {
    fmt::format_to(out, "{:>10.1f}", threads.read_gigabytes_per_s);
  }
  for (size_t row = 0; row < limits.by_threads.front().copies.size(); ++row) {
    const int64_t size_bytes = limits.by_threads.front().copies[row].size_bytes;
    fmt::format_to(out, "\n{:<38}",
                   fmt::format("copy of {}, GB/s read + written", SizeText(size_bytes)));
    for (const ThreadLimits& threads : limits.by_threads) {
      fmt::format_to(out, "{:>10.1f}", threads.copies[row].gigabytes_per_s);
    }
  }
  return text + "\n";
}

int Run(bool is_forced, bool is_json) {
  base::Result<Limits> limits = ReadCached();
  bool is_kept = true;
  if (is_forced || !limits.ok()) {
    double load = 0;
    if (getloadavg(&load, 1) == 1 && load > 0.7) {
      fmt::print(stderr,
                 "onnxifi_bench: the machine is busy (load {:.1f}); figures will be too low\n",
                 load);
    }
    limits = Measure(ShowProgress);
    if (isatty(fileno(stderr)) != 0) fmt::print(stderr, "\r\033[K");
    if (const base::Status written = WriteCached(*limits); !written.ok()) {
      fmt::print(stderr, "onnxifi_bench: {}\n", written.Text());
      is_kept = false;
    }
  } else {
    fmt::print(stderr, "onnxifi_bench: measured before; --force measures anew\n");
  }
  const std::string text = is_json ? ToJson(*limits) : MakeTable(*limits);
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    fmt::print(stderr, "onnxifi_bench: standard output cannot be written\n");
    return 1;
  }
  return is_kept ? 0 : 1;
}

}  // namespace
}  // namespace onnxifi::machine

int main(int argument_count, char** arguments) {
  CLI::App app(
      "Measures what this machine can do at most, which onnxifi_run --profile holds steps "
      "against.\n"
      "The figures are kept in the cache folder (ONNXIFI_CACHE_HOME moves it), one file per "
      "machine.\n"
      "Nothing else should run meanwhile; it takes some ten seconds.",
      "onnxifi_bench");
  bool is_machine = false, is_forced = false, is_json = false;
  app.add_flag("--machine", is_machine, "measure the machine, or show what was measured before")
      ->required();
  app.add_flag("--force", is_forced, "measure anew");
  app.add_flag("--json", is_json, "print JSON instead of a table");
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return onnxifi::machine::Run(is_forced, is_json);
}
