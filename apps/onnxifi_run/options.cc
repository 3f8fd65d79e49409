// SPDX-License-Identifier: Apache-2.0
//
// The command line, with CLI11.

#include "apps/onnxifi_run/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <sstream>

#include "apps/onnxifi_run/precision.h"

namespace onnxifi::run {
namespace {

// "N=4" into the map; whether it was of that form.
bool AddDim(const std::string& text, std::map<std::string, int64_t>& dims) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  int64_t extent = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data() + equals + 1, end, extent);
  if (error != std::errc() || last != end || extent < 0) return false;
  dims[text.substr(0, equals)] = extent;
  return true;
}

// The key of a device that the caller names: "cpu" is the first of its plugin's.
std::string KeyOf(std::string name) {
  const bool is_plugin = name.find(':') == std::string::npos && name != "auto";
  return is_plugin ? name + ":0" : name;
}

// "prefer:cpu:0,opencl:0" or "strict:cpu:0"; whether it was of that form.
bool ReadPlacement(const std::string& text, Options& options) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  if (colon == std::string::npos || (kind != "prefer" && kind != "strict")) return false;
  options.placement =
      kind == "prefer" ? ONNXIFI_SDK_PLACEMENT_PREFER : ONNXIFI_SDK_PLACEMENT_STRICT;
  std::istringstream keys(text.substr(colon + 1));
  for (std::string key; std::getline(keys, key, ',');) {
    if (key.empty()) return false;
    options.placement_keys.push_back(KeyOf(std::move(key)));
  }
  return !options.placement_keys.empty();
}

// "conv1=cpu:0"; whether it was of that form. Names of nodes may contain anything, keys no "=".
bool AddPin(const std::string& text, std::vector<std::pair<std::string, std::string>>& pins) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) return false;
  pins.emplace_back(text.substr(0, equals), KeyOf(text.substr(equals + 1)));
  return true;
}

// What is wrong with a path; empty where nothing is. A shell's variable that is not set is no path.
std::string CheckPath(const std::string& path) { return path.empty() ? "names no file" : ""; }

// A plan that could not be written would be lost when the model has run.
std::string CheckPlanFile(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  const bool is_known = ending == ".json" || ending == ".dot" || ending == ".svg";
  return is_known ? "" : fmt::format("'{}' ends in none of .json, .dot and .svg", path);
}

}  // namespace

std::optional<int> ParseOptions(int argument_count, char** arguments, Options& options) {
  CLI::App app(
      "Runs an ONNX model through libonnxifi and prints its outputs and the time of a run.\n"
      "Inputs that are not given are drawn at random from the seed.\n"
      "A PNG becomes a float tensor N, C, H, W (or H, W where the model asks for rank 2) with "
      "values from 0 to 1,\n"
      "grey for one channel, RGB for three; its size must be the one the model asks for.\n"
      "Exit status: 0 it ran, with --expect as expected, 1 it did not, 2 the command line is "
      "wrong.",
      "onnxifi_run");
  std::vector<std::string> dims;
  app.add_option("model", options.model, "the model, a .onnx file")->required();
  app.add_option("--device", options.device,
                 "auto, a plugin's name, or plugin:index (default: the library's first device)");
  app.add_option(
         "--beside", options.beside,
         "another device that runs the model too, a run each in turns; prints how the times "
         "compare")
      ->allow_extra_args(false);
  app.add_option("--library", options.library,
                 "any ONNXIFI library (default: the libonnxifi beside this program)")
      ->check(CheckPath);
  app.add_option("--input", options.inputs,
                 "[NAME=]FILE (.pb, .npy or .png), in the model's order where not named; or a "
                 "folder with input_I.pb")
      ->allow_extra_args(false);
  app.add_option("--dim", dims, "NAME=N: the number for a symbolic extent (default: 1)")
      ->allow_extra_args(false);
  app.add_option("--output", options.output, "folder to write output_I.pb to")->check(CheckPath);
  app.add_option("--expect", options.expect,
                 "folder with output_I.pb to compare with: |a-b| <= 1e-4 * (|b| + rms(b)); "
                 "integers exactly")
      ->check(CheckPath);
  app.add_option("--repeat", options.repeat, "timed runs, after one that is not counted")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--seed", options.seed, "for inputs drawn at random");
  app.add_flag("--explain", options.explain,
               "print which devices run which nodes and why not the others, and which device has "
               "them; also of a model that does not run");
  app.add_flag("--exact-algorithms", options.exact_algorithms,
               "no algorithm that rounds differently from an operator's definition, such as "
               "Winograd's for convolutions");
  app.add_flag("--measure", options.measure,
               "take the seconds to find the fastest devices and implementations; later graphs "
               "have what was found");
  std::string precision(kPrecisions.front());
  app.add_option("--precision", precision,
                 "float32 (default), tf32, bfloat16 or float16: devices may round operands of "
                 "products to it and add up in float32; --profile tells what they did and the "
                 "error")
      ->check(CLI::IsMember(std::vector<std::string>(kPrecisions.begin(), kPrecisions.end())));
  app.add_flag(
      "--dynamic-quantization", options.rounding.dynamic_quantization,
      "devices may round rows to 8 bits, in blocks with a scale each, before products with "
      "weights of 8 bits or less");
  CLI::Option* const profile = app.add_flag(
      "--profile", options.profile,
      "print what each step took, over all timed runs, against the limits that onnxifi_bench "
      "--machine measured");
  app.add_option("--trace", options.trace,
                 "file for the last run's steps, for chrome://tracing or Perfetto")
      ->needs(profile)
      ->check(CheckPath);
  app.add_option(
         "--plan", options.plan,
         "file (.json, .dot or .svg) for which device runs what, with the times of the last "
         "run")
      ->check(CheckPlanFile);
  std::string placement;
  std::vector<std::string> pins;
  CLI::Option* const where = app.add_option(
      "--placement", placement,
      "prefer:KEY[,KEY...]: with auto, each node on the first of these devices that takes it, the "
      "rest as always; strict:KEY[,KEY...]: on these devices or not at all");
  CLI::Option* const pin =
      app.add_option("--pin", pins,
                     "NODE=KEY: with auto, the node of this name or number on this device or not "
                     "at all")
          ->allow_extra_args(false);
  app.add_option(
         "--replay-plan", options.replay_plan,
         "a .json file of --plan, made of the same model: with auto, cut the model so again")
      ->check(CheckPath)
      ->excludes(where)
      ->excludes(pin);
  app.add_option(
      "--compile-for", options.compile_for,
      "an architecture of CUDA's, such as sm_90: compile the model's kernels for it into "
      "the cache folder, without a GPU, and run nothing; prints what each takes");
  app.add_option(
         "--probe-limit", options.probe_limit_s,
         "seconds that a plugin may take when it is tried in a process of its own (default: "
         "10; 0: it is not tried)")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_flag("--json", options.json, "print everything as JSON");
  app.set_version_flag("--version", "onnxifi_run " ONNXIFI_SDK_VERSION);
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  options.rounding.precision =
      static_cast<uint32_t>(std::ranges::find(kPrecisions, precision) - kPrecisions.begin());
  for (const std::string& dim : dims) {
    if (!AddDim(dim, options.dims)) {
      fmt::print(stderr, "onnxifi_run: '{}' is not of the form NAME=N with N at least 0.\n", dim);
      return 2;
    }
  }
  if (!placement.empty() && !ReadPlacement(placement, options)) {
    fmt::print(stderr,
               "onnxifi_run: '{}' is not of the form prefer:KEY[,KEY...] or strict:KEY[,KEY...].\n",
               placement);
    return 2;
  }
  for (const std::string& text : pins) {
    if (!AddPin(text, options.pins)) {
      fmt::print(stderr, "onnxifi_run: '{}' is not of the form NODE=KEY.\n", text);
      return 2;
    }
  }
  return std::nullopt;
}

}  // namespace onnxifi::run
