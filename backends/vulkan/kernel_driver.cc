// SPDX-License-Identifier: Apache-2.0
//
// KernelDriver: one pipeline per kernel, and one pipeline cache, which is the driver's own part of
// its binary. Where the driver has none, or no memory for it, kernels are made without.

#include "backends/vulkan/kernel_driver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/vulkan/compiler.h"
#include "backends/vulkan/float_mode.h"
#include "backends/vulkan/queue.h"

namespace onnxifi::vulkan {
namespace {

using base::Code;
using base::Result;
using base::Status;
using codegen::DriverKernel;
using codegen::DriverNumbers;

struct CompiledKernel final : DriverKernel {
  std::shared_ptr<const Handle<VkPipeline>> pipeline;  // shared with commands under way
  std::vector<uint32_t> words;
  std::vector<std::byte> driver_data;
};

struct Numbers final : DriverNumbers {
  explicit Numbers(std::unique_ptr<device::Allocation> of_memory) : memory(std::move(of_memory)) {}
  const std::unique_ptr<device::Allocation> memory;
};

uint64_t ToAddress(const std::byte* pointer) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
}

Handle<VkPipelineCache> NewCache(const Runtime& runtime, std::span<const std::byte> data) {
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = data.size();
  info.pInitialData = data.data();
  VkPipelineCache cache = VK_NULL_HANDLE;
  const DeviceApi& api = runtime.api();
  if (api.CreatePipelineCache(runtime.device(), &info, nullptr, &cache) != VK_SUCCESS) return {};
  return {runtime.device(), cache, api.DestroyPipelineCache};
}

// Empty if the driver does not tell.
std::vector<std::byte> DataOf(const Runtime& runtime, VkPipelineCache cache) {
  if (cache == VK_NULL_HANDLE) return {};
  const DeviceApi& api = runtime.api();
  size_t size_bytes = 0;
  if (api.GetPipelineCacheData(runtime.device(), cache, &size_bytes, nullptr) != VK_SUCCESS) {
    return {};
  }
  std::vector<std::byte> data(size_bytes);
  if (api.GetPipelineCacheData(runtime.device(), cache, &size_bytes, data.data()) != VK_SUCCESS) {
    return {};
  }
  data.resize(size_bytes);
  return data;
}

}  // namespace

KernelDriver::KernelDriver(Runtime& runtime, Heap& heap, Loading& loading)
    : runtime_(runtime), heap_(heap), loading_(loading) {
  const DeviceInfo& info = runtime.info();
  // The first line names what a binary is made of.
  binary_key_ = "SPIR-V and the driver's data\n" + CompilerName() + '\n' + info.name + '\n' +
                std::string(info.uuid.begin(), info.uuid.end()) + '\n' + info.driver_name + '\n' +
                info.driver_info + '\n' + std::to_string(info.driver_version) + '\n';
}

std::string_view KernelDriver::product_library() const { return runtime_.info().product_library; }

Result<std::unique_ptr<DriverKernel>> KernelDriver::Compile(const std::string& source) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<uint32_t> words, CompileGlsl(source));
  return KernelOf(WithFloatMode(words, runtime_.info().float_controls), {});
}

Result<std::unique_ptr<DriverKernel>> KernelDriver::Load(std::span<const std::byte> binary) {
  uint32_t count = 0;
  if (binary.size() > sizeof(count)) std::memcpy(&count, binary.data(), sizeof(count));
  const std::span<const std::byte> rest = binary.subspan(std::min(binary.size(), sizeof(count)));
  if (count == 0 || count > rest.size() / sizeof(uint32_t)) {
    return Status(Code::kInternalError, "The binary of a kernel has " +
                                            std::to_string(binary.size()) + " bytes and says " +
                                            std::to_string(count) + " words of SPIR-V.");
  }
  std::vector<uint32_t> words(count);
  std::memcpy(words.data(), rest.data(), words.size() * sizeof(uint32_t));
  return KernelOf(std::move(words), rest.subspan(words.size() * sizeof(uint32_t)));
}

Result<std::unique_ptr<DriverKernel>> KernelDriver::KernelOf(
    std::vector<uint32_t> words, std::span<const std::byte> driver_data) const {
  const DeviceApi& api = runtime_.api();
  VkDevice device = runtime_.device();
  constexpr std::string_view kDoing = "create a kernel";
  VkShaderModuleCreateInfo module_info{};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = words.size() * sizeof(uint32_t);
  module_info.pCode = words.data();
  VkShaderModule created = VK_NULL_HANDLE;
  ONNXIFI_RETURN_IF_ERROR(
      runtime_.Check(api.CreateShaderModule(device, &module_info, nullptr, &created), kDoing));
  const Handle<VkShaderModule> module(device, created, api.DestroyShaderModule);
  VkComputePipelineCreateInfo pipeline_info{};
  pipeline_info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  pipeline_info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  pipeline_info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  pipeline_info.stage.module = module.get();
  pipeline_info.stage.pName = "main";
  pipeline_info.layout = runtime_.layout();
  VkPipeline pipeline = VK_NULL_HANDLE;
  const Handle<VkPipelineCache> cache = NewCache(runtime_, driver_data);
  ONNXIFI_RETURN_IF_ERROR(runtime_.Check(
      api.CreateComputePipelines(device, cache.get(), 1, &pipeline_info, nullptr, &pipeline),
      kDoing));
  auto compiled = std::make_unique<CompiledKernel>();
  compiled->pipeline =
      std::make_shared<const Handle<VkPipeline>>(device, pipeline, api.DestroyPipeline);
  if (driver_data.empty()) {
    // It may not be in the files yet.
    compiled->words = std::move(words);
    compiled->driver_data = DataOf(runtime_, cache.get());
  }
  return std::unique_ptr<DriverKernel>(std::move(compiled));
}

std::vector<std::byte> KernelDriver::BinaryOf(const DriverKernel& kernel) {
  const auto& compiled = static_cast<const CompiledKernel&>(kernel);
  const auto count = static_cast<uint32_t>(compiled.words.size());
  const size_t words_bytes = compiled.words.size() * sizeof(uint32_t);
  std::vector<std::byte> binary(sizeof(count) + words_bytes + compiled.driver_data.size());
  std::memcpy(binary.data(), &count, sizeof(count));
  std::memcpy(binary.data() + sizeof(count), compiled.words.data(), words_bytes);
  std::ranges::copy(compiled.driver_data,
                    binary.begin() + static_cast<ptrdiff_t>(sizeof(count) + words_bytes));
  return binary;
}

Result<std::unique_ptr<device::Allocation>> KernelDriver::HoldWords(
    std::span<const uint64_t> words) {
  ONNXIFI_ASSIGN_OR_RETURN(
      std::unique_ptr<device::Allocation> memory,
      heap_.Allocate(Purpose::kNumbers, static_cast<int64_t>(words.size_bytes())));
  ONNXIFI_ASSIGN_OR_RETURN(const Heap::Location place, heap_.Find(memory->data()));
  std::memcpy(place.mapped, words.data(), words.size_bytes());
  return memory;
}

Result<std::unique_ptr<DriverNumbers>> KernelDriver::Hold(std::span<const int64_t> numbers) {
  const std::vector<uint64_t> words(numbers.begin(), numbers.end());
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Allocation> memory, HoldWords(words));
  return std::unique_ptr<DriverNumbers>(std::make_unique<Numbers>(std::move(memory)));
}

Status KernelDriver::Start(device::Queue* queue, DriverKernel& kernel,
                           const codegen::KernelStart& start) {
  const size_t count = start.operands.count();
  std::vector<uint64_t> addresses;
  std::vector<Use> uses;
  addresses.reserve(count);
  uses.reserve(count);
  for (size_t k = 0; k < count; ++k) {
    const std::byte* const address = start.operands.address(k);
    addresses.push_back(ToAddress(address));
    if (address == nullptr) continue;
    int64_t size_bytes = start.operands.size_bytes(k);
    if (size_bytes < 0) {
      ONNXIFI_ASSIGN_OR_RETURN(const Heap::Location place, heap_.Find(address));
      size_bytes = place.rest_bytes;
    }
    uses.push_back(Use::Of(address, size_bytes, start.operands.is_written(k)));
  }
  std::vector<std::shared_ptr<const void>> owners;
  if (count > codegen::GlslDialect::kMaxPushedOperands) {
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Allocation> block, HoldWords(addresses));
    addresses = {ToAddress(block->data())};
    owners.push_back(std::move(block));
  }
  const auto* const numbers = static_cast<const Numbers*>(start.numbers);
  std::vector<uint64_t> constants = {numbers == nullptr ? 0 : ToAddress(numbers->memory->data()),
                                     static_cast<uint64_t>(start.item_count)};
  constants.insert(constants.end(), addresses.begin(), addresses.end());
  const auto& pipeline = static_cast<const CompiledKernel&>(kernel).pipeline;
  const Dispatch dispatch{pipeline->get(), constants, static_cast<uint64_t>(start.group_count),
                          uses};
  if (queue == nullptr) {
    owners.push_back(pipeline);
    return loading_.Start(dispatch, std::move(owners));
  }
  auto& stream = static_cast<Queue&>(*queue);
  for (std::shared_ptr<const void>& owner : owners) stream.Keep(std::move(owner));
  return stream.Start(dispatch);
}

}  // namespace onnxifi::vulkan
