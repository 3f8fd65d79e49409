// SPDX-License-Identifier: Apache-2.0
//
// A program that has its own Vulkan device and puts a network between two pieces of its own work:
// its commands write a picture into a buffer, the network classifies it, other commands bring the
// scores to where the host reads them. All three lie in one queue of the program's; the tensors
// between them are its buffers, which are never copied.
//
//   zero_copy_vulkan MODEL
//
// Exit code 77 where there is no Vulkan device.

#include <vulkan/vulkan.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <onnxifi/onnxifi.hpp>
#include <string>
#include <vector>

namespace {

constexpr size_t kPixels = 64;
constexpr uint64_t kClasses = 10;
constexpr int kNoDevice = 77;

// A seven: dark where '#'.
constexpr char kPicture[] =
    ".#####.."
    ".....#.."
    "....##.."
    "....#..."
    "..#####."
    "...#...."
    "..##...."
    "..#.....";

constexpr VkBufferUsageFlags kUsage =
    VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
    VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;

struct Buffer {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  void* mapped = nullptr;
  onnxVulkanBuffer told = {};
};

// What the program makes with Vulkan, to be released in the end whatever happens.
struct Pipeline {
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  uint32_t family = 0;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkPhysicalDeviceVulkan12Features of_1_2 = {};
  VkPhysicalDeviceVulkan11Features of_1_1 = {};
  VkPhysicalDeviceFeatures2 features = {};
  Buffer pixels;
  Buffer scores;
  Buffer answer;

  // On the device with this UUID. False if Vulkan refuses anything.
  bool Make(const std::string& uuid) {
    VkApplicationInfo application = {};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = VK_API_VERSION_1_2;
    VkInstanceCreateInfo create = {};
    create.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    create.pApplicationInfo = &application;
    return vkCreateInstance(&create, nullptr, &instance) == VK_SUCCESS && FindDevice(uuid) &&
           FindFamily() && MakeDevice() && MakeBuffer(kPixels * sizeof(float), pixels) &&
           MakeBuffer(kClasses * sizeof(float), scores) &&
           MakeBuffer(kClasses * sizeof(float), answer);
  }

  ~Pipeline() {
    if (device != VK_NULL_HANDLE) vkDeviceWaitIdle(device);
    for (const Buffer& made : {pixels, scores, answer}) {
      if (made.buffer != VK_NULL_HANDLE) vkDestroyBuffer(device, made.buffer, nullptr);
      if (made.memory != VK_NULL_HANDLE) vkFreeMemory(device, made.memory, nullptr);
    }
    if (pool != VK_NULL_HANDLE) vkDestroyCommandPool(device, pool, nullptr);
    if (device != VK_NULL_HANDLE) vkDestroyDevice(device, nullptr);
    if (instance != VK_NULL_HANDLE) vkDestroyInstance(instance, nullptr);
  }

  bool FindDevice(const std::string& uuid) {
    uint32_t count = 0;
    vkEnumeratePhysicalDevices(instance, &count, nullptr);
    std::vector<VkPhysicalDevice> devices(count);
    vkEnumeratePhysicalDevices(instance, &count, devices.data());
    for (VkPhysicalDevice candidate : devices) {
      VkPhysicalDeviceIDProperties identity = {};
      identity.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
      VkPhysicalDeviceProperties2 properties = {};
      properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
      properties.pNext = &identity;
      vkGetPhysicalDeviceProperties2(candidate, &properties);
      std::string text;
      for (const uint8_t byte : identity.deviceUUID) {
        char digits[3];
        std::snprintf(digits, sizeof(digits), "%02x", byte);
        text += digits;
      }
      if (text == uuid) physical_device = candidate;
    }
    return physical_device != VK_NULL_HANDLE;
  }

  bool FindFamily() {
    uint32_t count = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(physical_device, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vkGetPhysicalDeviceQueueFamilyProperties(physical_device, &count, families.data());
    const auto found = std::ranges::find_if(families, [](const VkQueueFamilyProperties& of) {
      return (of.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0;
    });
    family = static_cast<uint32_t>(found - families.begin());
    return found != families.end();
  }

  bool MakeDevice() {
    of_1_2.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    of_1_1.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    of_1_1.pNext = &of_1_2;
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features.pNext = &of_1_1;
    // All that there are; a program of its own names those that it needs, and those of sdk.h.
    vkGetPhysicalDeviceFeatures2(physical_device, &features);
    const float priority = 1;
    VkDeviceQueueCreateInfo queues = {};
    queues.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queues.queueFamilyIndex = family;
    queues.queueCount = 1;
    queues.pQueuePriorities = &priority;
    VkDeviceCreateInfo create = {};
    create.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    create.pNext = &features;
    create.queueCreateInfoCount = 1;
    create.pQueueCreateInfos = &queues;
    if (vkCreateDevice(physical_device, &create, nullptr, &device) != VK_SUCCESS) return false;
    vkGetDeviceQueue(device, family, 0, &queue);
    VkCommandPoolCreateInfo pools = {};
    pools.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pools.queueFamilyIndex = family;
    return vkCreateCommandPool(device, &pools, nullptr, &pool) == VK_SUCCESS;
  }

  bool MakeBuffer(uint64_t size_bytes, Buffer& made) {
    VkBufferCreateInfo create = {};
    create.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    create.size = size_bytes;
    create.usage = kUsage;
    if (vkCreateBuffer(device, &create, nullptr, &made.buffer) != VK_SUCCESS) return false;
    VkMemoryRequirements needs = {};
    vkGetBufferMemoryRequirements(device, made.buffer, &needs);
    VkPhysicalDeviceMemoryProperties types = {};
    vkGetPhysicalDeviceMemoryProperties(physical_device, &types);
    constexpr VkMemoryPropertyFlags kMapped =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;
    while (type < types.memoryTypeCount &&
           ((needs.memoryTypeBits >> type & 1) == 0 ||
            (types.memoryTypes[type].propertyFlags & kMapped) != kMapped)) {
      ++type;
    }
    VkMemoryAllocateFlagsInfo flags = {};
    flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo allocate = {};
    allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    allocate.pNext = &flags;
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = type;
    made.told.struct_size = sizeof(made.told);
    made.told.device = device;
    made.told.buffer = reinterpret_cast<uintptr_t>(made.buffer);
    made.told.size_bytes = size_bytes;
    made.told.usage = kUsage;
    return type < types.memoryTypeCount &&
           vkAllocateMemory(device, &allocate, nullptr, &made.memory) == VK_SUCCESS &&
           vkBindBufferMemory(device, made.buffer, made.memory, 0) == VK_SUCCESS &&
           vkMapMemory(device, made.memory, 0, VK_WHOLE_SIZE, 0, &made.mapped) == VK_SUCCESS;
  }

  // Puts commands into the queue, between barriers for all that came before and comes after.
  template <typename Record>
  bool Submit(const Record& record) const {
    VkCommandBufferAllocateInfo allocate = {};
    allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocate.commandPool = pool;
    allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate.commandBufferCount = 1;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkCommandBufferBeginInfo begin = {};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    if (vkAllocateCommandBuffers(device, &allocate, &commands) != VK_SUCCESS ||
        vkBeginCommandBuffer(commands, &begin) != VK_SUCCESS) {
      return false;
    }
    VkMemoryBarrier barrier = {};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
    const auto stand = [&](VkPipelineStageFlags until) {
      vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, until, 0, 1, &barrier, 0,
                           nullptr, 0, nullptr);
    };
    stand(VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
    record(commands);
    stand(VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT);
    VkSubmitInfo submit = {};
    submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    return vkEndCommandBuffer(commands) == VK_SUCCESS &&
           vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE) == VK_SUCCESS;
  }
};

int Fail(const std::string& what, const onnxifi::Error& error) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), error.Text().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: zero_copy_vulkan MODEL\n");
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "%s cannot be read.\n", argv[1]);
    return 2;
  }
  const std::vector<char> model{std::istreambuf_iterator<char>(file),
                                std::istreambuf_iterator<char>()};
  const onnxifi::Library library = onnxifi::Library::Linked();
  const auto device = library.FindDevice("vulkan");
  if (!device) {
    std::printf("%s\n", device.error().Text().c_str());
    return kNoDevice;
  }
  const auto uuid = device->TextInfo(ONNXIFI_SDK_BACKEND_DEVICE_UUID);
  if (!uuid) return Fail("The device does not tell its UUID", uuid.error());

  // Outlives all that works on its device.
  Pipeline pipeline;
  if (!pipeline.Make(*uuid)) {
    std::fprintf(stderr, "Vulkan refuses the program's own device or buffers.\n");
    return 1;
  }
  // One thread uses the queue, so that nobody needs to lock it.
  onnxVulkanDevice told = {};
  told.struct_size = sizeof(told);
  told.instance = pipeline.instance;
  told.physical_device = pipeline.physical_device;
  told.device = pipeline.device;
  told.queue = pipeline.queue;
  told.queue_family = pipeline.family;
  told.features = &pipeline.features;
  const uint64_t properties[] = {ONNXIFI_SDK_BACKEND_PROPERTY_VULKAN_DEVICE,
                                 reinterpret_cast<uintptr_t>(&told)};
  const auto backend = device->InitBackend(properties);
  if (!backend) return Fail("The device does not start", backend.error());
  const auto graph = backend->InitGraph(std::as_bytes(std::span(model)));
  if (!graph) return Fail("The model does not run here", graph.error());
  const onnxifi::Tensor input{"image",
                              ONNXIFI_DATATYPE_FLOAT32,
                              {1, 1, 8, 8},
                              &pipeline.pixels.told,
                              ONNXIFI_SDK_MEMORY_TYPE_VULKAN_BUFFER};
  const onnxifi::Tensor output{"scores",
                               ONNXIFI_DATATYPE_FLOAT32,
                               {1, kClasses},
                               &pipeline.scores.told,
                               ONNXIFI_SDK_MEMORY_TYPE_VULKAN_BUFFER};
  if (const auto bound = graph->SetIO({&input, 1}, {&output, 1}); !bound) {
    return Fail("Binding", bound.error());
  }

  float pixels[kPixels];
  std::transform(kPicture, kPicture + kPixels, pixels,
                 [](char dot) { return dot == '#' ? 1.0F : 0.0F; });
  const bool is_drawn = pipeline.Submit([&](VkCommandBuffer commands) {
    vkCmdUpdateBuffer(commands, pipeline.pixels.buffer, 0, sizeof(pixels), pixels);
  });
  if (const auto queued = graph->RunInSharedQueue(); !queued) {
    return Fail("The run", queued.error());
  }
  const bool is_brought = pipeline.Submit([&](VkCommandBuffer commands) {
    const VkBufferCopy all = {0, 0, kClasses * sizeof(float)};
    vkCmdCopyBuffer(commands, pipeline.scores.buffer, pipeline.answer.buffer, 1, &all);
  });
  if (!is_drawn || !is_brought || vkQueueWaitIdle(pipeline.queue) != VK_SUCCESS) {
    std::fprintf(stderr, "The queue fails.\n");
    return 1;
  }
  const auto* scores = static_cast<const float*>(pipeline.answer.mapped);
  const auto best = std::max_element(scores, scores + kClasses) - scores;
  const auto counters = graph->Counters();
  if (!counters) return Fail("The counters", counters.error());
  std::printf("The picture is a %d; the run copied %llu tensors and waited %llu times.\n",
              static_cast<int>(best), static_cast<unsigned long long>(counters->copies),
              static_cast<unsigned long long>(counters->waits));
  return 0;
}
