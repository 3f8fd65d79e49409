// SPDX-License-Identifier: Apache-2.0
//
// Rules read, and which of them counts; and a library that is not there.

#include "backends/cuda/libraries/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace onnxifi::cuda {
namespace {

using testing::HasSubstr;

constexpr char kTable[] =
    "# device, cublaslt, type, ...\n"
    "Some GPU, 2nd edition, cublaslt, nonsense\n"
    "Large GPU, cublaslt, float16, 64, 0, 128, 4096, 0, 0\n"
    " Large GPU , cublaslt , float32, 0, 1, 0, 0, 512, 0 \n"
    "\n"
    "Small GPU, cublaslt, float32, 0, 0, 0, 0, 0, 0\n";

TEST(LibraryRulesTest, RulesOfTheDeviceCountByTypeAndExtents) {
  const auto rules = ParseLibraryRules(kTable, "Large GPU");
  ASSERT_TRUE(rules.ok()) << rules.status().Text();
  const LibraryRules library{.products = *rules};
  EXPECT_TRUE(library.TakesSome("float16"));
  EXPECT_FALSE(library.TakesSome("bfloat16"));
  EXPECT_TRUE(library.Takes("float16", {64, 128, 1}));
  EXPECT_TRUE(library.Takes("float16", {100000, 4096, 1}));
  EXPECT_FALSE(library.Takes("float16", {63, 128, 1}));
  EXPECT_FALSE(library.Takes("float16", {64, 127, 1}));
  EXPECT_FALSE(library.Takes("float16", {64, 4097, 1}));
  EXPECT_TRUE(library.Takes("float32", {1, 7, 512}));
  EXPECT_FALSE(library.Takes("float32", {1, 7, 511}));
  EXPECT_FALSE(library.Takes("float32", {2, 7, 512}));
}

TEST(LibraryRulesTest, AnInstanceHasTheRulesOfItsGpu) {
  EXPECT_EQ(ParseLibraryRules(kTable, "Large GPU MIG 1g.5gb")->size(), 2U);
  EXPECT_EQ(ParseLibraryRules(kTable, "Large GPU 2")->size(), 0U);
}

TEST(LibraryRulesTest, TheTableOfMeasuredDevicesIsRead) {
  const LibraryRules rules = FindLibraryRules("NVIDIA H100 80GB HBM3", {});
  EXPECT_TRUE(rules.Takes("float32", {256, 3136, 256}));
  EXPECT_FALSE(rules.Takes("float32", {256, 3136, 64}));
  EXPECT_FALSE(rules.Takes("float32", {128, 768, 768}));
  EXPECT_TRUE(rules.Takes("bfloat16", {128, 768, 768}));
  EXPECT_FALSE(rules.Takes("bfloat16", {8, 768, 768}));
  EXPECT_FALSE(FindLibraryRules("NVIDIA GPU of no table", {}).TakesSome("float32"));
}

TEST(LibraryRulesTest, ALineThatSaysNothingIsNamed) {
  for (const char* const line :
       {"G", "G, cublas, float32, 0, 0, 0, 0, 0, 0", "G, cublaslt, float64, 0, 0, 0, 0, 0, 0",
        "G, cublaslt, float32, 0, 0, 0, 0, 0", "G, cublaslt, float32, 0, 0, 0, 0, 0, 0, 0",
        "G, cublaslt, float32, 0, 0, -1, 0, 0, 0", "G, cublaslt, float32, 0, 0, x, 0, 0, 0"}) {
    const auto rules = ParseLibraryRules(line, "G");
    ASSERT_FALSE(rules.ok()) << line;
    EXPECT_EQ(rules.status().code(), base::Code::kInvalidProperty);
    EXPECT_THAT(rules.status().Text(), HasSubstr(line));
  }
}

TEST(LibraryRulesTest, TheVariableIsBeforeAllRules) {
  std::string name = (std::filesystem::temp_directory_path() / "cuda_rules.XXXXXX").string();
  const std::filesystem::path folder = mkdtemp(name.data());
  std::ofstream(folder / kLibrariesFile) << kTable;
  const auto find = [&] { return FindLibraryRules("Small GPU", folder / kLibrariesFile); };
  EXPECT_TRUE(find().Takes("float32", {1, 1, 1}));
  EXPECT_FALSE(find().Takes("int8", {1, 1, 1}));
  setenv("ONNXIFI_CUDA_LIBRARIES", "never", /*replace=*/1);
  EXPECT_FALSE(find().Takes("float32", {1, 1, 1}));
  EXPECT_FALSE(find().TakesSome("float32"));
  setenv("ONNXIFI_CUDA_LIBRARIES", "always", /*replace=*/1);
  EXPECT_TRUE(find().Takes("int8", {1, 1, 1}));
  unsetenv("ONNXIFI_CUDA_LIBRARIES");
  // No file, and one that says nothing.
  EXPECT_FALSE(FindLibraryRules("Small GPU", folder / "none").TakesSome("float32"));
  std::ofstream(folder / kLibrariesFile) << kTable << "Small GPU, cublaslt, float31\n";
  EXPECT_FALSE(find().TakesSome("float32"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace onnxifi::cuda
