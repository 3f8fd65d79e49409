// SPDX-License-Identifier: Apache-2.0
//
// ExternalData: what can be reached, and everything that cannot. Each test has a folder of its own.

#include "backends/core/model/external_data.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "backends/core/graph/dump.h"
#include "backends/core/model/import.h"
#include "backends/core/model/testing/seed_models.h"

namespace onnxifi::model {
namespace {

namespace fs = std::filesystem;

class ExternalDataTest : public ::testing::Test {
 public:
  ExternalDataTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::temp_directory_path() /
            ("onnxifi_external_data_" + std::string(test->name()) + "_" + std::to_string(getpid()));
    fs::create_directories(root_ / "models/deep");
    Write(root_ / "secret", "secret");
    Write(root_ / "models/data", "0123456789");
    Write(root_ / "models/deep/data", "deep");
  }
  ~ExternalDataTest() override { fs::remove_all(root_); }

 protected:
  static void Write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  std::string folder() const { return (root_ / "models").string(); }

  void ExpectRefused(const std::string& location, std::string_view text, int64_t offset = 0,
                     int64_t size_bytes = 1) {
    ExternalData data(folder());
    const auto region = data.Map(location, offset, size_bytes);
    ASSERT_FALSE(region.ok()) << location;
    EXPECT_EQ(region.status().code(), base::Code::kInvalidModel);
    EXPECT_NE(region.status().sentence().find(text), std::string_view::npos)
        << region.status().Text();
  }

  fs::path root_;
};

TEST_F(ExternalDataTest, MapsRegionsThatOutliveTheReader) {
  ExternalData::Region region;
  {
    ExternalData data(folder());
    const auto mapped = data.Map("data", 3, 4);
    ASSERT_TRUE(mapped.ok()) << mapped.status().Text();
    region = *mapped;
    EXPECT_TRUE(data.Map("deep/data", 0, 4).ok());
    const auto stepped = data.Map("./deep/..//deep/../data", 3, 4);
    ASSERT_TRUE(stepped.ok()) << stepped.status().Text();
    EXPECT_EQ(std::memcmp(stepped->bytes.data(), "3456", 4), 0);
  }
  EXPECT_EQ(std::memcmp(region.bytes.data(), "3456", 4), 0);
}

TEST_F(ExternalDataTest, NothingOutsideTheFolderIsReached) {
  ExpectRefused("../secret", "not a path inside");
  ExpectRefused("deep/../../secret", "not a path inside");
  ExpectRefused("deep/../../models/data", "not a path inside");
  ExpectRefused("./../models/data", "not a path inside");
  ExpectRefused("..", "not a path inside");
  ExpectRefused("deep/..", "not a plain file");
  ExpectRefused("absent/../data", "cannot be opened");
  ExpectRefused((root_ / "secret").string(), "not a path inside");
  ExpectRefused("", "empty");
  ExpectRefused(std::string("data\0x", 6), "NUL");
  fs::create_symlink(root_ / "secret", root_ / "models/link");
  ExpectRefused("link", "a link to a place outside");
  fs::create_directory_symlink(root_, root_ / "models/up");
  ExpectRefused("up/secret", "a link to a place outside");
  ExpectRefused("up/models/../secret", "a link to a place outside");
  fs::create_directory_symlink(root_ / "models2/inner", root_ / "models/aside");
  fs::create_directories(root_ / "models2/inner");
  Write(root_ / "models2/outer", "x");
  ExpectRefused("aside/../outer", "a link to a place outside");
  // A neighbour whose name begins like the folder's.
  Write(root_ / "models2/data", "x");
  fs::create_symlink(root_ / "models2/data", root_ / "models/neighbour");
  ExpectRefused("neighbour", "a link to a place outside");
}

TEST_F(ExternalDataTest, LinksInsideTheFolderAreFollowed) {
  fs::create_symlink("deep/data", root_ / "models/inner");
  ExternalData data(folder());
  EXPECT_TRUE(data.Map("inner", 0, 4).ok());
}

TEST_F(ExternalDataTest, OnlyPlainFilesThatAreLongEnough) {
  ExpectRefused("absent", "cannot be opened");
  ExpectRefused("deep", "not a plain file");
  ASSERT_EQ(mkfifo((root_ / "models/pipe").c_str(), 0600), 0);
  ExpectRefused("pipe", "not a plain file");
  ExpectRefused("data", "of 8 bytes at offset 3 reach beyond the 10 bytes", 3, 8);
  ExpectRefused("data", "reach beyond", 11, 0);
  ExpectRefused("data", "reach beyond", INT64_MAX, INT64_MAX);
  ExternalData nowhere(std::nullopt);
  const auto region = nowhere.Map("data", 0, 1);
  ASSERT_FALSE(region.ok());
  EXPECT_NE(region.status().sentence().find("no folder"), std::string_view::npos);
}

// A file with holes, of which nothing but the last page is ever touched.
TEST_F(ExternalDataTest, ImportReadsATensorOfMoreThanFourGigabytes) {
  constexpr int64_t kRows = 1'100'001;
  constexpr int64_t kBytes = kRows * 1000 * static_cast<int64_t>(sizeof(float));
  static_assert(kBytes > int64_t{1} << 32);
  const fs::path path = root_ / "models/large";
  Write(path, "");
  fs::resize_file(path, static_cast<uintmax_t>(kBytes));
  const float last = 2.5F;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(kBytes - static_cast<int64_t>(sizeof(last)));
  file.write(reinterpret_cast<const char*>(&last), sizeof(last));
  file.close();
  onnx::ModelProto model = testing::MakeModel();
  onnx::TensorProto& tensor = testing::AddFloatInitializer(*model.mutable_graph(), "w", {});
  tensor.add_dims(kRows);
  tensor.add_dims(1000);
  tensor.clear_float_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  auto* entry = tensor.add_external_data();
  entry->set_key("location");
  entry->set_value("large");
  ImportOptions options;
  options.base_folder = folder();
  const std::string bytes = model.SerializeAsString();
  const auto graph = Import(std::as_bytes(std::span(bytes)), options);
  ASSERT_TRUE(graph.ok()) << graph.status().Text();
  EXPECT_EQ(graph->values[0].constant->size_bytes(), kBytes);
  EXPECT_EQ(graph->values[0].constant->AsDouble(kRows * 1000 - 1), 2.5);
}

TEST_F(ExternalDataTest, ImportReadsTensorsFromFiles) {
  std::string floats(80 * sizeof(float), '\0');
  for (int index = 0; index < 80; ++index) {
    const auto value = static_cast<float>(index);
    std::memcpy(floats.data() + static_cast<size_t>(index) * sizeof(float), &value, sizeof(value));
  }
  Write(root_ / "models/weights", std::string(64, 'x') + floats);
  onnx::ModelProto model = testing::MakeModel();
  onnx::TensorProto& tensor = testing::AddFloatInitializer(*model.mutable_graph(), "w", {8, 10});
  tensor.clear_float_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto set = [&tensor](const char* key, const std::string& value) {
    for (auto& entry : *tensor.mutable_external_data()) {
      if (entry.key() == key) {
        entry.set_value(value);
        return;
      }
    }
    auto* entry = tensor.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  };
  set("location", "weights");
  set("offset", "64");
  set("length", "320");
  ImportOptions options;
  options.base_folder = folder();
  const auto import = [&] {
    const std::string bytes = model.SerializeAsString();
    return Import(std::as_bytes(std::span(bytes)), options);
  };
  auto graph = import();
  ASSERT_TRUE(graph.ok()) << graph.status().Text();
  EXPECT_EQ(graph->values[0].constant->AsDouble(79), 79.0);
  set("offset", "62");  // not on an element's boundary: copied
  EXPECT_EQ(import()->values[0].constant->element_count(), 80);

  for (const auto& [key, value, text] : std::initializer_list<std::array<const char*, 3>>{
           {"offset", "65", "reach beyond"},
           {"offset", "-1", "not a number"},
           {"offset", "6x", "not a number"},
           {"length", "319", "has 319 bytes of external data"},
           {"location", "../secret", "not a path inside"},
       }) {
    set("offset", "64");
    set("length", "320");
    set("location", "weights");
    set(key, value);
    graph = import();
    ASSERT_FALSE(graph.ok()) << key << " " << value;
    EXPECT_EQ(graph.status().code(), base::Code::kInvalidModel);
    EXPECT_NE(graph.status().Text().find(text), std::string::npos) << graph.status().Text();
  }
  set("location", "absent");
  options.lift_values = false;
  graph = import();
  ASSERT_TRUE(graph.ok()) << "a support question opens no file";
  EXPECT_TRUE(graph->values[0].is_weight);
}

// As onnx.save writes them that is told to convert attributes.
TEST_F(ExternalDataTest, SupportQuestionsLeaveConstantNodesOut) {
  onnx::ModelProto model = testing::MakeModel();
  model.mutable_opset_import(0)->set_version(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx::NodeProto& constant = *graph.add_node();
  constant.set_op_type("Constant");
  constant.add_output("w");
  onnx::AttributeProto& value = *constant.add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  onnx::TensorProto& tensor = *value.mutable_t();
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(2);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& location = *tensor.add_external_data();
  location.set_key("location");
  location.set_value("absent");
  onnx::NodeProto& relu = *graph.add_node();
  relu.set_op_type("Relu");
  relu.add_input("w");
  relu.add_output("y");
  graph.add_output()->set_name("y");
  const std::string bytes = model.SerializeAsString();
  ImportOptions options;
  options.base_folder = folder();
  const auto read = Import(std::as_bytes(std::span(bytes)), options);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.status().Text().find("'absent' cannot be opened"), std::string::npos);
  options.lift_values = false;
  const auto asked = Import(std::as_bytes(std::span(bytes)), options);
  ASSERT_TRUE(asked.ok()) << asked.status().Text();
  ASSERT_EQ(asked->nodes.size(), 1U);
  EXPECT_EQ(asked->nodes[0].op_type, "Relu");
  const graph::Value& weight = asked->values[static_cast<size_t>(asked->nodes[0].inputs[0])];
  EXPECT_TRUE(weight.is_weight);
  EXPECT_EQ(graph::ToString(weight.type), "float[2]");
}

}  // namespace
}  // namespace onnxifi::model
