// SPDX-License-Identifier: Apache-2.0
//
// Story: what a plugin does with CUDA's driver and with NVRTC, from the first question to the end
// of runs, for tests that let a call fail or count what is compiled. On the emulated device.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_STORY_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_STORY_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/execution/testing/story_model.h"
#include "backends/cuda/device.h"
#include "backends/cuda/testing/emulated/control.h"

namespace onnxifi::cuda {

class Story {
 public:
  explicit Story(std::filesystem::path cache_folder, size_t index = 0)
      : cache_folder_(std::move(cache_folder)), index_(index) {}

  base::Status Open() { return Open(*LoadApi(), *LoadCompilerApi()); }
  base::Status Open(const Api& api, const CompilerApi& compiler_api, bool compiles_only = false) {
    ONNXIFI_ASSIGN_OR_RETURN(DeviceInfo info, FindDevice(api));
    info.is_compiled_for_only = compiles_only_ = compiles_only;
    return OpenOn(api, compiler_api, info);
  }

  base::Status Run(int64_t rows) { return model_.Run(rows, !compiles_only_); }

  // Without waiting, from and to the caller's memory on the device: sums, then products.
  base::Status RunInside(CUdeviceptr from, CUdeviceptr sums, CUdeviceptr products, int64_t rows) {
    const execution::InputTensor input{.data = reinterpret_cast<const std::byte*>(from),
                                       .extents = {rows, execution::StoryModel::kDepth},
                                       .is_inside = true};
    Inside outputs({reinterpret_cast<std::byte*>(sums), reinterpret_cast<std::byte*>(products)});
    return model_.boundary().Run(std::span(&input, 1), outputs, nullptr, nullptr,
                                 execution::HostBoundary::End::kQueued);
  }

  // An event each way, memory of the caller's, and memory that host and device share.
  base::Status Share() {
    ONNXIFI_ASSIGN_OR_RETURN(const device::Sharing::NewEvent made, device_->sharing().MakeEvent());
    std::promise<base::Status> told;
    const base::Status waits = device_->sharing().WhenComplete(
        made.event, [&](const base::Status& status) { told.set_value(base::Status(status)); });
    made.complete(base::Ok());
    const base::Status end = waits.ok() ? told.get_future().get() : base::Status(waits);
    Destroy(made.event);
    ONNXIFI_RETURN_IF_ERROR(base::Status(end));
    ONNXIFI_ASSIGN_OR_RETURN(const device::Sharing::SharedMemory shared,
                             device_->sharing().AllocateShared(64));
    ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<device::Allocation> memory,
                             device_->memory().Allocate(64));
    return device_->sharing()
        .ImportMemory(reinterpret_cast<uintptr_t>(memory->data()), 64,
                      device::Sharing::Access::kWrite)
        .status();
  }

  // As a receiver does, with a context that is current.
  static void Destroy(const device::Sharing::NativeEvent& event) {
    const Api api = *LoadApi();
    CUcontext context = nullptr;
    if (api.DevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return;
    api.CtxPushCurrent(context);
    api.EventDestroy(reinterpret_cast<CUevent>(static_cast<uintptr_t>(event.handle)));
    api.CtxPopCurrent(&context);
    api.DevicePrimaryCtxRelease(0);
  }

  base::Status All() { return All(*LoadApi(), *LoadCompilerApi()); }
  base::Status All(const Api& api, const CompilerApi& compiler_api) {
    ONNXIFI_RETURN_IF_ERROR(Open(api, compiler_api));
    // The third is recorded, the fourth replayed.
    for (int run = 0; run < 4; ++run) ONNXIFI_RETURN_IF_ERROR(Run(3));
    ONNXIFI_RETURN_IF_ERROR(Run(700));
    ONNXIFI_RETURN_IF_ERROR(Share());
    return OnCallersStream(api, compiler_api);
  }

  // Of a caller with a stream of his own: runs in it, and one that he captures and starts twice.
  base::Status OnCallersStream(const Api& api, const CompilerApi& compiler_api) const {
    constexpr int64_t kRows = 3;
    ONNXIFI_ASSIGN_OR_RETURN(const DeviceInfo info, FindDevice(api));
    ONNXIFI_ASSIGN_OR_RETURN(const auto context, Context::Retain(api, info));
    CUstream stream = nullptr;
    ONNXIFI_RETURN_IF_ERROR(
        context->Do("create a stream", [&] { return api.StreamCreate(&stream, 0); }));
    const Handle<CUstream> owned_stream(context, stream, api.StreamDestroy);
    const std::vector<float> values = execution::StoryModel::Values(kRows);
    std::vector<float> sums(kRows);
    std::vector<float> products(kRows * execution::StoryModel::kColumns);
    const auto bytes_of = [](const std::vector<float>& of) { return of.size() * sizeof(float); };
    // Pieces of a KiB.
    CUdeviceptr memory = 0;
    ONNXIFI_RETURN_IF_ERROR(
        context->Do("allocate", [&] { return api.MemAlloc(&memory, 3 << 10); }));
    const Handle<CUdeviceptr> owned_memory(context, memory, api.MemFree);
    const CUdeviceptr from = memory, to_sums = memory + 1024, to_products = memory + 2048;
    ONNXIFI_RETURN_IF_ERROR(context->Do("upload", [&] {
      return api.MemcpyHtoDAsync(from, values.data(), bytes_of(values), stream);
    }));
    const auto take = [&] {
      std::ranges::fill(sums, 0);
      std::ranges::fill(products, 0);
      ONNXIFI_RETURN_IF_ERROR(context->Do("download", [&] {
        CUresult result = api.MemcpyDtoHAsync(sums.data(), to_sums, bytes_of(sums), stream);
        if (result != CUDA_SUCCESS) return result;
        result = api.MemcpyDtoHAsync(products.data(), to_products, bytes_of(products), stream);
        return result == CUDA_SUCCESS ? api.StreamSynchronize(stream) : result;
      }));
      return execution::StoryModel::Check(sums, products);
    };
    Story story(cache_folder_, index_);
    ONNXIFI_RETURN_IF_ERROR(story.OpenOn(api, compiler_api, info, stream));
    ONNXIFI_RETURN_IF_ERROR(story.Run(kRows));
    ONNXIFI_RETURN_IF_ERROR(story.RunInside(from, to_sums, to_products, kRows));
    ONNXIFI_RETURN_IF_ERROR(take());
    ONNXIFI_RETURN_IF_ERROR(context->Do("begin a capture", [&] {
      return cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    }));
    base::Status captured = story.RunInside(from, to_sums, to_products, kRows);
    CUgraph graph = nullptr;
    base::Status ended =
        context->Do("end a capture", [&] { return cuStreamEndCapture(stream, &graph); });
    const Handle<CUgraph> owned_graph(context, graph, api.GraphDestroy);
    ONNXIFI_RETURN_IF_ERROR(std::move(captured));
    ONNXIFI_RETURN_IF_ERROR(std::move(ended));
    CUgraphExec executable = nullptr;
    ONNXIFI_RETURN_IF_ERROR(context->Do("make a graph ready", [&] {
      return api.GraphInstantiateWithFlags(&executable, graph, 0);
    }));
    const Handle<CUgraphExec> owned_executable(context, executable, api.GraphExecDestroy);
    for (int start = 0; start < 2; ++start) {
      ONNXIFI_RETURN_IF_ERROR(
          context->Do("start a graph", [&] { return api.GraphLaunch(executable, stream); }));
      ONNXIFI_RETURN_IF_ERROR(take());
    }
    return base::Ok();
  }

  Device& device() { return *device_; }

 private:
  class Inside final : public execution::OutputAllocator {
   public:
    explicit Inside(std::array<std::byte*, 2> to) : to_(to) {}
    base::Result<std::byte*> Allocate(int output, const tensor::Extents&) override {
      return to_[static_cast<size_t>(output)];
    }
    bool IsInside(int) const override { return true; }

   private:
    const std::array<std::byte*, 2> to_;
  };

  base::Result<DeviceInfo> FindDevice(const Api& api) const {
    ONNXIFI_ASSIGN_OR_RETURN(const FoundDevices devices, FindDevices(api));
    if (devices.fit.size() > index_) return devices.fit[index_];
    return base::Status(base::Code::kBackendUnavailable, devices.left_out.empty()
                                                             ? "There is no device."
                                                             : devices.left_out.front());
  }
  base::Status OpenOn(const Api& api, const CompilerApi& compiler_api, const DeviceInfo& info,
                      std::optional<CUstream> stream = {}) {
    ONNXIFI_ASSIGN_OR_RETURN(device_, Device::Open(api, compiler_api, info, cache_folder_, stream));
    return model_.Load(*device_);
  }

  const std::filesystem::path cache_folder_;
  const size_t index_;
  bool compiles_only_ = false;  // nothing is computed
  std::unique_ptr<Device> device_;
  execution::StoryModel model_;
};

// Of the emulated driver, and of its compiler.
inline int LiveObjects() {
  int count = emulated_nvrtc_live_programs();
  for (const char* kind :
       {"memory", "pinned", "stream", "event", "module", "graph", "executable"}) {
    count += emulated_live(kind);
  }
  return count;
}

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_STORY_H_
