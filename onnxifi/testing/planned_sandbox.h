// SPDX-License-Identifier: Apache-2.0
//
// PlannedSandbox: a plugin sandbox whose plugins are mocks, models given as text, and sessions over
// them, for tests of graphs that run on several devices.

#ifndef ONNXIFI_ONNXIFI_TESTING_PLANNED_SANDBOX_H_
#define ONNXIFI_ONNXIFI_TESTING_PLANNED_SANDBOX_H_

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>
#include <onnx/onnxifi_ext.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onnxifi/testing/plugin_sandbox.h"

namespace onnxifi {

class PlannedSandbox : public PluginSandbox {
 public:
  // A mock device of this name; `file` is the mock's or the plain mock's.
  PlannedSandbox& AddMock(const std::string& name, const std::string& settings,
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

// A model of the auto device, with inputs and outputs of float32.
struct Session {
  Session(const Library& library, const std::string& text)
      : model(ParseModel(text)),
        device(*library.FindDevice("auto")),
        backend(*device.InitBackend()),
        graph(backend.InitGraph(model)) {
    EXPECT_TRUE(graph.ok()) << graph.error().Text();
  }

  void Input(const char* name, const std::vector<uint64_t>& shape, std::vector<float> values) {
    Place(name, shape, std::move(values), inputs);
  }
  void Output(const char* name, const std::vector<uint64_t>& shape) {
    size_t count = 1;
    for (const uint64_t extent : shape) count *= extent;
    Place(name, shape, std::vector<float>(count, -99), outputs);
  }
  Outcome Bind() { return graph->SetIO(inputs, outputs); }
  Outcome Run() {
    if (Outcome bound = Bind(); !bound) return bound;
    return graph->RunAndWait();
  }
  const std::vector<float>& Of(const char* name) const {
    for (size_t k = 0; k < names.size(); ++k) {
      if (names[k] == name) return *data[k];
    }
    ADD_FAILURE() << "There is no " << name;
    return *data[0];
  }

  std::vector<std::byte> model;
  Device device;
  Backend backend;
  Result<Graph> graph;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::vector<std::string> names;
  std::vector<std::unique_ptr<std::vector<float>>> data;

 private:
  void Place(const char* name, const std::vector<uint64_t>& shape, std::vector<float> values,
             std::vector<Tensor>& tensors) {
    names.emplace_back(name);
    data.push_back(std::make_unique<std::vector<float>>(std::move(values)));
    tensors.push_back({name, ONNXIFI_DATATYPE_FLOAT32, shape, data.back()->data()});
  }
};

// Abs and Sub, with Neg and Sqrt between them; what Sqrt makes is not read.
inline constexpr const char* kChain = R"(
  graph (float[N, 3] x) => (float[N, 3] y) {
    a = Abs(x)
    b = Neg(a)
    c = Sqrt(b)
    d = Abs(a)
    y = Sub(d, b)
  })";

// Runs and waits for the run's own status and sentence; the status of the call where it does not
// start.
inline std::pair<onnxStatus, std::string> RunAndExplain(const Session& session) {
  const auto input = session.backend.NewEvent();
  const auto output = session.graph->Run(*input);
  if (!output.ok()) return {output.error().status, output.error().Text()};
  EXPECT_TRUE(input->Signal());
  const auto wait_for = session.device.FindFunction<onnxWaitEventForFunction>("onnxWaitEventFor");
  std::string message(4000, '\0');
  size_t length = message.size();
  onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
  onnxStatus status = ONNXIFI_STATUS_SUCCESS;
  EXPECT_EQ(wait_for(output->handle(), 0, &state, &status, message.data(), &length),
            ONNXIFI_STATUS_SUCCESS);
  message.resize(length > 0 ? length - 1 : 0);
  return {status, message};
}

}  // namespace onnxifi

#endif  // ONNXIFI_ONNXIFI_TESTING_PLANNED_SANDBOX_H_
