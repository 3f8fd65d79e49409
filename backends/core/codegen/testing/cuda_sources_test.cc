// SPDX-License-Identifier: Apache-2.0
//
// CudaDialect: a thousand kernels are C++ that a host compiler takes, and have their barriers where
// all items come by. What they compute is not tested here.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "backends/core/codegen/plain_product.h"
#include "backends/core/codegen/testing/source_collector.h"

namespace onnxifi::codegen {
namespace {

namespace fs = std::filesystem;

// A folder of this process, removed at the end.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("cuda_sources_" + std::to_string(getpid()))) {
    fs::create_directory(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  const fs::path path_;
};

// Several kernels as one unit: each in a namespace of its own, without C linkage.
std::string UnitOf(const std::vector<std::string>& sources, size_t first, size_t end) {
  std::string unit = "#include \"backends/core/codegen/testing/cuda_stub.h\"\n";
  for (size_t k = first; k < end; ++k) {
    std::string source = sources[k];
    const std::string linkage = "extern \"C\" ";
    const size_t at = source.find(linkage);
    if (at != std::string::npos) source.erase(at, linkage.size());
    // Macros end with their kernel.
    std::set<std::string> names;
    const std::string define = "#define ";
    for (size_t found = source.find(define); found != std::string::npos;
         found = source.find(define, found + 1)) {
      const size_t begin = found + define.size();
      names.insert(source.substr(begin, source.find_first_of("( \n", begin) - begin));
    }
    unit += "namespace kernel_" + std::to_string(k) + " {\n" + source + "}\n";
    for (const std::string& name : names) unit += "#undef " + name + "\n";
  }
  return unit;
}

bool IsCompiled(const fs::path& folder, const std::string& unit) {
  const fs::path file = folder / "kernels.cc";
  std::ofstream(file) << unit;
  const std::string command = std::string(ONNXIFI_TEST_COMPILER) +
                              " -std=c++17 -fsyntax-only -w "
                              "-I" +
                              fs::current_path().string() + " " + file.string();
  return std::system(command.c_str()) == 0;
}

TEST(CudaSourcesTest, AThousandKernelsAreCpp) {
  constexpr size_t kCount = 1000;
  constexpr size_t kPerUnit = 100;
  const Folder folder;
  const CudaDialect dialect;
  for (const bool is_processor : {false, true}) {
    // A block's sums are scalar variables of each item, whatever the device.
    const std::vector<std::string> sources =
        CollectSources(dialect, PlainProduct(),
                       {.is_processor = is_processor, .vector_bits = 128, .most_group_items = 1024},
                       is_processor ? kCount / 10 : kCount);
    for (size_t first = 0; first < sources.size(); first += kPerUnit) {
      const size_t end = std::min(first + kPerUnit, sources.size());
      ASSERT_TRUE(IsCompiled(folder.path(), UnitOf(sources, first, end))) << first;
    }
  }
}

TEST(CudaSourcesTest, AMistakeIsFound) {
  const Folder folder;
  EXPECT_FALSE(IsCompiled(folder.path(), UnitOf({"void run() { LOAD(nothing, 0); }"}, 0, 1)));
}

TEST(CudaSourcesTest, NumbersAreOneParameter) {
  const std::vector<std::string> sources =
      CollectSources(CudaDialect(), PlainProduct(), {.most_group_items = 256}, 7);
  for (const std::string& source : sources) {
    EXPECT_NE(source.find("const Numbers numbers, const u64 count)"), std::string::npos);
  }
}

// The first condition around a barrier, or nothing.
std::string ConditionOfABarrier(const std::string& source) {
  std::vector<std::string> open;  // the line that opened each block
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, line.find_first_not_of(' '));
    if (line == "BARRIER;") {
      for (const std::string& block : open) {
        if (block.starts_with("if ") || block.starts_with("else")) return block;
      }
    }
    for (const char c : line) {
      if (c == '{') open.push_back(line);
      if (c == '}' && !open.empty()) open.pop_back();
    }
  }
  return {};
}

// A compiler may make something else of a condition that all items of a group share: PoCL's 3.1
// writes behind its memory.
TEST(CudaSourcesTest, NoBarrierStandsBehindACondition) {
  EXPECT_EQ(ConditionOfABarrier("{\n  if (x) {\n    y;\n  }\n  BARRIER;\n}\n"), "");
  EXPECT_EQ(ConditionOfABarrier("{\n  if (x) {\n    for (;;) {\n      BARRIER;\n"), "if (x) {");
  size_t barriers = 0;
  for (const std::string& source : CollectSources(
           CudaDialect(), PlainProduct(),
           {.is_processor = false, .vector_bits = 128, .most_group_items = 1024}, 1000)) {
    if (source.find("  BARRIER;") != std::string::npos) ++barriers;
    EXPECT_EQ(ConditionOfABarrier(source), "") << source;
  }
  EXPECT_GT(barriers, 100U);
}

// Which number of the binding a source divides by, such as "n3", or nothing.
std::string DivisorOf(const std::string& source) {
  for (const char sign : {'/', '%'}) {
    const std::string division = std::string(" ") + sign + " n";
    for (size_t at = source.find(division); at != std::string::npos;
         at = source.find(division, at + 1)) {
      const size_t begin = at + division.size() - 1;
      const size_t end = source.find_first_not_of("0123456789", begin + 1);
      if (end > begin + 1) return source.substr(begin, end - begin);
    }
  }
  return {};
}

// A division of 32 bits takes a GPU twenty instructions and more.
TEST(CudaSourcesTest, NarrowProductsDivideByNoNumberOfTheBinding) {
  EXPECT_EQ(DivisorOf("v1 / n12;"), "n12");
  EXPECT_EQ(DivisorOf("v1 % n0 + 1"), "n0");
  EXPECT_EQ(DivisorOf("v1 / v12 % next / 4"), "");
  constexpr reference::Family kProducts[] = {reference::Family::kContract};
  for (const bool is_processor : {true, false}) {
    size_t narrow = 0;
    for (const std::string& source : CollectSources(
             CudaDialect(), PlainProduct(),
             {.is_processor = is_processor, .vector_bits = 128, .most_group_items = 1024}, 400, {},
             kProducts)) {
      if (source.find("typedef int idx;") == std::string::npos) continue;
      ++narrow;
      ASSERT_EQ(DivisorOf(source), "") << source;
    }
    EXPECT_GT(narrow, 300U);
  }
}

}  // namespace
}  // namespace onnxifi::codegen
