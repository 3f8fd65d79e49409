// SPDX-License-Identifier: Apache-2.0
//
// onnxifi_info: what is there, what is not, and why. Exit status 0 when a device is usable, 1 when
// none is, 2 when the library could not even be asked.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <onnxifi/onnxifi.hpp>

#include "conformance/client/default_library.h"
#include "discovery/info/device_report.h"
#include "discovery/info/report_text.h"

namespace {

struct Options {
  std::string library;
  bool is_verbose = false;
  bool is_json = false;
};

int Fail(std::string_view sentence) {
  fmt::print(stderr, "onnxifi_info: {}\n", sentence);
  return 2;
}

int Run(Options options) {
  if (options.library.empty()) {
    const auto found = onnxifi::client::FindDefaultLibrary();
    if (!found.ok()) return Fail(found.status().Text());
    options.library = found->string();
  }
  const auto library = onnxifi::Library::Open(options.library);
  if (!library) return Fail(library.error().Text());
  const auto report = onnxifi::info::CollectReport(*library, options.library);
  if (!report) return Fail(report.error().Text());
  fmt::print("{}", options.is_json      ? onnxifi::info::MakeJson(*report)
                   : options.is_verbose ? onnxifi::info::MakeListing(*report)
                                        : onnxifi::info::MakeTable(*report));
  return report->has_usable_device() ? 0 : 1;
}

}  // namespace

int main(int argument_count, char** arguments) {
  Options options;
  CLI::App app(
      "Lists the devices that libonnxifi finds on this machine, and the plugins that it does not "
      "use, with the reason.",
      "onnxifi_info");
  app.add_option("--library", options.library,
                 "ask this ONNXIFI library, a plugin for instance (default: the libonnxifi beside "
                 "this program)");
  app.add_flag("--verbose", options.is_verbose,
               "every query of every device, every candidate plugin");
  app.add_flag("--json", options.is_json, "the same as JSON; members are only ever added");
  CLI11_PARSE(app, argument_count, arguments);
  return Run(options);
}
