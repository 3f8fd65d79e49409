// SPDX-License-Identifier: Apache-2.0
//
// onnxifi_info: what is there, what is not, and why. Exit status 0 when a device is usable or, with
// --ops, when the model runs; 1 when none is, or it does not; 2 when the library could not even be
// asked, or the command line is wrong.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <onnxifi/onnxifi.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/onnxifi_info/device_report.h"
#include "apps/onnxifi_info/report_text.h"
#include "client/default_library.h"
#include "client/node_answers.h"
#include "client/node_table.h"
#include "client/onnx_file/mapped_file.h"
#include "client/printable.h"
#include "client/standard_output.h"
#include "discovery/probe/plugin_probe.h"

namespace {

struct Options {
  std::string library;
  // A file; empty: devices alone are asked for.
  std::filesystem::path model;
  // 0: plugins are not tried before they are opened here.
  double probe_limit_s = std::chrono::duration<double>(onnxifi::probe::kTimeLimit).count();
  bool is_verbose = false;
  bool is_json = false;
};

int Fail(std::string_view sentence) {
  fmt::print(stderr, "onnxifi_info: {}\n", onnxifi::client::Printable(sentence));
  return 2;
}

// The exit status: `status`, or that of an output that nobody gets whole.
int Tell(std::string_view text, int status) {
  const onnxifi::base::Status written = onnxifi::client::WriteOutput(text);
  return written.ok() ? status : Fail(written.Text());
}

auto AskAboutModel(const onnxifi::Library& library, const Options& options,
                   const onnxifi::onnx_file::MappedFile& file) {
  return onnxifi::client::AskDevices(
      library, file.content(), std::filesystem::absolute(options.model).parent_path().string());
}

// Which device runs which nodes of the model.
int ExplainModel(const onnxifi::Library& library, const Options& options) {
  const auto file = onnxifi::onnx_file::MappedFile::Open(options.model);
  if (!file.ok()) return Fail(file.status().Text());
  const auto answers = AskAboutModel(library, options, *file);
  if (!answers) return Fail(answers.error().Text());
  if (answers->devices.empty()) return Fail("There is no device to ask; onnxifi_info says why.");
  const int status = answers->is_runnable() ? 0 : 1;
  if (options.is_json) {
    nlohmann::json object = onnxifi::client::MakeNodeJson(*answers, /*device_of=*/{});
    object["model"] = options.model.string();
    object["runs"] = answers->is_runnable();
    return Tell(
        object.dump(2, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace) +
            "\n",
        status);
  }
  onnxifi::client::NodeTableOptions table;
  table.lists_all = options.is_verbose;
  return Tell(onnxifi::client::Printable(onnxifi::client::MakeNodeTable(*answers, table)), status);
}

using onnxifi::probe::Finding;

// What this program does with the library, for the processes that try it out.
void Rehearse(const Options& options, const onnxifi::probe::EnterStage& enter) {
  enter("it is opened and lists its devices");
  const auto library = onnxifi::Library::Open(options.library);
  if (!library) return;
  if (options.model.empty()) {
    static_cast<void>(onnxifi::info::CollectReport(*library, options.library, enter).ok());
    return;
  }
  enter("it is asked about the model");
  const auto file = onnxifi::onnx_file::MappedFile::Open(options.model);
  if (file.ok()) static_cast<void>(AskAboutModel(*library, options, *file).ok());
}

int Run(Options options) {
  const bool is_given = !options.library.empty();
  if (options.library.empty()) {
    const auto found = onnxifi::client::FindDefaultLibrary();
    if (!found.ok()) return Fail(found.status().Text());
    options.library = found->string();
  }
  const std::chrono::milliseconds limit(static_cast<int64_t>(options.probe_limit_s * 1000));
  std::vector<Finding> findings;
  if (limit.count() > 0) {
    const auto trial = [&](const onnxifi::probe::EnterStage& enter) { Rehearse(options, enter); };
    if (is_given) {
      const auto finding = onnxifi::probe::ProbeLibrary(options.library, trial, limit);
      if (finding) return Fail("Library '" + options.library + "': " + finding->sentence);
    }
    findings = onnxifi::probe::ProbePlugins(options.library, trial, limit);
    onnxifi::probe::Disable(findings);
  }
  const auto library = onnxifi::Library::Open(options.library);
  if (!library) return Fail(library.error().Text());
  if (!options.model.empty()) {
    for (const Finding& finding : findings) {
      fmt::print(stderr, "onnxifi_info: Plugin '{}' is not used. {}\n", finding.path.string(),
                 onnxifi::client::Printable(finding.sentence));
    }
    return ExplainModel(*library, options);
  }
  auto report = onnxifi::info::CollectReport(*library, options.library);
  if (!report) return Fail(report.error().Text());
  for (const Finding& finding : findings) {
    onnxifi::info::TellFinding(finding.path.string(), finding.sentence, *report);
  }
  const int status = report->has_usable_device() ? 0 : 1;
  if (options.is_json) return Tell(onnxifi::info::MakeJson(*report), status);
  return Tell(onnxifi::client::Printable(options.is_verbose ? onnxifi::info::MakeListing(*report)
                                                            : onnxifi::info::MakeTable(*report)),
              status);
}

}  // namespace

int main(int argument_count, char** arguments) {
  Options options;
  CLI::App app(
      "Lists the devices that libonnxifi finds on this machine, and the plugins that it does not "
      "use, with the reason.\n"
      "With --ops: which device runs which nodes of a model, every reason against the others, and "
      "what each device says of the whole.\n"
      "Exit status: 0 a device is usable (the model runs), 1 none is (it does not), 2 the library "
      "could not be asked or the command line is wrong.",
      "onnxifi_info");
  app.add_option("--library", options.library,
                 "ask this ONNXIFI library, a plugin for instance (default: the libonnxifi beside "
                 "this program)");
  app.add_option("--ops", options.model,
                 "a .onnx file: tell which devices run which of its nodes, and why not the others")
      // A shell's variable that is not set would list the devices.
      ->check([](const std::string& path) { return path.empty() ? "names no file" : ""; });
  app.add_option(
         "--probe-limit", options.probe_limit_s,
         "seconds that a plugin may take when it is tried in a process of its own (default: "
         "10; 0: it is not tried)")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_flag("--verbose", options.is_verbose,
               "every query of every device, every candidate plugin; with --ops every node, reason "
               "and line");
  app.add_flag("--json", options.is_json, "the same as JSON; members are only ever added");
  app.set_version_flag("--version", "onnxifi_info " ONNXIFI_SDK_VERSION);
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return Run(std::move(options));
}
