// SPDX-License-Identifier: Apache-2.0
//
// SmallTensors: which tensors are brought in, from where, and what is said of those that are not
// there.

#include "onnxifi/split/small_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace onnxifi::split {
namespace {

using testing::HasSubstr;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

class SmallTensors : public testing::Test {
 protected:
  SmallTensors() {
    std::string pattern = (std::filesystem::temp_directory_path() / "onnxifi-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    const auto status = onnx::OnnxParser::Parse(model_, R"(<ir_version: 10, opset_import: ["" : 21]>
        graph (float[6, 1025] x, bool c) => (float[3, 2050] y) {
          a = Reshape(x, shape)
          y = If(c) <then_branch = g () => (float[3, 2050] t) { t = Add(a, bias) },
                     else_branch = h () => (float[3, 2050] e) { e = Identity(a) }>
        })");
    EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
    const std::vector<int64_t> shape = {3, 2050};
    // Behind something else.
    std::string data(24, 'x');
    data.append(reinterpret_cast<const char*>(shape.data()), 16);
    const std::vector<float> bias(2, -1.5F);
    data.append(reinterpret_cast<const char*>(bias.data()), 8);
    std::ofstream(folder_ / "data", std::ios::binary) << data;
    AddExternal(*model_.mutable_graph(), "shape", onnx::TensorProto::INT64, 2, "24");
    onnx::GraphProto& then =
        *model_.mutable_graph()->mutable_node(1)->mutable_attribute(0)->mutable_g();
    AddExternal(then, "bias", onnx::TensorProto::FLOAT, 2, "40");
    // One element more than is small; its data are nowhere.
    AddExternal(*model_.mutable_graph(), "large", onnx::TensorProto::FLOAT, 1025, "0");
  }

 public:
  ~SmallTensors() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

 protected:
  static void AddExternal(onnx::GraphProto& graph, const char* name, int type, int64_t count,
                          const char* offset) {
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    tensor.add_dims(count);
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair{"location", "data"}, std::pair{"offset", offset}}) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
  }
  base::Result<std::optional<std::string>> Complete() const {
    return WithSmallTensors(Bytes(model_.SerializeAsString()), folder_.string());
  }

  std::filesystem::path folder_;
  onnx::ModelProto model_;
};

TEST_F(SmallTensors, AreBroughtIntoTheModel) {
  const auto completed = Complete();
  ASSERT_TRUE(completed.ok()) << completed.status().Text();
  ASSERT_TRUE(completed->has_value());
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(**completed));
  const onnx::TensorProto& shape = model.graph().initializer(0);
  EXPECT_EQ(shape.data_location(), onnx::TensorProto::DEFAULT);
  const std::vector<int64_t> expected = {3, 2050};
  EXPECT_EQ(shape.raw_data(), std::string(reinterpret_cast<const char*>(expected.data()), 16));
  const onnx::TensorProto& bias = model.graph().node(1).attribute(0).g().initializer(0);
  EXPECT_EQ(bias.raw_data().size(), 8U);
  EXPECT_EQ(bias.external_data_size(), 0);
  EXPECT_EQ(model.graph().initializer(1).data_location(), onnx::TensorProto::EXTERNAL);
  EXPECT_TRUE(model.graph().initializer(1).raw_data().empty());
  EXPECT_EQ(model.graph().node_size(), 2);
}

TEST_F(SmallTensors, AreBroughtIntoFunctions) {
  onnx::FunctionProto& function = *model_.add_functions();
  onnx::NodeProto& constant = *function.add_node();
  constant.set_op_type("Constant");
  onnx::AttributeProto& value = *constant.add_attribute();
  value.set_name("value");
  *value.mutable_t() = model_.graph().initializer(0);
  const auto completed = Complete();
  ASSERT_TRUE(completed.ok()) << completed.status().Text();
  ASSERT_TRUE(completed->has_value());
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(**completed));
  EXPECT_EQ(model.functions(0).node(0).attribute(0).t().raw_data(),
            model.graph().initializer(0).raw_data());
  EXPECT_EQ(model.functions(0).node(0).attribute(0).t().raw_data().size(), 16U);
}

TEST_F(SmallTensors, AreNotLookedForWhereThereAreNone) {
  model_.mutable_graph()->mutable_initializer()->DeleteSubrange(0, 1);
  model_.mutable_graph()->mutable_node()->RemoveLast();
  std::filesystem::remove(folder_ / "data");
  const auto completed = Complete();
  ASSERT_TRUE(completed.ok()) << completed.status().Text();
  EXPECT_FALSE(completed->has_value());
  const auto garbage = WithSmallTensors(Bytes("no model"), folder_.string());
  ASSERT_TRUE(garbage.ok());
  EXPECT_FALSE(garbage->has_value());
}

TEST_F(SmallTensors, ThatAreNotThereAreAFaultOfTheModel) {
  auto* entry = model_.mutable_graph()->mutable_initializer(0)->mutable_external_data(1);
  for (const char* const offset : {"41", "-8", "2x"}) {
    entry->set_value(offset);
    const auto completed = Complete();
    ASSERT_FALSE(completed.ok()) << offset;
    EXPECT_EQ(completed.status().code(), base::Code::kInvalidModel);
    EXPECT_THAT(completed.status().Text(), HasSubstr("'shape'"));
  }
  entry->set_value("24");
  auto* length = model_.mutable_graph()->mutable_initializer(0)->add_external_data();
  length->set_key("length");
  for (const char* const bytes : {"15", "17", "0", "-16", "x"}) {
    length->set_value(bytes);
    const auto completed = Complete();
    ASSERT_FALSE(completed.ok()) << bytes;
    EXPECT_EQ(completed.status().code(), base::Code::kInvalidModel);
    EXPECT_THAT(completed.status().Text(), HasSubstr("'shape'"));
  }
  length->set_value("16");
  EXPECT_TRUE(Complete().ok());
  model_.mutable_graph()->mutable_initializer(0)->mutable_external_data(0)->set_value("../data");
  const auto outside = Complete();
  ASSERT_FALSE(outside.ok());
  EXPECT_THAT(outside.status().Text(), HasSubstr("not a path inside"));
}

}  // namespace
}  // namespace onnxifi::split
