// SPDX-License-Identifier: Apache-2.0
//
// MockDevices: mock plugins opened as libonnxifi opens them, for tests of what stands behind its
// interface.

#ifndef ONNXIFI_ONNXIFI_TESTING_MOCK_DEVICES_H_
#define ONNXIFI_ONNXIFI_TESTING_MOCK_DEVICES_H_

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>
#include <stdlib.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "discovery/library/plugin_library.h"
#include "onnxifi/plugins/forwarded_backend_id.h"

namespace onnxifi {

// A model of opset 21 from the text of its graph.
inline std::string ParseMockModel(const std::string& graph) {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(
      model, ("<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph).c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model.SerializeAsString();
}

inline std::span<const std::byte> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Mock devices, as the dispatcher knows them.
class MockDevices {
 public:
  MockDevices() {
    std::string pattern = (std::filesystem::temp_directory_path() / "onnxifi-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~MockDevices() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  MockDevices(const MockDevices&) = delete;
  MockDevices& operator=(const MockDevices&) = delete;

  MockDevices& Add(const std::string& name, const std::string& settings,
                   const char* file = ONNXIFI_TEST_MOCK) {
    const std::filesystem::path target = folder_ / ("libonnxifi-" + name + ".so");
    std::filesystem::copy_file(file, target);
    std::ofstream(target.string() + ".json") << settings;
    library::OpenVerdict verdict;
    library::PluginLibrary& plugin = libraries_.emplace_back(library::PluginLibrary::Open(
        target, reinterpret_cast<const void*>(&ParseMockModel), &verdict));
    EXPECT_TRUE(plugin.is_open()) << verdict.sentence << verdict.detail;
    plugin.Keep();
    onnxBackendID id = nullptr;
    size_t count = 1;
    EXPECT_EQ(plugin.functions().get_backend_ids(&id, &count), ONNXIFI_STATUS_SUCCESS);
    devices_.push_back(std::make_unique<plugins::ForwardedBackendId>(
        plugins::PluginCalls(name, 0, plugin.functions(), id), /*priority=*/0));
    all_.push_back(devices_.back().get());
    return *this;
  }
  std::span<const plugins::ForwardedBackendId* const> all() const { return all_; }

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::vector<library::PluginLibrary> libraries_;
  std::vector<std::unique_ptr<plugins::ForwardedBackendId>> devices_;
  std::vector<const plugins::ForwardedBackendId*> all_;
};

}  // namespace onnxifi

#endif  // ONNXIFI_ONNXIFI_TESTING_MOCK_DEVICES_H_
