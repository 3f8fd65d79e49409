// SPDX-License-Identifier: Apache-2.0
//
// WireScanner: what it keeps, what it lifts, and what it refuses. Protobuf itself decides what
// is well formed.

#include "backends/core/model/wire_scanner.h"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <array>
#include <cstring>

#include "backends/core/model/testing/seed_models.h"

namespace onnxifi::model {
namespace {

using testing::MakeModel;
using testing::MakeSeedModels;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string Refusal(const std::string& bytes) {
  const auto scanned = ScanModel(Bytes(bytes));
  EXPECT_FALSE(scanned.ok());
  if (scanned.ok()) return "";
  EXPECT_EQ(scanned.status().code(), base::Code::kInvalidProtobuf);
  return std::string(scanned.status().sentence());
}

// Field `number` of `wire_type`, without value.
char Tag(int number, int wire_type) { return static_cast<char>(number << 3 | wire_type); }

TEST(WireScannerTest, SkeletonParsesAndHoldsNoTensorData) {
  for (const auto& [name, bytes] : MakeSeedModels()) {
    const auto scanned = ScanModel(Bytes(bytes));
    ASSERT_TRUE(scanned.ok()) << name << ": " << scanned.status().Text();
    onnx::ModelProto model;
    ASSERT_TRUE(model.ParseFromString(scanned->skeleton)) << name;
    onnx::ModelProto whole;
    ASSERT_TRUE(whole.ParseFromString(bytes));
    EXPECT_EQ(model.graph().node_size(), whole.graph().node_size());
    EXPECT_EQ(model.functions_size(), whole.functions_size());
    EXPECT_TRUE(model.producer_name().empty());
    for (const onnx::TensorProto& tensor : model.graph().initializer()) {
      EXPECT_EQ(tensor.float_data_size() + tensor.int32_data_size() + tensor.string_data_size(), 0);
      ASSERT_EQ(tensor.raw_data().size(), 4u);
    }
    for (const onnx::NodeProto& node : model.graph().node()) EXPECT_FALSE(node.has_doc_string());
  }
}

TEST(WireScannerTest, LiftsPackedAndSeparateNumbersAlike) {
  // float_data once as separate numbers (field 4, wire type 5), once packed.
  std::string tensor;
  for (const float value : {1.f, 2.f}) {
    tensor += Tag(4, 5);
    tensor.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  const std::array<float, 2> packed = {3.f, 4.f};
  tensor += Tag(4, 2);
  tensor += static_cast<char>(sizeof(packed));
  tensor.append(reinterpret_cast<const char*>(packed.data()), sizeof(packed));
  const std::string graph = {Tag(5, 2), static_cast<char>(tensor.size())};
  std::string model = {Tag(7, 2), static_cast<char>(graph.size() + tensor.size())};
  model += graph + tensor;
  const auto scanned = ScanModel(Bytes(model));
  ASSERT_TRUE(scanned.ok()) << scanned.status().Text();
  ASSERT_EQ(scanned->tensors.size(), 1u);
  EXPECT_EQ(scanned->tensors[0].float_count, 4);
  std::vector<float> values;
  ForEachRun(scanned->tensors[0].body, TensorField::kFloat, [&](std::span<const std::byte> run) {
    values.resize(values.size() + run.size() / sizeof(float));
    std::memcpy(values.data() + values.size() - run.size() / sizeof(float), run.data(), run.size());
  });
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4}));
}

TEST(WireScannerTest, RawDataAreSpansOfTheModel) {
  onnx::ModelProto proto = MakeModel();
  onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer();
  tensor.set_raw_data(std::string(100000, 'x'));
  const std::string bytes = proto.SerializeAsString();
  const auto scanned = ScanModel(Bytes(bytes));
  ASSERT_TRUE(scanned.ok());
  EXPECT_LT(scanned->skeleton.size(), 200u);
  ASSERT_EQ(scanned->tensors.size(), 1u);
  const auto* data = reinterpret_cast<const char*>(scanned->tensors[0].raw.data());
  EXPECT_EQ(scanned->tensors[0].raw.size(), 100000u);
  EXPECT_GE(data, bytes.data());
  EXPECT_LT(data, bytes.data() + bytes.size());
}

// What is lifted leaves an index of six bytes, which may be more than the data had, so that lengths
// of the messages around it take a byte more.
TEST(WireScannerTest, CorrectsTheLengthsAroundWhatItLifts) {
  for (int padding = 0; padding < 150; ++padding) {
    onnx::ModelProto proto = MakeModel();
    onnx::NodeProto& node = *proto.mutable_graph()->add_node();
    node.set_op_type("Constant");
    node.set_doc_string(std::string(static_cast<size_t>(padding / 2), 'd'));
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(std::string(static_cast<size_t>(padding), 'n'));
    attribute.mutable_t()->add_int32_data(7);
    attribute.set_ref_attr_name("after");
    proto.mutable_graph()->set_name("behind");
    const std::string bytes = proto.SerializeAsString();
    const auto scanned = ScanModel(Bytes(bytes));
    ASSERT_TRUE(scanned.ok()) << scanned.status().Text();
    onnx::ModelProto parsed;
    ASSERT_TRUE(parsed.ParseFromString(scanned->skeleton)) << padding;
    node.clear_doc_string();
    attribute.mutable_t()->clear_int32_data();
    attribute.mutable_t()->set_raw_data(std::string(4, '\0'));
    onnx::ModelProto expected = proto;
    expected.clear_producer_name();
    expected.clear_producer_version();
    EXPECT_EQ(parsed.SerializeAsString(), expected.SerializeAsString()) << padding;
  }
}

// Lengths may be written with more bytes than they need.
TEST(WireScannerTest, KeepsLongFormsOfLengths) {
  for (size_t length_bytes = 1; length_bytes <= 10; ++length_bytes) {
    const std::string tensor = {Tag(1, 0), 3, Tag(5, 0), 7};  // dims, and int32_data
    const auto wrap = [&](int number, const std::string& body) {
      std::string message = {Tag(number, 2), static_cast<char>(body.size())};
      for (size_t byte = 1; byte < length_bytes; ++byte) {
        message.back() = static_cast<char>(message.back() | 0x80);
        message += '\0';
      }
      return message + body;
    };
    const std::string model = wrap(7, wrap(5, tensor));
    const auto scanned = ScanModel(Bytes(model));
    ASSERT_TRUE(scanned.ok()) << length_bytes << ": " << scanned.status().Text();
    onnx::ModelProto parsed;
    // Protobuf reads lengths of five bytes at most.
    ASSERT_EQ(parsed.ParseFromString(scanned->skeleton), length_bytes <= 5);
    if (length_bytes > 5) continue;
    ASSERT_EQ(parsed.graph().initializer_size(), 1);
    EXPECT_EQ(parsed.graph().initializer(0).dims(0), 3);
    EXPECT_EQ(parsed.graph().initializer(0).raw_data(), std::string(4, '\0'));
  }
}

// A cut between two top-level fields leaves a well-formed message: protobuf decides which those
// are.
TEST(WireScannerTest, RefusesEveryTruncationThatProtobufRefuses) {
  for (const auto& [name, bytes] : MakeSeedModels()) {
    for (size_t length = 0; length < bytes.size(); ++length) {
      const std::string cut = bytes.substr(0, length);
      const bool is_well_formed = onnx::ModelProto().ParseFromString(cut);
      const auto scanned = ScanModel(Bytes(cut));
      ASSERT_EQ(scanned.ok(), is_well_formed) << name << " cut at " << length;
      if (!scanned.ok()) {
        EXPECT_NE(scanned.status().sentence().find(" of " + std::to_string(length)),
                  std::string_view::npos);
      }
    }
  }
}

TEST(WireScannerTest, RefusesMalformedBytesWithTheirOffset) {
  EXPECT_NE(Refusal({Tag(7, 2), 5, 0}).find("at byte 2 of 3, a field of 5 bytes reaches beyond"),
            std::string::npos);
  EXPECT_NE(Refusal({Tag(1, 0)}).find("a varint reaches beyond the end"), std::string::npos);
  EXPECT_NE(Refusal(std::string(1, Tag(1, 0)) + std::string(11, '\xff')).find("longer than 10"),
            std::string::npos);
  EXPECT_NE(Refusal({Tag(3, 3)}).find("wire type 3"), std::string::npos);
  EXPECT_NE(Refusal({Tag(3, 7)}).find("wire type 7"), std::string::npos);
  EXPECT_NE(Refusal({Tag(0, 0), 0}).find("number 0"), std::string::npos);
  EXPECT_NE(Refusal({Tag(30, 5), 1, 2}).find("4 bytes"), std::string::npos);
  // Graph with a tensor whose packed float_data have 3 bytes.
  EXPECT_NE(Refusal({Tag(7, 2), 7, Tag(5, 2), 5, Tag(4, 2), 3, 1, 2, 3}).find("whole number of 4"),
            std::string::npos);
  EXPECT_NE(Refusal({Tag(7, 2), 0, Tag(7, 2), 0}).find("occurs twice"), std::string::npos);
}

TEST(WireScannerTest, SkipsUnknownFieldsAndFieldsOfAnotherWireType) {
  onnx::ModelProto proto = MakeModel();
  std::string bytes = proto.SerializeAsString();
  bytes += std::string({Tag(15, 0), 1, Tag(15, 2), 2, 'a', 'b'});  // unknown number
  bytes += std::string({Tag(7, 0), 1});                            // graph as a varint
  const auto scanned = ScanModel(Bytes(bytes));
  ASSERT_TRUE(scanned.ok()) << scanned.status().Text();
  onnx::ModelProto parsed;
  ASSERT_TRUE(parsed.ParseFromString(scanned->skeleton));
  EXPECT_EQ(parsed.graph().name(), "main");
}

// Types inside types, deeper than protobuf itself would follow.
TEST(WireScannerTest, RefusesNestingBombs) {
  const auto nest = [](int levels) {
    onnx::ModelProto model = MakeModel();
    onnx::TypeProto* type = model.mutable_graph()->add_input()->mutable_type();
    for (int level = 0; level < levels; ++level) {
      type = type->mutable_sequence_type()->mutable_elem_type();
    }
    return model.SerializeAsString();
  };
  EXPECT_TRUE(ScanModel(Bytes(nest(40))).ok());
  EXPECT_NE(Refusal(nest(60)).find("nest 97 deep, beyond the deepest supported (96)"),
            std::string::npos);
}

}  // namespace
}  // namespace onnxifi::model
