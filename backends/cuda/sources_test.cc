// SPDX-License-Identifier: Apache-2.0
//
// What NVRTC makes of kernels for three architectures. No device is needed.

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "backends/core/codegen/plain_product.h"
#include "backends/core/codegen/testing/source_collector.h"
#include "backends/cuda/compiler.h"

namespace onnxifi::cuda {
namespace {

TEST(SourcesTest, KernelsCompileForEachArchitecture) {
  const auto api = LoadCompilerApi();
  if (!api.ok()) GTEST_SKIP() << api.status().Text();
  constexpr size_t kCount = 30;
  const codegen::CudaDialect dialect;
  const std::vector<std::string> sources =
      codegen::CollectSources(dialect, codegen::PlainProduct(),
                              {.most_group_items = 1024, .shared_bytes = 48 << 10}, kCount);
  size_t turn = 0;
  for (const std::string& source : sources) {
    const int architecture = std::vector{80, 90, 100}[turn++ % 3];
    const auto compiler = Compiler::Create(*api, architecture);
    ASSERT_TRUE(compiler.ok()) << compiler.status().Text();
    const auto binary = compiler->Compile(source);
    ASSERT_TRUE(binary.ok()) << binary.status().Text() << '\n' << source;
    EXPECT_FALSE(binary->empty());
  }
}

TEST(SourcesTest, AMistakeIsRefusedWithWords) {
  const auto api = LoadCompilerApi();
  if (!api.ok()) GTEST_SKIP() << api.status().Text();
  const auto compiler = Compiler::Create(*api, 90);
  ASSERT_TRUE(compiler.ok()) << compiler.status().Text();
  const auto binary = compiler->Compile("extern \"C\" __global__ void run() { nothing = 0; }\n");
  ASSERT_FALSE(binary.ok());
  EXPECT_NE(binary.status().Text().find("nothing"), std::string::npos) << binary.status().Text();
}

}  // namespace
}  // namespace onnxifi::cuda
