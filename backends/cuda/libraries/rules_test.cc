// SPDX-License-Identifier: Apache-2.0
//
// Rules read, and which of them counts; and a library that is not there.

#include "backends/cuda/libraries/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace onnxifi::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kTable[] =
    "# device, cublaslt, type, ...\n"
    "Some GPU, 2nd edition, cublaslt, nonsense\n"
    "Large GPU, cublaslt, float16, 64, 0, 128, 4096, 0, 0\n"
    " Large GPU , cublaslt , float32, 0, 1, 0, 0, 512, 0 \n"
    "\n"
    "Small GPU, cublaslt, float32, 0, 0, 0, 0, 0, 0\n"
    "Third GPU, cudnn, float16, 32, 0, 0, 0, 0, 0\n";

TEST(LibraryRulesTest, RulesOfTheDeviceCountByTypeAndExtents) {
  const auto rules = ParseLibraryRules(kTable, "Large GPU");
  ASSERT_TRUE(rules.ok()) << rules.status().Text();
  const LibraryRules library{.rules = *rules};
  EXPECT_TRUE(library.TakesSome(Library::kCublasLt, "float16"));
  EXPECT_FALSE(library.TakesSome(Library::kCublasLt, "bfloat16"));
  EXPECT_TRUE(library.Takes(Library::kCublasLt, "float16", {64, 128, 1}));
  EXPECT_TRUE(library.Takes(Library::kCublasLt, "float16", {100000, 4096, 1}));
  EXPECT_FALSE(library.Takes(Library::kCublasLt, "float16", {63, 128, 1}));
  EXPECT_FALSE(library.Takes(Library::kCublasLt, "float16", {64, 127, 1}));
  EXPECT_FALSE(library.Takes(Library::kCublasLt, "float16", {64, 4097, 1}));
  EXPECT_TRUE(library.Takes(Library::kCublasLt, "float32", {1, 7, 512}));
  EXPECT_FALSE(library.Takes(Library::kCublasLt, "float32", {1, 7, 511}));
  EXPECT_FALSE(library.Takes(Library::kCublasLt, "float32", {2, 7, 512}));
}

TEST(LibraryRulesTest, AnInstanceHasTheRulesOfItsGpu) {
  EXPECT_EQ(ParseLibraryRules(kTable, "Large GPU MIG 1g.5gb")->size(), 2U);
  EXPECT_EQ(ParseLibraryRules(kTable, "Large GPU 2")->size(), 0U);
}

TEST(LibraryRulesTest, ARuleIsOfOneLibrary) {
  const LibraryRules rules{.rules = *ParseLibraryRules(kTable, "Third GPU")};
  EXPECT_TRUE(rules.Takes(Library::kCudnn, "float16", {32, 1, 1}));
  EXPECT_FALSE(rules.Takes(Library::kCudnn, "float16", {31, 1, 1}));
  EXPECT_FALSE(rules.TakesSome(Library::kCublasLt, "float16"));
  EXPECT_FALSE(rules.Takes(Library::kCublasLt, "float16", {32, 1, 1}));
}

TEST(LibraryRulesTest, TheTableOfMeasuredDevicesIsRead) {
  const LibraryRules rules = FindLibraryRules("NVIDIA H100 80GB HBM3", {});
  EXPECT_TRUE(rules.Takes(Library::kCublasLt, "float32", {256, 3136, 256}));
  EXPECT_FALSE(rules.Takes(Library::kCublasLt, "float32", {256, 3136, 64}));
  EXPECT_FALSE(rules.Takes(Library::kCublasLt, "float32", {128, 768, 768}));
  EXPECT_TRUE(rules.Takes(Library::kCublasLt, "bfloat16", {128, 768, 768}));
  EXPECT_FALSE(rules.Takes(Library::kCublasLt, "bfloat16", {8, 768, 768}));
  EXPECT_FALSE(
      FindLibraryRules("NVIDIA GPU of no table", {}).TakesSome(Library::kCublasLt, "float32"));
}

// Of a product or a convolution of one tap, in ms.
struct Figures {
  std::string type;
  ProductExtents extents;
  double ours = 0, library = 0;
};

std::vector<std::string> Cells(const std::string& line) {
  std::vector<std::string> cells;
  std::stringstream stream(line);
  for (std::string cell; std::getline(stream, cell, '|');) {
    const size_t begin = cell.find_first_not_of(' ');
    const size_t end = cell.find_last_not_of(' ');
    cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
  }
  return cells;
}

// As in "1 of 1024x1024x1024", or "512x28x28 to 128", which is one of an image.
bool ReadExtents(const std::string& text, ProductExtents& extents) {
  long long m = 0, n = 0, k = 0, channels = 0, y = 0, x = 0, outputs = 0;
  if (std::sscanf(text.c_str(), "%lldx%lldx%lld to %lld", &channels, &y, &x, &outputs) == 4) {
    extents = {outputs, y * x, channels};
    return true;
  }
  if (std::sscanf(text.c_str(), "%*d of %lldx%lldx%lld", &m, &n, &k) == 3) {
    extents = {m, n, k};
    return true;
  }
  return false;
}

// What was measured on an H100: of the library and ours, and of our kernels as they are since.
std::vector<Figures> MeasuredOnAnH100() {
  std::vector<Figures> all;
  std::ifstream first(ONNXIFI_TEST_MEASUREMENTS "/cublaslt-2026-11-27-h100.md");
  for (std::string line; std::getline(first, line);) {
    const std::vector<std::string> cells = Cells(line);
    Figures figures;
    if (cells.size() < 5 || !ReadExtents(cells[2], figures.extents)) continue;
    figures.type = cells[1];
    figures.ours = std::stod(cells[3]);
    figures.library = std::stod(cells[4]);
    all.push_back(figures);
  }
  std::ifstream later(ONNXIFI_TEST_MEASUREMENTS "/cuda-2026-11-27-h100.md");
  for (std::string line; std::getline(later, line);) {
    const std::vector<std::string> cells = Cells(line);
    ProductExtents extents;
    if (cells.size() < 4 || cells[3].empty() || cells[1].find("3xTF32") != std::string::npos) {
      continue;
    }
    const bool is_product =
        cells[1].starts_with("gemm ") && ReadExtents("1 of " + cells[1].substr(5), extents);
    long long channels = 0, y = 0, x = 0, outputs = 0;
    const bool is_convolution = std::sscanf(cells[1].c_str(), "conv %lldx%lldx%lld 1x1 to %lld",
                                            &channels, &y, &x, &outputs) == 4;
    if (is_convolution) extents = {outputs, y * x, channels};
    if (!is_product && !is_convolution) continue;
    const char* const type = cells[1].find("float16") != std::string::npos ? "float16" : "float32";
    for (Figures& figures : all) {
      const ProductExtents& of = figures.extents;
      if (figures.type == type && of.rows == extents.rows && of.columns == extents.columns &&
          of.depth == extents.depth) {
        figures.ours = std::stod(cells[3]);
      }
    }
  }
  return all;
}

TEST(LibraryRulesTest, ALibraryIsTakenOnlyWhereItMeasuredFaster) {
  const LibraryRules rules = FindLibraryRules("NVIDIA H100 80GB HBM3", {});
  int taken = 0, ours = 0;
  for (const Figures& figures : MeasuredOnAnH100()) {
    const bool is_taken = rules.Takes(Library::kCublasLt, figures.type, figures.extents);
    ++(is_taken ? taken : ours);
    if (!is_taken) continue;
    EXPECT_GE(figures.ours, 1.1 * figures.library)
        << figures.type << " of " << figures.extents.rows << " rows, " << figures.extents.columns
        << " columns and depth " << figures.extents.depth;
  }
  EXPECT_EQ(taken, 12);
  EXPECT_EQ(ours, 22);
  // It has not run on a GPU.
  for (const char* const type : {"float32", "tf32", "float16", "bfloat16"}) {
    EXPECT_FALSE(rules.TakesSome(Library::kCudnn, type)) << type;
  }
}

TEST(LibraryRulesTest, ALineThatSaysNothingIsNamed) {
  for (const char* const line :
       {"G", "G, cublas, float32, 0, 0, 0, 0, 0, 0", "G, cublaslt, float64, 0, 0, 0, 0, 0, 0",
        "G, cublaslt, float32, 0, 0, 0, 0, 0", "G, cublaslt, float32, 0, 0, 0, 0, 0, 0, 0",
        "G, cublaslt, float32, 0, 0, -1, 0, 0, 0", "G, cublaslt, float32, 0, 0, x, 0, 0, 0",
        "G, cublaslt, float32, 0, 0, 64, 63, 0, 0"}) {
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
  EXPECT_TRUE(find().Takes(Library::kCublasLt, "float32", {1, 1, 1}));
  EXPECT_FALSE(find().Takes(Library::kCublasLt, "int8", {1, 1, 1}));
  setenv("ONNXIFI_CUDA_LIBRARIES", "never", /*replace=*/1);
  EXPECT_FALSE(find().Takes(Library::kCublasLt, "float32", {1, 1, 1}));
  EXPECT_FALSE(find().TakesSome(Library::kCublasLt, "float32"));
  setenv("ONNXIFI_CUDA_LIBRARIES", "always", /*replace=*/1);
  EXPECT_TRUE(find().Takes(Library::kCublasLt, "int8", {1, 1, 1}));
  // One of them alone.
  setenv("ONNXIFI_CUDA_LIBRARIES", "cudnn", /*replace=*/1);
  EXPECT_TRUE(find().Takes(Library::kCudnn, "float32", {1, 1, 1}));
  EXPECT_FALSE(find().TakesSome(Library::kCublasLt, "float32"));
  setenv("ONNXIFI_CUDA_LIBRARIES", "cublaslt", /*replace=*/1);
  EXPECT_TRUE(find().Takes(Library::kCublasLt, "int8", {1, 1, 1}));
  EXPECT_FALSE(find().TakesSome(Library::kCudnn, "float32"));
  unsetenv("ONNXIFI_CUDA_LIBRARIES");
  // No file, and one that says nothing.
  EXPECT_FALSE(
      FindLibraryRules("Small GPU", folder / "none").TakesSome(Library::kCublasLt, "float32"));
  std::ofstream(folder / kLibrariesFile) << kTable << "Small GPU, cublaslt, float31\n";
  testing::internal::CaptureStderr();
  EXPECT_FALSE(find().TakesSome(Library::kCublasLt, "float32"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("Small GPU, cublaslt, float31"),
                    HasSubstr("No rule counts of " + (folder / kLibrariesFile).string())));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace onnxifi::cuda
