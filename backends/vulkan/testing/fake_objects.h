// SPDX-License-Identifier: Apache-2.0
//
// Of the fake driver alone: its objects, and what its functions share. A handle is the number of an
// object, which is never given again, so that the use of one that is gone is seen.

#ifndef ONNXIFI_BACKENDS_VULKAN_TESTING_FAKE_OBJECTS_H_
#define ONNXIFI_BACKENDS_VULKAN_TESTING_FAKE_OBJECTS_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/vulkan/testing/fake_device.h"

namespace onnxifi::vulkan::fake {

using Id = uint64_t;

struct Object {
  Id id = 0;
  Id owner = 0;  // the device, or the instance of a device
  virtual ~Object() = default;
};

struct Instance final : Object {
  static constexpr const char* kName = "instance";
};

struct Memory final : Object {
  static constexpr const char* kName = "memory";
  uint64_t size_bytes = 0;
  uint32_t type = 0;
  bool has_address = false;
  bool is_mapped = false;
  // How others see it; 0 for memory of the device's own.
  VkExternalMemoryHandleTypeFlags handle_type = 0;
  // Pages come with their first use. Shared with nobody, but with what takes it away.
  std::shared_ptr<std::byte> bytes;
};

struct Buffer final : Object {
  static constexpr const char* kName = "buffer";
  uint64_t size_bytes = 0;
  VkBufferUsageFlags usage = 0;
  VkExternalMemoryHandleTypeFlags handle_types = 0;
  Id memory = 0;
  uint64_t offset_bytes = 0;
  uint64_t address = 0;
};

struct Semaphore final : Object {
  static constexpr const char* kName = "semaphore";
  uint64_t value = 0;
};

struct ShaderModule final : Object {
  static constexpr const char* kName = "shader module";
};
struct PipelineLayout final : Object {
  static constexpr const char* kName = "pipeline layout";
  uint32_t push_bytes = 0;
};
struct PipelineCache final : Object {
  static constexpr const char* kName = "pipeline cache";
  std::vector<uint8_t> data;
};
struct Pipeline final : Object {
  static constexpr const char* kName = "pipeline";
};

struct QueryPool final : Object {
  static constexpr const char* kName = "query pool";
  enum class Query : uint8_t { kUnknown, kReset, kWritten };
  std::vector<Query> queries;
  std::vector<uint64_t> ticks;
};

struct CommandPool final : Object {
  static constexpr const char* kName = "command pool";
  std::vector<Id> buffers;
};

struct Command {
  std::vector<Id> objects;  // that it uses
  std::function<void()> carry_out;
};

struct CommandBuffer final : Object {
  static constexpr const char* kName = "command buffer";
  enum class State : uint8_t { kInitial, kRecording, kExecutable, kPending };
  State state = State::kInitial;
  bool is_once = false;
  bool is_simultaneous = false;  // may be submitted while it is at work
  int pending = 0;
  std::vector<Command> commands;
  Id pipeline = 0;
  std::vector<uint64_t> constants;
};

struct Submission {
  std::vector<Id> command_buffers;
  std::vector<std::pair<Id, uint64_t>> waits;    // semaphores and values
  std::vector<std::pair<Id, uint64_t>> signals;  // semaphores and values
};

struct Device final : Object {
  static constexpr const char* kName = "device";
  size_t physical = 0;
  bool is_lost = false;
  bool has_addresses = false;
  bool has_timelines = false;
  bool has_matrices = false;
  bool has_float16 = false;
  bool has_bfloat16_matrices = false;
  std::deque<Submission> pending;
};

struct Fault {
  VkResult result = VK_SUCCESS;
  int calls_before = 0;
  int count = 0;
};

struct State {
  std::recursive_mutex mutex;  // a function may call another
  std::condition_variable_any changed;
  uint32_t loader_version = VK_API_VERSION_1_3;
  std::vector<FakeDevice> devices;
  std::map<Id, std::unique_ptr<Object>> objects;
  Id newest = 0;
  uint64_t next_address = uint64_t{1} << 40;
  uint64_t ticks = 1000;
  bool holds_queues = false;

  std::map<std::string, PFN_vkVoidFunction> functions;
  std::vector<std::string> functions_that_fail;
  std::map<std::string, Fault> faults;
  std::map<std::string, int> calls;
  std::vector<std::string> hidden;

  std::map<Id, const char*> destroyed;
  std::vector<std::string> misuses;
  std::vector<FakeStart> starts;
  int barriers = 0;
  int copies = 0;
  std::vector<std::vector<uint32_t>> modules;
  int pipelines_from_cache = 0;
  std::vector<uint32_t> allocated_types;
  int64_t most_allocations = 0;
  std::chrono::steady_clock::time_point last_submission;

  template <typename Result, typename... Arguments>
  void Add(const char* name, Result(VKAPI_PTR* function)(Arguments...)) {
    functions[std::string("vk") + name] = reinterpret_cast<PFN_vkVoidFunction>(function);
    if constexpr (std::is_same_v<Result, VkResult>) functions_that_fail.emplace_back(name);
  }
};

State& TheState();

// The functions of fake_memory.cc and fake_commands.cc.
void AddMemoryFunctions(State& state);
void AddCommandFunctions(State& state);

// Notes a misuse.
void Note(std::string sentence);

template <typename Handle>
Id IdOf(Handle handle) {
  return static_cast<Id>(reinterpret_cast<uintptr_t>(handle));
}
template <typename Handle>
Handle HandleOf(Id id) {
  return reinterpret_cast<Handle>(static_cast<uintptr_t>(id));
}

// Null, and a note, if there is no such object.
template <typename T>
T* Find(Id id, const char* function) {
  State& state = TheState();
  const auto found = state.objects.find(id);
  T* const object = found == state.objects.end() ? nullptr : dynamic_cast<T*>(found->second.get());
  if (object == nullptr) {
    Note(std::string("vk") + function + " is given a " + T::kName + " that does not exist.");
  }
  return object;
}

template <typename T>
T& Make(Id owner) {
  State& state = TheState();
  auto made = std::make_unique<T>();
  T& object = *made;
  object.id = ++state.newest;
  object.owner = owner;
  state.objects.emplace(object.id, std::move(made));
  return object;
}

// Whether a submission that is under way uses the object.
bool IsUnderWay(const Object& object);
// Carries out what is submitted and may go on.
void Proceed(Device& device);
// What is submitted is over, and was not carried out.
void Lose(Device& device);

// As vkDestroy...: nothing for 0.
template <typename T>
void Destroy(Id owner, Id id, const char* function) {
  if (id == 0) return;
  T* const object = Find<T>(id, function);
  if (object == nullptr) return;
  if (object->owner != owner) {
    Note(std::string("vk") + function + " is given a " + T::kName + " of another device.");
  }
  if (IsUnderWay(*object)) {
    Note(std::string("vk") + function + " takes away a " + T::kName + " that is in use.");
  }
  TheState().objects.erase(id);
  TheState().destroyed.emplace(id, T::kName);
}

// What the call of a function answers, VK_SUCCESS if it may go on. `device`: 0 if it has none.
VkResult FaultOf(const char* function, Id device);

// At the begin of every function that can fail.
#define FAKE_CALL(function, device)                         \
  const std::lock_guard fake_lock(TheState().mutex);        \
  const VkResult fake_fault = FaultOf(#function, (device)); \
  if (fake_fault != VK_SUCCESS) return fake_fault
// And of the others.
#define FAKE_LOCK() const std::lock_guard fake_lock(TheState().mutex)

}  // namespace onnxifi::vulkan::fake

#endif  // ONNXIFI_BACKENDS_VULKAN_TESTING_FAKE_OBJECTS_H_
