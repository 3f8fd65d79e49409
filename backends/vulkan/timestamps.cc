// SPDX-License-Identifier: Apache-2.0
//
// Timestamps: a pool is reset by the commands that first use it.

#include "backends/vulkan/timestamps.h"

#include <algorithm>

namespace onnxifi::vulkan {

base::Result<uint32_t> Timestamps::Mark(VkCommandBuffer commands) {
  const DeviceApi& api = runtime_.api();
  const uint32_t pool = count_ / kPoolMarks;
  if (pool == pools_.size()) {
    VkQueryPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = kPoolMarks;
    VkQueryPool created = VK_NULL_HANDLE;
    ONNXIFI_RETURN_IF_ERROR(
        runtime_.Check(api.CreateQueryPool(runtime_.device(), &info, nullptr, &created),
                       "create a pool of queries"));
    pools_.emplace_back(runtime_.device(), created, api.DestroyQueryPool);
  }
  const uint32_t place = count_ % kPoolMarks;
  if (place == 0) api.CmdResetQueryPool(commands, pools_[pool].get(), 0, kPoolMarks);
  api.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pools_[pool].get(), place);
  return count_++;
}

base::Result<std::vector<std::chrono::nanoseconds>> Timestamps::Read() const {
  std::vector<uint64_t> ticks(count_);
  for (uint32_t first = 0; first < count_; first += kPoolMarks) {
    const uint32_t marks = std::min(kPoolMarks, count_ - first);
    ONNXIFI_RETURN_IF_ERROR(runtime_.Check(
        runtime_.api().GetQueryPoolResults(runtime_.device(), pools_[first / kPoolMarks].get(), 0,
                                           marks, marks * sizeof(uint64_t), ticks.data() + first,
                                           sizeof(uint64_t),
                                           VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
        "tell when a kernel ran"));
  }
  std::vector<std::chrono::nanoseconds> times;
  times.reserve(count_);
  for (const uint64_t tick : ticks) {
    times.emplace_back(static_cast<int64_t>(static_cast<double>(tick - ticks.front()) *
                                            runtime_.info().timestamp_period_ns));
  }
  return times;
}

}  // namespace onnxifi::vulkan
