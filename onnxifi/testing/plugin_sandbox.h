// SPDX-License-Identifier: Apache-2.0
//
// PluginSandbox: a folder of its own with a copy of libonnxifi and fake plugins beside it. A copy
// is a library of its own to the system, so every test sees a first discovery.

#ifndef ONNXIFI_ONNXIFI_TESTING_PLUGIN_SANDBOX_H_
#define ONNXIFI_ONNXIFI_TESTING_PLUGIN_SANDBOX_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <onnxifi/onnxifi.hpp>
#include <string>
#include <vector>

namespace onnxifi {

class PluginSandbox {
 public:
  PluginSandbox() {
    std::string pattern = (std::filesystem::temp_directory_path() / "onnxifi-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    std::filesystem::copy_file(ONNXIFI_TEST_LIBRARY, folder_ / "libonnxifi.so");
    unsetenv("ONNXIFI_BACKENDS");
    unsetenv("ONNXIFI_ADD_BACKENDS");
    unsetenv("ONNXIFI_DISABLE");
    setenv("ONNXIFI_LOG", "silent", /*overwrite=*/1);
    // Nothing that was measured before, of devices of the same name.
    setenv("ONNXIFI_CACHE_DIR", (folder_ / "cache").c_str(), /*overwrite=*/1);
    unsetenv("ONNXIFI_MEASURE");
  }
  ~PluginSandbox() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  PluginSandbox(const PluginSandbox&) = delete;
  PluginSandbox& operator=(const PluginSandbox&) = delete;

  const std::filesystem::path& folder() const { return folder_; }

  // Copies the fake `from` (a file of the fakes' folder) to `to`, which is relative to the sandbox.
  PluginSandbox& Add(const std::string& from, const std::filesystem::path& to) {
    std::filesystem::create_directories((folder_ / to).parent_path());
    std::filesystem::copy_file(std::filesystem::path(ONNXIFI_TEST_FAKES) / from, folder_ / to);
    return *this;
  }
  PluginSandbox& Write(const std::filesystem::path& to, const std::string& text) {
    std::filesystem::create_directories((folder_ / to).parent_path());
    std::ofstream(folder_ / to) << text;
    return *this;
  }

  Library Open() {
    auto library = Library::Open((folder_ / "libonnxifi.so").string());
    EXPECT_TRUE(library.ok()) << library.error().Text();
    return *std::move(library);
  }

  // The keys of all devices, in order, separated by spaces.
  static std::string Keys(const Library& library) {
    const auto devices = library.Devices();
    EXPECT_TRUE(devices.ok());
    std::string keys;
    for (const Device& device : *devices) keys += (keys.empty() ? "" : " ") + *device.Key();
    return keys;
  }

  // The record of the plugin file; fails the test when there is none.
  static DiscoveryRecord RecordOf(const Library& library, const std::string& file) {
    const auto report = library.DiscoveryReport();
    EXPECT_TRUE(report.ok());
    for (const DiscoveryRecord& record : *report) {
      if (std::filesystem::path(record.path).filename() == file) return record;
    }
    ADD_FAILURE() << "There is no record of " << file;
    return {};
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace onnxifi

#endif  // ONNXIFI_ONNXIFI_TESTING_PLUGIN_SANDBOX_H_
