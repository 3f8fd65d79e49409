// SPDX-License-Identifier: Apache-2.0
//
// Plugins that end or hold the process that asks them: the probe names them, and the tools, run as
// a person runs them, go on without them. Over one fake plugin, whose file's name says its fault.

#include "discovery/probe/plugin_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace onnxifi::probe {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A folder with libonnxifi, a plugin of plain ONNXIFI 1.0 without a fault, and others.
class PluginProbe : public testing::Test {
 protected:
  PluginProbe() {
    std::string pattern = (std::filesystem::temp_directory_path() / "onnxifi-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    std::filesystem::copy_file(ONNXIFI_TEST_LIBRARY, library());
    Add("plain.so", "sound");
    for (const char* name : {"ONNXIFI_BACKENDS", "ONNXIFI_ADD_BACKENDS", "ONNXIFI_DISABLE"}) {
      unsetenv(name);
    }
  }
  ~PluginProbe() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::filesystem::path library() const { return folder_ / "libonnxifi.so"; }
  std::filesystem::path PathOf(const std::string& plugin) const {
    return std::filesystem::canonical(folder_) / ("libonnxifi-" + plugin + ".so");
  }
  void Add(const std::string& fake, const std::string& plugin) {
    std::filesystem::copy_file(std::filesystem::path(ONNXIFI_TEST_FAKES) / fake, PathOf(plugin));
  }

  // Exit status and standard output of a program with the library of the folder; what it says
  // beside that is dropped if `is_quiet`.
  std::pair<int, std::string> Run(const std::string& program, const std::string& arguments,
                                  bool is_quiet = true) const {
    const std::string command = program + " --library " + library().string() + " " + arguments +
                                (is_quiet ? " 2>/dev/null" : "");
    std::FILE* const pipe = popen(command.c_str(), "r");
    std::string output;
    std::array<char, 4096> chunk;
    size_t size = 0;
    while ((size = fread(chunk.data(), 1, chunk.size(), pipe)) > 0) {
      output.append(chunk.data(), size);
    }
    const int status = pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
  }

  std::filesystem::path folder_;
};

TEST_F(PluginProbe, FindsNothingWherePluginsAreSound) {
  Add("alpha.so", "alpha");
  Add("not_loadable.so", "broken");
  EXPECT_THAT(ProbePlugins(library(), ListDevices(library())), IsEmpty());
}

TEST_F(PluginProbe, SaysHowAPluginEndsTheProcessAndWhere) {
  const std::pair<const char*, const char*> kFaults[] = {
      {"aborts-listing",
       "A process that only tries the plugin is ended by signal 6 (Aborted) while it is opened and "
       "lists its devices."},
      {"crashes-listing", "is ended by signal 11 (Segmentation fault) while it is opened"},
      {"exits-listing", "ends with exit status 0 while it is opened and lists its devices."},
      {"exits-opening", "ends with exit status 0 while it is opened and lists its devices."},
  };
  for (const auto& [fault, sentence] : kFaults) Add("faulty.so", fault);
  const std::vector<Finding> findings = ProbePlugins(library(), ListDevices(library()));
  ASSERT_THAT(findings, SizeIs(std::size(kFaults)));
  for (size_t index = 0; index < findings.size(); ++index) {
    EXPECT_EQ(findings[index].path, PathOf(kFaults[index].first));
    EXPECT_THAT(findings[index].sentence, HasSubstr(kFaults[index].second));
  }
}

TEST_F(PluginProbe, EndsAPluginThatDoesNotComeBack) {
  Add("faulty.so", "hangs-listing");
  const std::vector<Finding> findings =
      ProbePlugins(library(), ListDevices(library()), std::chrono::milliseconds(1500));
  // Under load the sound one may take as long.
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().path, PathOf("hangs-listing"));
  EXPECT_THAT(
      findings.front().sentence,
      HasSubstr("has not come back after 1500 ms while it is opened and lists its devices."));
}

TEST_F(PluginProbe, DoesNotMistakeWhatAPluginPrintsForItsReport) {
  Add("faulty.so", "prints-listing");
  EXPECT_THAT(ProbePlugins(library(), ListDevices(library())), IsEmpty());
}

TEST_F(PluginProbe, TriesNothingBesideALibraryThatIsAPlugin) {
  Add("faulty.so", "aborts-listing");
  const std::filesystem::path plugin = PathOf("aborts-listing");
  EXPECT_THAT(ProbePlugins(plugin, ListDevices(plugin)), IsEmpty());
}

TEST_F(PluginProbe, LeavesOutWhatIsDisabled) {
  Add("faulty.so", "aborts-listing");
  setenv("ONNXIFI_DISABLE", "ABORTS-*", 1);
  EXPECT_THAT(ProbePlugins(library(), ListDevices(library())), IsEmpty());
}

TEST_F(PluginProbe, LetsInfoListTheOthersAndSayWhy) {
  for (const char* fault : {"aborts-initialisation", "aborts-listing", "crashes-query",
                            "exits-opening", "throws-listing"}) {
    Add("faulty.so", fault);
  }
  const auto [status, output] = Run(ONNXIFI_TEST_INFO, "--json");
  EXPECT_EQ(status, 0);
  const auto report = nlohmann::json::parse(output, /*cb=*/nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(report.is_object()) << output;
  EXPECT_EQ(report["usable"], true);
  ASSERT_THAT(report["devices"], SizeIs(2));
  EXPECT_EQ(report["devices"][1]["key"], "sound:0");
  for (const auto& plugin : report["plugins"]) {
    const bool is_sound = plugin["plugin"] == "sound";
    EXPECT_EQ(plugin["verdict"], is_sound ? "loaded" : "quarantined") << plugin;
    if (plugin["plugin"] == "aborts-initialisation") {
      EXPECT_THAT(plugin["sentence"].get<std::string>(),
                  HasSubstr("while device aborts-initialisation:0 is initialised."));
    }
  }
  EXPECT_THAT(report["plugins"], SizeIs(6));
}

TEST_F(PluginProbe, LetsInfoEndAPluginThatHangs) {
  Add("faulty.so", "hangs-listing");
  const auto [status, output] = Run(ONNXIFI_TEST_INFO, "--probe-limit 3");
  EXPECT_EQ(status, 0);
  EXPECT_THAT(output, HasSubstr("Plugin 'hangs-listing' is not used (quarantined): A process that "
                                "only tries the plugin has not come back after 3000 ms"));
  EXPECT_THAT(output, HasSubstr("sound:0"));
}

TEST_F(PluginProbe, LetsInfoRefuseALibraryThatEndsTheProcess) {
  Add("faulty.so", "aborts-listing");
  const std::string command = std::string(ONNXIFI_TEST_INFO) + " --library " +
                              PathOf("aborts-listing").string() + " 2>/dev/null";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2);
}

// y = x + x, which the plain plugin runs, with extents that the model fixes or not.
TEST_F(PluginProbe, LetsRunGoOnWithAPlainDevice) {
  Add("faulty.so", "aborts-listing");
  Add("faulty.so", "aborts-initialisation");
  for (const char* extent : {"3", "N"}) {
    onnx::ModelProto model;
    const std::string text = std::string("<ir_version: 10, opset_import: [\"\" : 21]>\n") +
                             "graph (float[" + extent + "] x) => (float[" + extent +
                             "] y) { y = Add(x, x) }";
    ASSERT_TRUE(onnx::OnnxParser::Parse(model, text.c_str()).IsOK());
    const std::filesystem::path file = folder_ / "model.onnx";
    std::ofstream(file, std::ios::binary) << model.SerializeAsString();
    for (const char* device : {"sound:0", "auto"}) {
      const auto [status, output] =
          Run(ONNXIFI_TEST_RUN,
              file.string() + (extent[0] == 'N' ? " --dim N=3" : "") + " --device " + device);
      EXPECT_EQ(status, 0) << output;
      EXPECT_THAT(output, HasSubstr("y")) << device;
    }
    const auto [status, told] =
        Run(ONNXIFI_TEST_INFO, "--ops " + file.string() + " 2>&1 1>/dev/null", /*is_quiet=*/false);
    EXPECT_EQ(status, 0);
    EXPECT_THAT(told, HasSubstr("libonnxifi-aborts-listing.so' is not used. A process that"));
  }
}

}  // namespace
}  // namespace onnxifi::probe
