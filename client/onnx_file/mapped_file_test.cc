// SPDX-License-Identifier: Apache-2.0
//
// Files that are mapped, and what is no file.

#include "client/onnx_file/mapped_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "client/onnx_file/tensor_file.h"

namespace onnxifi::onnx_file {
namespace {

class MappedFileTest : public ::testing::Test {
 public:
  MappedFileTest() { std::filesystem::create_directories(folder_); }
  ~MappedFileTest() override { std::filesystem::remove_all(folder_); }

 protected:
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("onnxifi_mapped_file_" + std::to_string(getpid()));
};

TEST_F(MappedFileTest, ShowsWhatTheFileHoldsAndOutlivesItsName) {
  std::string text(300'001, '\0');
  uint32_t state = 7;
  for (char& letter : text) {
    state = state * 1'664'525 + 1'013'904'223;
    letter = static_cast<char>(state >> 24);
  }
  ASSERT_TRUE(WriteFile(folder_ / "file", text).ok());
  auto opened = MappedFile::Open(folder_ / "file");
  ASSERT_TRUE(opened.ok()) << opened.status().Text();
  const MappedFile moved = *std::move(opened);
  std::filesystem::remove(folder_ / "file");
  const auto content = moved.content();
  ASSERT_EQ(content.size(), text.size());
  EXPECT_TRUE(std::equal(content.begin(), content.end(), text.begin(),
                         [](std::byte byte, char letter) { return byte == std::byte(letter); }));
}

TEST_F(MappedFileTest, AnEmptyFileIsNoBytes) {
  ASSERT_TRUE(WriteFile(folder_ / "empty", "").ok());
  const auto opened = MappedFile::Open(folder_ / "empty");
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE(opened->content().empty());
}

TEST_F(MappedFileTest, RefusesWhatIsMissingAndWhatIsNoFile) {
  const auto missing = MappedFile::Open(folder_ / "missing");
  EXPECT_EQ(missing.status().code(), base::Code::kInvalidName);
  EXPECT_NE(missing.status().sentence().find("No such file"), std::string_view::npos);
  const auto folder = MappedFile::Open(folder_);
  EXPECT_EQ(folder.status().code(), base::Code::kInvalidName);
  EXPECT_NE(folder.status().sentence().find("not a plain file"), std::string_view::npos);
}

}  // namespace
}  // namespace onnxifi::onnx_file
