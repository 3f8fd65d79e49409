// SPDX-License-Identifier: Apache-2.0
//
// The command line, with CLI11.

#include "conformance/options.h"

#include <CLI/CLI.hpp>

#include "conformance/cases/variant.h"

namespace onnxifi::conformance {

std::optional<int> ParseOptions(int argument_count, char** arguments, Options& options) {
  CLI::App app(
      "Checks an ONNXIFI library as a black box. Each case runs in a child process: a crash or a "
      "hang is a row of the "
      "report. The last line counts all cases but the expanded twins, which have a line of their "
      "own.",
      "onnxifi_conformance");
  app.add_option(
         "--suite", options.suite,
         "interface: every function, every status. operators: ONNX's own test cases. "
         "opsets: each operator in each of its versions. domains: operators of com.microsoft. "
         "models: real topologies")
      ->required()
      ->check(CLI::IsMember({"interface", "operators", "opsets", "domains", "models"}));
  app.add_option("--device", options.device,
                 "auto, a plugin's name, or plugin:index (default: the library's first device)");
  app.add_option("--alternate", options.alternates,
                 "devices that each model is to name for its nodes in turn, e.g. cpu,opencl; the "
                 "device, auto, then has to cut it between any two nodes")
      ->delimiter(',');
  std::vector<std::string> variants = {"all"};
  for (const cases::Variant variant : cases::kVariants) variants.emplace_back(NameOf(variant));
  app.add_option(
         "--variants", options.variants,
         "replay each case of operators, opsets or domains in other forms, too, e.g. "
         "symbols,tiled; "
         "their names are those of the cases with @ and the variant, and each variant has a "
         "line of its own")
      ->delimiter(',')
      ->check(CLI::IsMember(variants));
  app.add_flag("--lend-model", options.lend_model,
               "models are lent to the library, which may read weights in place "
               "(ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL), all of them at odd addresses");
  app.add_option("--library", options.library,
                 "any ONNXIFI library, a vendor's plugin included (default: the libonnxifi beside "
                 "this program)");
  CLI::Option* const filter = app.add_option(
      "--filter", options.filter, "only cases in whose name this regular expression is found");
  app.add_option("--json", options.json, "write the results as JSON, one line per case");
  app.add_option("--report", options.report, "write the results as one HTML page");
  app.add_option("--junit", options.junit, "write the results as JUnit XML");
  app.add_option("--cases", options.cases,
                 "folder of generated cases (default: the one generated last)");
  app.add_option(
      "--expectations", options.expectations,
      "file of cases that are known to fail or not to be supported (default: the plugin's own); "
      "a refusal that it does not list fails");
  app.add_option("--write-expectations", options.write_expectations,
                 "write such a file from the results and hold them against it; what it says of "
                 "other suites stays, and so do its reasons")
      ->excludes(filter);
  app.add_option("--jobs", options.jobs,
                 "child processes at once (default: one per core, 1 for models)")
      ->check(CLI::Range(1, 256));
  app.add_option("--timeout", options.timeout_s,
                 "seconds that one case may take, those not counted in which others had the "
                 "processors (default: 60, for models 600)")
      ->check(CLI::Range(0.1, 86400.0));
  app.add_flag("--list", options.list, "print the names of the cases and end");
  app.add_flag("--worker", options.is_worker)->group("");  // Hidden: how the program starts itself.
  app.set_version_flag("--version", "onnxifi_conformance " ONNXIFI_SDK_VERSION);
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return std::nullopt;
}

std::vector<std::string> MakeWorkerCommand(const std::string& program, const Options& options) {
  std::vector<std::string> command = {program,       "--worker",  "--suite",
                                      options.suite, "--library", options.library.string()};
  if (!options.device.empty()) command.insert(command.end(), {"--device", options.device});
  for (const std::string& device : options.alternates) {
    command.insert(command.end(), {"--alternate", device});
  }
  if (options.lend_model) command.push_back("--lend-model");
  if (!options.cases.empty()) command.insert(command.end(), {"--cases", options.cases.string()});
  return command;
}

}  // namespace onnxifi::conformance
