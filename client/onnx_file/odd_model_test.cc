// SPDX-License-Identifier: Apache-2.0
//
// OddModel: where the weights lie, and that the model says what it said.

#include "client/onnx_file/odd_model.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "client/onnx_file/tensor_file.h"
#include "client/onnx_file/wire_reader.h"
#include "client/onnx_file/wire_writer.h"

namespace onnxifi::onnx_file {
namespace {

std::span<const std::byte> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Initializers of 1 to `count` bytes, so that raw data start at offsets of both parities and
// lengths of one and two bytes occur.
std::string Model(int count, const std::string& producer) {
  std::string graph;
  AppendBytesField(graph, 2, "name");
  for (int size = 1; size <= count; ++size) {
    DenseTensor tensor;
    tensor.name = "w" + std::to_string(size);
    tensor.type = ElementType::kUint8;
    tensor.extents = {size};
    tensor.bytes.assign(static_cast<size_t>(size), static_cast<std::byte>(size));
    AppendBytesField(graph, 5, SerializeTensor(tensor));
  }
  std::string model;
  AppendIntegerField(model, 1, 10);
  AppendBytesField(model, 2, producer);
  AppendBytesField(model, 7, graph);
  return model;
}

// The raw data of every initializer.
std::vector<std::span<const std::byte>> RawData(std::span<const std::byte> model) {
  std::vector<std::span<const std::byte>> found;
  WireField field;
  for (WireReader reader(model); *reader.Next(field);) {
    if (field.number != 7) continue;
    WireField part;
    for (WireReader graph_reader(field.bytes); *graph_reader.Next(part);) {
      if (part.number != 5) continue;
      WireField member;
      for (WireReader tensor_reader(part.bytes); *tensor_reader.Next(member);) {
        if (member.number == 9) found.push_back(member.bytes);
      }
    }
  }
  return found;
}

TEST(OddModel, HasEveryWeightAtAnOddAddress) {
  constexpr int kCount = 200;
  for (const std::string producer : {"x", "xy"}) {
    const std::string plain = Model(kCount, producer);
    const auto odd = OddModel::Make(Bytes(plain));
    ASSERT_TRUE(odd.ok()) << odd.status().Text();
    const auto weights = RawData(odd->content());
    ASSERT_EQ(weights.size(), size_t{kCount});
    for (const auto& weight : weights) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(weight.data()) % 2, 1u) << weight.size();
    }
  }
}

TEST(OddModel, SaysWhatTheModelSays) {
  const std::string plain = Model(200, "x");
  const auto odd = OddModel::Make(Bytes(plain));
  ASSERT_TRUE(odd.ok());
  const auto expected = RawData(Bytes(plain));
  const auto weights = RawData(odd->content());
  ASSERT_EQ(weights.size(), expected.size());
  for (size_t index = 0; index < weights.size(); ++index) {
    EXPECT_TRUE(std::ranges::equal(weights[index], expected[index])) << index;
  }
  const std::string empty = Model(0, "x");
  EXPECT_TRUE(std::ranges::equal(OddModel::Make(Bytes(empty))->content(), Bytes(empty)));
  const std::string torn = plain.substr(0, plain.size() - 1);
  EXPECT_EQ(OddModel::Make(Bytes(torn)).status().code(), base::Code::kInvalidProtobuf);
}

}  // namespace
}  // namespace onnxifi::onnx_file
