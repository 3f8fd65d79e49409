// SPDX-License-Identifier: Apache-2.0
//
// What attention takes of a device's memory. The device is the one that only compiles
// (compile_only.h): memory is asked for as on a GPU, and nothing is computed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/core/execution/host_boundary.h"
#include "backends/core/execution/testing/run_program.h"
#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/plan/plan.h"
#include "backends/core/plugin/pipeline.h"
#include "backends/cuda/compile_only.h"
#include "backends/cuda/device.h"

namespace onnxifi::cuda {
namespace {

using tensor::ElementType;
using tensor::Tensor;

constexpr int64_t kHeads = 16;
constexpr int64_t kTokens = 4096;
constexpr int64_t kWidth = 64;

// Of what the driver was asked for. Its functions have no state, so that this is global.
std::mutex mutex;
std::map<CUdeviceptr, int64_t> pieces;
int64_t held_bytes = 0;
int64_t most_bytes = 0;

CUresult CountedAlloc(CUdeviceptr* address, size_t size_bytes) {
  static const Api plain = CompileOnlyApi(90);
  const CUresult result = plain.MemAlloc(address, size_bytes);
  const std::lock_guard lock(mutex);
  if (result == CUDA_SUCCESS) {
    pieces[*address] = static_cast<int64_t>(size_bytes);
    held_bytes += static_cast<int64_t>(size_bytes);
    most_bytes = std::max(most_bytes, held_bytes);
  }
  return result;
}

CUresult CountedFree(CUdeviceptr address) {
  const std::lock_guard lock(mutex);
  held_bytes -= pieces.at(address);
  pieces.erase(address);
  return CUDA_SUCCESS;
}

// Softmax of the scaled products of queries and keys, times the values: [heads, tokens, width]
// each. `has_shares`: the least of each row of Softmax's results is an output, too.
graph::Graph Attention(ElementType type, bool has_shares) {
  graph::testing::GraphBuilder builder;
  graph::Type of_input;
  of_input.kind = graph::Type::Kind::kTensor;
  of_input.element = type;
  of_input.extents = {graph::Extent{kHeads, ""}, graph::Extent{kTokens, ""},
                      graph::Extent{kWidth, ""}};
  const graph::ValueId queries = builder.AddInput("queries", of_input);
  const graph::ValueId keys = builder.AddInput("keys", of_input);
  const graph::ValueId values = builder.AddInput("values", of_input);
  Tensor scale = *Tensor::Allocate(type, {});
  tensor::StoreScalar(type, scale.mutable_data(), 0, tensor::Scalar{.f = 0.125});
  const graph::ValueId turned =
      builder.AddNode("Transpose", 13, {keys}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  const graph::ValueId scores = builder.AddNode(
      "Mul", 14,
      {builder.AddNode("MatMul", 13, {queries, turned}), builder.AddConstant(std::move(scale))});
  const graph::ValueId shares = builder.AddNode("Softmax", 13, {scores}, {{"axis", int64_t{-1}}});
  const graph::ValueId result = builder.AddNode("MatMul", 13, {shares, values});
  if (!has_shares) return builder.Take({result});
  const graph::ValueId least =
      builder.AddNode("ReduceMin", 13, {shares}, {{"axes", std::vector<int64_t>{-1}}});
  return builder.Take({result, least});
}

// The most that a run holds at a time, from the first question to its end.
void FindMostBytes(ElementType type, bool has_shares) {
  held_bytes = most_bytes = 0;
  Api api = CompileOnlyApi(90);
  api.MemAlloc = CountedAlloc;
  api.MemFree = CountedFree;
  const auto devices = FindDevices(api);
  ASSERT_TRUE(devices.ok()) << devices.status().Text();
  const auto device = Device::Open(api, *LoadCompilerApi(), devices->fit.at(0), {});
  ASSERT_TRUE(device.ok()) << device.status().Text();
  plugin::LoadTimes times;
  const auto program = plugin::Compile(Attention(type, has_shares), **device, base::Log(), times);
  ASSERT_TRUE(program.ok()) << program.status().Text();
  plan::Counters counters;
  const auto plan = plan::Plan::Create(**program, **device, counters);
  ASSERT_TRUE(plan.ok()) << plan.status().Text();
  execution::Executor executor(**plan);
  const auto boundary = execution::HostBoundary::Create(executor);
  ASSERT_TRUE(boundary.ok()) << boundary.status().Text();
  const std::vector<Tensor> inputs(3, *Tensor::Allocate(type, {kHeads, kTokens, kWidth}));
  execution::TensorOutputs outputs(**program);
  const base::Status ran = (*boundary)->Run(execution::AsInputs(inputs), outputs);
  ASSERT_TRUE(ran.ok()) << ran.Text();
}

TEST(AttentionMemoryTest, GrowsWithTokensAndNotWithTheirSquare) {
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBfloat16}) {
    const int64_t tensor_bytes = tensor::SizeBytes(type, kHeads * kTokens * kWidth);
    const int64_t limit_bytes = 4 * tensor_bytes * 3 / 2;
    ASSERT_NO_FATAL_FAILURE(FindMostBytes(type, /*has_shares=*/false));
    EXPECT_GE(most_bytes, 4 * tensor_bytes) << "queries, keys, values and the result";
    EXPECT_LT(most_bytes, limit_bytes);
    // Where something else reads the shares they are in memory, which is seen here.
    ASSERT_NO_FATAL_FAILURE(FindMostBytes(type, /*has_shares=*/true));
    EXPECT_GT(most_bytes, limit_bytes);
  }
}

}  // namespace
}  // namespace onnxifi::cuda
