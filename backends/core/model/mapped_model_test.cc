// SPDX-License-Identifier: Apache-2.0
//
// Models that are mapped files, and models that stay: what is copied, what is read where it lies,
// what is left in memory.

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "backends/core/model/import.h"
#include "backends/core/model/tensor_proto.h"
#include "backends/core/tensor/testing/file_mapping.h"

namespace onnxifi::model {
namespace {

using tensor::testing::FileMapping;
using tensor::testing::SeededBytes;

constexpr size_t kMiB = size_t{1} << 20;

// Weights "raw" with these bytes, and "typed", of a MiB.
std::string MakeModel(const std::string& raw) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto* graph = model.mutable_graph();
  onnx::TensorProto* weight = graph->add_initializer();
  weight->set_name("raw");
  weight->set_data_type(onnx::TensorProto::FLOAT);
  weight->add_dims(static_cast<int64_t>(raw.size() / 4));
  weight->set_raw_data(raw);
  onnx::TensorProto* typed = graph->add_initializer();
  typed->set_name("typed");
  typed->set_data_type(onnx::TensorProto::FLOAT);
  typed->add_dims(kMiB / 4);
  for (size_t k = 0; k < kMiB / 4; ++k) typed->add_float_data(static_cast<float>(k) * 0.5F);
  for (const std::string name : {"raw", "typed"}) {
    onnx::NodeProto* node = graph->add_node();
    node->set_op_type("Neg");
    node->add_input(name);
    node->add_output("minus_" + name);
    graph->add_output()->set_name("minus_" + name);
  }
  return model.SerializeAsString();
}

const tensor::Tensor& Find(const graph::Graph& graph, const std::string& name) {
  for (const graph::Value& value : graph.values) {
    if (value.name == name) return *value.constant;
  }
  throw std::out_of_range(name);
}

bool IsInside(const std::byte* data, std::span<const std::byte> bytes) {
  return data >= bytes.data() && data < bytes.data() + bytes.size();
}

TEST(MappedModelTest, AMappedModelIsImportedAsAnyOtherAndGivenBack) {
  const std::string raw = SeededBytes(2 * kMiB, 8);
  const FileMapping mapping(MakeModel(raw));
  for (const bool is_mapped : {true, false}) {
    ImportOptions options;
    options.is_mapped_model = is_mapped;
    const auto imported = Import(mapping.bytes(), options);
    ASSERT_TRUE(imported.ok()) << imported.status().Text();
    int found = 0;
    for (const graph::Value& value : imported->values) {
      if (!value.constant) continue;
      ++found;
      if (value.name == "raw") {
        EXPECT_EQ(std::memcmp(value.constant->data(), raw.data(), raw.size()), 0);
      } else {
        const auto* numbers = reinterpret_cast<const float*>(value.constant->data());
        for (size_t k = 0; k < kMiB / 4; ++k) ASSERT_EQ(numbers[k], static_cast<float>(k) * 0.5F);
      }
    }
    EXPECT_EQ(found, 2);
    if (is_mapped) {
      EXPECT_LT(mapping.InMemory(), kMiB / 2);
    } else {
      EXPECT_GT(mapping.InMemory(), 3 * kMiB - kMiB / 4);
    }
  }
}

TEST(MappedModelTest, AModelThatLastsIsReadWhereItLies) {
  const std::string raw = SeededBytes(2 * kMiB, 8);
  // At all four distances from an address of floats.
  for (size_t shift = 0; shift < 4; ++shift) {
    std::string text = std::string(shift, '\0') + MakeModel(raw);
    const auto bytes = std::as_bytes(std::span(text)).subspan(shift);
    ImportOptions options;
    options.is_lasting_model = true;
    const auto imported = Import(bytes, options);
    ASSERT_TRUE(imported.ok()) << imported.status().Text();
    const tensor::Tensor& tensor = Find(*imported, "raw");
    EXPECT_TRUE(IsInside(tensor.data(), bytes));
    EXPECT_EQ(std::memcmp(tensor.data(), raw.data(), raw.size()), 0);
    EXPECT_EQ(tensor.backing(), tensor::Backing::kMemory);
    // Numbers that are coded one by one are no memory of floats.
    EXPECT_FALSE(IsInside(Find(*imported, "typed").data(), bytes));
  }
  const std::string text = MakeModel(raw);
  const auto copied = Import(std::as_bytes(std::span(text)), {});
  ASSERT_TRUE(copied.ok());
  EXPECT_FALSE(IsInside(Find(*copied, "raw").data(), std::as_bytes(std::span(text))));
}

TEST(MappedModelTest, SmallTensorsOfAModelThatLastsAreCopied) {
  for (const int64_t size_bytes : {kMinBorrowedBytes - 4, kMinBorrowedBytes}) {
    const std::string text = MakeModel(SeededBytes(static_cast<size_t>(size_bytes), 9));
    const auto bytes = std::as_bytes(std::span(text));
    ImportOptions options;
    options.is_lasting_model = true;
    const auto imported = Import(bytes, options);
    ASSERT_TRUE(imported.ok()) << imported.status().Text();
    EXPECT_EQ(IsInside(Find(*imported, "raw").data(), bytes), size_bytes >= kMinBorrowedBytes);
  }
}

TEST(MappedModelTest, PagesGoWithTheLastTensorThatReadsThem) {
  const std::string raw = SeededBytes(8 * kMiB, 8);
  const FileMapping mapping(MakeModel(raw));
  ImportOptions options;
  options.is_mapped_model = options.is_lasting_model = true;
  std::optional<tensor::Tensor> tensor;
  {
    const auto imported = Import(mapping.bytes(), options);
    ASSERT_TRUE(imported.ok()) << imported.status().Text();
    tensor = Find(*imported, "raw");
  }
  EXPECT_TRUE(IsInside(tensor->data(), mapping.bytes()));
  EXPECT_EQ(tensor->backing(), tensor::Backing::kFile);
  EXPECT_EQ(std::memcmp(tensor->data(), raw.data(), raw.size()), 0);
  EXPECT_GT(mapping.InMemory(), 8 * kMiB - kMiB / 4);
  tensor.reset();
  EXPECT_LT(mapping.InMemory(), kMiB);
}

}  // namespace
}  // namespace onnxifi::model
