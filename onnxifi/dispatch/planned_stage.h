// SPDX-License-Identifier: Apache-2.0
//
// PlannedStage: a stage whose plugins are mocks, and models given as text, for tests of graphs that
// run on several devices.

#ifndef ONNXIFI_ONNXIFI_DISPATCH_PLANNED_STAGE_H_
#define ONNXIFI_ONNXIFI_DISPATCH_PLANNED_STAGE_H_

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "onnxifi/dispatch/stage.h"

namespace onnxifi::dispatch {

class PlannedStage : public Stage {
 public:
  // A mock device of this name; `file` is the mock's or the plain mock's.
  PlannedStage& AddMock(const std::string& name, const std::string& settings,
                        const char* file = ONNXIFI_TEST_MOCK) {
    const std::filesystem::path target = folder() / ("libonnxifi-" + name + ".so");
    std::filesystem::copy_file(file, target);
    Write(target.filename().string() + ".json", settings);
    return *this;
  }
};

// A model of opset 21 from the text of its graph.
inline std::vector<std::byte> ParseModel(const std::string& graph) {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(
      model, ("<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph).c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  const std::string text = model.SerializeAsString();
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

}  // namespace onnxifi::dispatch

#endif  // ONNXIFI_ONNXIFI_DISPATCH_PLANNED_STAGE_H_
