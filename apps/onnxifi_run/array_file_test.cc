// SPDX-License-Identifier: Apache-2.0
//
// Arrays written here byte by byte, as numpy writes them.

#include "apps/onnxifi_run/array_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace onnxifi::run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string MakeFile(const std::string& header, const std::string& data) {
  std::string file = "\x93NUMPY";
  file += std::string("\x01\x00", 2);
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  return file + header + data;
}

base::Result<onnx_file::DenseTensor> Parse(const std::string& file) {
  return ParseArray(std::as_bytes(std::span(file)));
}

TEST(ArrayFileTest, ReadsRowMajorFloats) {
  const auto tensor =
      Parse(MakeFile("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }\n",
                     std::string("\x00\x00\x80\x3F\x00\x00\x00\x40", 8)));
  ASSERT_TRUE(tensor.ok()) << tensor.status().Text();
  EXPECT_EQ(tensor->type, onnx_file::ElementType::kFloat32);
  EXPECT_THAT(tensor->extents, ElementsAre(1, 2));
  EXPECT_EQ(tensor->bytes.size(), 8u);
}

TEST(ArrayFileTest, ReadsScalarsAndVectors) {
  const auto scalar =
      Parse(MakeFile("{'descr': '|b1', 'fortran_order': False, 'shape': (), }\n", "\x01"));
  ASSERT_TRUE(scalar.ok()) << scalar.status().Text();
  EXPECT_TRUE(scalar->extents.empty());
  const auto vector =
      Parse(MakeFile("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n", "abc"));
  ASSERT_TRUE(vector.ok()) << vector.status().Text();
  EXPECT_THAT(vector->extents, ElementsAre(3));
}

TEST(ArrayFileTest, RefusesWhatItCannotRead) {
  const auto expect = [](const std::string& file, const char* sentence) {
    const auto tensor = Parse(file);
    ASSERT_FALSE(tensor.ok());
    EXPECT_THAT(tensor.status().Text(), HasSubstr(sentence));
  };
  expect("something else entirely", "does not start");
  expect(MakeFile("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }\n", "abcd"),
         "column-major");
  expect(MakeFile("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }\n", "abcd"), "'>f4'");
  expect(MakeFile("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", "abcd"),
         "[2] does not go with 4 bytes");
  expect(MakeFile("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }\n", "abcd"),
         "does not go with");
  expect(MakeFile("{'descr': '<f4', 'fortran_order': False, 'shape': (x,), }\n", "abcd"),
         "numbers");
}

TEST(ArrayFileTest, EveryTruncationIsRefused) {
  const std::string file =
      MakeFile("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n", "abc");
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(Parse(file.substr(0, size)).ok()) << size;
  }
}

}  // namespace
}  // namespace onnxifi::run
