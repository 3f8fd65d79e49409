// SPDX-License-Identifier: Apache-2.0
//
// FakeDriver: objects are counted references; buffers are vectors.

#include "backends/opencl/testing/fake_driver.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

namespace {

std::atomic<int64_t> live_objects = 0;

// What every object has. The last reference takes it away.
struct Counted {
  std::atomic<int> references = 1;
  Counted() { ++live_objects; }
  virtual ~Counted() { --live_objects; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

template <typename T>
cl_int Retain(T object) {
  ++object->references;
  return CL_SUCCESS;
}

template <typename T>
cl_int CL_API_CALL Release(T object) {
  if (--object->references == 0) delete object;
  return CL_SUCCESS;
}

// A reference that an object has to another.
template <typename T>
class Reference {
 public:
  explicit Reference(T object) : object_(object) { Retain(object); }
  ~Reference() { Release(object_); }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  T get() const { return object_; }

 private:
  T object_;
};

}  // namespace

// The types that cl.h leaves open.
struct _cl_platform_id {};
struct _cl_device_id {};
struct _cl_context : Counted {};
struct _cl_command_queue : Counted {
  explicit _cl_command_queue(cl_context owner) : context(owner) {}
  Reference<cl_context> context;
};
struct _cl_mem : Counted {
  _cl_mem(cl_context owner, cl_mem_flags made_with, size_t size)
      : context(owner), flags(made_with), bytes(size) {}
  Reference<cl_context> context;
  cl_mem_flags flags;
  std::vector<char> bytes;
};
struct _cl_program : Counted {
  _cl_program(cl_context owner, std::string text) : context(owner), source(std::move(text)) {}
  Reference<cl_context> context;
  std::string source;
};
struct _cl_kernel : Counted {
  explicit _cl_kernel(cl_program owner) : program(owner) {}
  Reference<cl_program> program;
};
struct _cl_event : Counted {
  _cl_event(cl_context owner, cl_int now) : context(owner), state(now) {}
  Reference<cl_context> context;
  std::mutex mutex;
  std::condition_variable changed;
  cl_int state;
  std::vector<std::function<void(cl_int)>> callbacks;
};

namespace onnxifi::opencl {
namespace {

// clBuildProgram refuses it, as a compiler does with what is no source.
constexpr std::string_view kBinaryMark = "fake binary of ";

struct State {
  std::mutex mutex;
  std::map<std::string, std::pair<cl_int, int>> faults;  // result, calls until then
  cl_int fault_of_all = CL_SUCCESS;
  std::map<std::string, int> calls;
  std::vector<std::string> sources;
};

State& TheState() {
  static State state;
  return state;
}

_cl_platform_id the_platform;
_cl_device_id the_device;

// What a function is to answer now.
cl_int FaultOf(const char* function) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  ++state.calls[function];
  if (state.fault_of_all != CL_SUCCESS) return state.fault_of_all;
  const auto found = state.faults.find(function);
  if (found == state.faults.end()) return CL_SUCCESS;
  if (found->second.second > 0) {
    --found->second.second;
    return CL_SUCCESS;
  }
  return found->second.first;
}

#define FAKE_RETURN_FAULT(function) \
  if (const cl_int fault = FaultOf(function); fault != CL_SUCCESS) return fault
// For functions that make an object.
#define FAKE_RETURN_NULL(function, result)                           \
  if (const cl_int fault = FaultOf(function); fault != CL_SUCCESS) { \
    *(result) = fault;                                               \
    return nullptr;                                                  \
  }                                                                  \
  *(result) = CL_SUCCESS

cl_int Answer(const void* value, size_t size, size_t room, void* out, size_t* out_size) {
  if (out_size != nullptr) *out_size = size;
  if (out == nullptr) return CL_SUCCESS;
  if (room < size) return CL_INVALID_VALUE;
  std::memcpy(out, value, size);
  return CL_SUCCESS;
}

template <typename T>
cl_int AnswerValue(T value, size_t room, void* out, size_t* out_size) {
  return Answer(static_cast<const void*>(&value), sizeof(value), room, out, out_size);
}

cl_int AnswerText(std::string_view text, size_t room, void* out, size_t* out_size) {
  const std::string copy(text);
  return Answer(copy.c_str(), copy.size() + 1, room, out, out_size);
}

cl_event NewEvent(cl_context context, cl_int state) { return new _cl_event(context, state); }

// Work is done when it is put in, so its events are complete.
cl_int GiveEvent(cl_command_queue queue, cl_event* event) {
  if (event != nullptr) *event = NewEvent(queue->context.get(), CL_COMPLETE);
  return CL_SUCCESS;
}

cl_int CL_API_CALL GetPlatformIDs(cl_uint room, cl_platform_id* platforms, cl_uint* count) {
  FAKE_RETURN_FAULT("GetPlatformIDs");
  if (count != nullptr) *count = 1;
  if (platforms != nullptr && room > 0) platforms[0] = &the_platform;
  return CL_SUCCESS;
}

cl_int CL_API_CALL GetPlatformInfo(cl_platform_id, cl_platform_info, size_t room, void* out,
                                   size_t* size) {
  FAKE_RETURN_FAULT("GetPlatformInfo");
  return AnswerText("Fake platform", room, out, size);
}

cl_int CL_API_CALL GetDeviceIDs(cl_platform_id, cl_device_type, cl_uint room, cl_device_id* devices,
                                cl_uint* count) {
  FAKE_RETURN_FAULT("GetDeviceIDs");
  if (count != nullptr) *count = 1;
  if (devices != nullptr && room > 0) devices[0] = &the_device;
  return CL_SUCCESS;
}

cl_int CL_API_CALL GetDeviceInfo(cl_device_id, cl_device_info query, size_t room, void* out,
                                 size_t* size) {
  FAKE_RETURN_FAULT("GetDeviceInfo");
  switch (query) {
    case CL_DEVICE_NAME:
    case CL_DEVICE_VENDOR:
    case CL_DRIVER_VERSION:
    case CL_DEVICE_VERSION:
      return AnswerText("Fake device", room, out, size);
    case CL_DEVICE_EXTENSIONS:
      return AnswerText("", room, out, size);
    case CL_DEVICE_TYPE:
      return AnswerValue<cl_device_type>(CL_DEVICE_TYPE_GPU, room, out, size);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
      return AnswerValue<cl_ulong>(cl_ulong{1} << 28, room, out, size);
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_ENDIAN_LITTLE:
      return AnswerValue<cl_bool>(CL_TRUE, room, out, size);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
      return AnswerValue<cl_bool>(CL_FALSE, room, out, size);
    case CL_DEVICE_SINGLE_FP_CONFIG:
      return AnswerValue<cl_device_fp_config>(CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, room, out, size);
    case CL_DEVICE_DOUBLE_FP_CONFIG:
      return AnswerValue<cl_device_fp_config>(CL_FP_FMA, room, out, size);
    case CL_DEVICE_SVM_CAPABILITIES:
      return AnswerValue<cl_device_svm_capabilities>(CL_DEVICE_SVM_FINE_GRAIN_BUFFER, room, out,
                                                     size);
    case CL_DEVICE_PLATFORM:
      return AnswerValue<cl_platform_id>(&the_platform, room, out, size);
    // Numbers of units and bytes that tuning may ask for.
    case CL_DEVICE_LOCAL_MEM_SIZE:
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE:
      return AnswerValue<cl_ulong>(1 << 15, room, out, size);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
      return AnswerValue<size_t>(1024, room, out, size);
    default:
      return AnswerValue<cl_uint>(4, room, out, size);
  }
}

cl_context CL_API_CALL CreateContext(const cl_context_properties*, cl_uint, const cl_device_id*,
                                     void(CL_CALLBACK*)(const char*, const void*, size_t, void*),
                                     void*, cl_int* result) {
  FAKE_RETURN_NULL("CreateContext", result);
  return new _cl_context;
}

cl_int CL_API_CALL GetContextInfo(cl_context, cl_context_info, size_t room, void* out,
                                  size_t* size) {
  FAKE_RETURN_FAULT("GetContextInfo");
  return AnswerValue<cl_device_id>(&the_device, room, out, size);
}

cl_command_queue CL_API_CALL CreateCommandQueue(cl_context context, cl_device_id,
                                                cl_command_queue_properties, cl_int* result) {
  FAKE_RETURN_NULL("CreateCommandQueue", result);
  return new _cl_command_queue(context);
}

cl_int CL_API_CALL GetCommandQueueInfo(cl_command_queue queue, cl_command_queue_info query,
                                       size_t room, void* out, size_t* size) {
  FAKE_RETURN_FAULT("GetCommandQueueInfo");
  if (query == CL_QUEUE_CONTEXT) return AnswerValue(queue->context.get(), room, out, size);
  if (query == CL_QUEUE_DEVICE) return AnswerValue<cl_device_id>(&the_device, room, out, size);
  return AnswerValue<cl_command_queue_properties>(0, room, out, size);
}

cl_mem CL_API_CALL CreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void* from,
                                cl_int* result) {
  FAKE_RETURN_NULL("CreateBuffer", result);
  auto* buffer = new _cl_mem(context, flags, size);
  if (from != nullptr && size > 0) std::memcpy(buffer->bytes.data(), from, size);
  return buffer;
}

void* CL_API_CALL SVMAlloc(cl_context, cl_svm_mem_flags, size_t size, cl_uint alignment) {
  if (FaultOf("SVMAlloc") != CL_SUCCESS) return nullptr;
  ++live_objects;
  return ::operator new(size, std::align_val_t(alignment));
}

void CL_API_CALL SVMFree(cl_context, void* memory) {
  --live_objects;
  // As SVMAlloc was asked by this backend, the one that there is.
  ::operator delete(memory, std::align_val_t(64));
}

cl_int CL_API_CALL GetMemObjectInfo(cl_mem buffer, cl_mem_info query, size_t room, void* out,
                                    size_t* size) {
  FAKE_RETURN_FAULT("GetMemObjectInfo");
  if (query == CL_MEM_TYPE) {
    return AnswerValue<cl_mem_object_type>(CL_MEM_OBJECT_BUFFER, room, out, size);
  }
  if (query == CL_MEM_CONTEXT) return AnswerValue(buffer->context.get(), room, out, size);
  if (query == CL_MEM_FLAGS) return AnswerValue(buffer->flags, room, out, size);
  return AnswerValue(buffer->bytes.size(), room, out, size);
}

cl_int CL_API_CALL EnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool, size_t offset,
                                     size_t size, void* to, cl_uint, const cl_event*,
                                     cl_event* event) {
  FAKE_RETURN_FAULT("EnqueueReadBuffer");
  if (offset + size > buffer->bytes.size()) return CL_INVALID_VALUE;
  std::memcpy(to, buffer->bytes.data() + offset, size);
  return GiveEvent(queue, event);
}

cl_int CL_API_CALL EnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool, size_t offset,
                                      size_t size, const void* from, cl_uint, const cl_event*,
                                      cl_event* event) {
  FAKE_RETURN_FAULT("EnqueueWriteBuffer");
  if (offset + size > buffer->bytes.size()) return CL_INVALID_VALUE;
  std::memcpy(buffer->bytes.data() + offset, from, size);
  return GiveEvent(queue, event);
}

cl_int CL_API_CALL EnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void* pattern,
                                     size_t pattern_size, size_t offset, size_t size, cl_uint,
                                     const cl_event*, cl_event* event) {
  FAKE_RETURN_FAULT("EnqueueFillBuffer");
  if (offset + size > buffer->bytes.size() || offset % pattern_size != 0 ||
      size % pattern_size != 0) {
    return CL_INVALID_VALUE;
  }
  for (size_t done = 0; done < size; done += pattern_size) {
    std::memcpy(buffer->bytes.data() + offset + done, pattern, pattern_size);
  }
  return GiveEvent(queue, event);
}

cl_int CL_API_CALL EnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                     size_t from_offset, size_t to_offset, size_t size, cl_uint,
                                     const cl_event*, cl_event* event) {
  FAKE_RETURN_FAULT("EnqueueCopyBuffer");
  if (from_offset + size > from->bytes.size() || to_offset + size > to->bytes.size()) {
    return CL_INVALID_VALUE;
  }
  std::memmove(to->bytes.data() + to_offset, from->bytes.data() + from_offset, size);
  return GiveEvent(queue, event);
}

cl_int CL_API_CALL EnqueueNDRangeKernel(cl_command_queue queue, cl_kernel, cl_uint, const size_t*,
                                        const size_t*, const size_t*, cl_uint, const cl_event*,
                                        cl_event* event) {
  FAKE_RETURN_FAULT("EnqueueNDRangeKernel");
  return GiveEvent(queue, event);
}

cl_int CL_API_CALL EnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint, const cl_event*,
                                             cl_event* event) {
  FAKE_RETURN_FAULT("EnqueueMarkerWithWaitList");
  return GiveEvent(queue, event);
}

cl_int CL_API_CALL Finish(cl_command_queue) {
  FAKE_RETURN_FAULT("Finish");
  return CL_SUCCESS;
}

cl_int CL_API_CALL Flush(cl_command_queue) {
  FAKE_RETURN_FAULT("Flush");
  return CL_SUCCESS;
}

cl_int CL_API_CALL WaitForEvents(cl_uint count, const cl_event* events) {
  FAKE_RETURN_FAULT("WaitForEvents");
  cl_int worst = CL_COMPLETE;
  for (cl_uint k = 0; k < count; ++k) {
    std::unique_lock lock(events[k]->mutex);
    events[k]->changed.wait(lock, [&] { return events[k]->state <= CL_COMPLETE; });
    worst = std::min(worst, events[k]->state);
  }
  return worst < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}

cl_event CL_API_CALL CreateUserEvent(cl_context context, cl_int* result) {
  FAKE_RETURN_NULL("CreateUserEvent", result);
  return NewEvent(context, CL_SUBMITTED);
}

cl_int CL_API_CALL SetUserEventStatus(cl_event event, cl_int state) {
  FAKE_RETURN_FAULT("SetUserEventStatus");
  std::vector<std::function<void(cl_int)>> callbacks;
  {
    const std::lock_guard lock(event->mutex);
    event->state = state;
    callbacks.swap(event->callbacks);
  }
  event->changed.notify_all();
  for (const auto& callback : callbacks) callback(state);
  return CL_SUCCESS;
}

cl_int CL_API_CALL SetEventCallback(cl_event event, cl_int,
                                    void(CL_CALLBACK* callback)(cl_event, cl_int, void*),
                                    void* data) {
  FAKE_RETURN_FAULT("SetEventCallback");
  cl_int state = CL_COMPLETE;
  {
    const std::lock_guard lock(event->mutex);
    state = event->state;
    if (state > CL_COMPLETE) {
      event->callbacks.emplace_back([=](cl_int now) { callback(event, now, data); });
      return CL_SUCCESS;
    }
  }
  callback(event, state, data);
  return CL_SUCCESS;
}

cl_int CL_API_CALL GetEventInfo(cl_event event, cl_event_info query, size_t room, void* out,
                                size_t* size) {
  FAKE_RETURN_FAULT("GetEventInfo");
  if (query == CL_EVENT_CONTEXT) return AnswerValue(event->context.get(), room, out, size);
  if (query == CL_EVENT_COMMAND_QUEUE) {
    return AnswerValue<cl_command_queue>(nullptr, room, out, size);
  }
  const std::lock_guard lock(event->mutex);
  return AnswerValue(event->state, room, out, size);
}

// Commands take no time.
cl_int CL_API_CALL GetEventProfilingInfo(cl_event, cl_profiling_info, size_t room, void* out,
                                         size_t* size) {
  FAKE_RETURN_FAULT("GetEventProfilingInfo");
  return AnswerValue<cl_ulong>(1000, room, out, size);
}

cl_program CL_API_CALL CreateProgramWithSource(cl_context context, cl_uint, const char** texts,
                                               const size_t* sizes, cl_int* result) {
  FAKE_RETURN_NULL("CreateProgramWithSource", result);
  return new _cl_program(context, std::string(texts[0], sizes[0]));
}

cl_program CL_API_CALL CreateProgramWithBinary(cl_context context, cl_uint, const cl_device_id*,
                                               const size_t* sizes, const unsigned char** bytes,
                                               cl_int* state, cl_int* result) {
  FAKE_RETURN_NULL("CreateProgramWithBinary", result);
  const std::string text(reinterpret_cast<const char*>(bytes[0]), sizes[0]);
  if (!text.starts_with(kBinaryMark)) {
    *result = CL_INVALID_BINARY;
    if (state != nullptr) *state = CL_INVALID_VALUE;
    return nullptr;
  }
  return new _cl_program(context, text.substr(kBinaryMark.size()));
}

cl_int CL_API_CALL BuildProgram(cl_program program, cl_uint, const cl_device_id*, const char*,
                                void(CL_CALLBACK*)(cl_program, void*), void*) {
  FAKE_RETURN_FAULT("BuildProgram");
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  state.sources.push_back(program->source);
  return CL_SUCCESS;
}

cl_int CL_API_CALL GetProgramBuildInfo(cl_program, cl_device_id, cl_program_build_info, size_t room,
                                       void* out, size_t* size) {
  FAKE_RETURN_FAULT("GetProgramBuildInfo");
  return AnswerText("error: the fake compiler was told to fail", room, out, size);
}

cl_int CL_API_CALL GetProgramInfo(cl_program program, cl_program_info query, size_t room, void* out,
                                  size_t* size) {
  FAKE_RETURN_FAULT("GetProgramInfo");
  const std::string binary = std::string(kBinaryMark) + program->source;
  if (query == CL_PROGRAM_BINARY_SIZES) return AnswerValue(binary.size(), room, out, size);
  unsigned char* to = nullptr;
  std::memcpy(static_cast<void*>(&to), out, sizeof(to));
  std::copy(binary.begin(), binary.end(), to);
  return CL_SUCCESS;
}

cl_kernel CL_API_CALL CreateKernel(cl_program program, const char*, cl_int* result) {
  FAKE_RETURN_NULL("CreateKernel", result);
  return new _cl_kernel(program);
}

cl_int CL_API_CALL SetKernelArg(cl_kernel, cl_uint, size_t, const void*) {
  FAKE_RETURN_FAULT("SetKernelArg");
  return CL_SUCCESS;
}

#define FAKE_RETAIN(name, type)                  \
  cl_int CL_API_CALL Retain##name(type object) { \
    FAKE_RETURN_FAULT("Retain" #name);           \
    return Retain(object);                       \
  }                                              \
  cl_int CL_API_CALL Release##name(type object) { return Release(object); }
FAKE_RETAIN(CommandQueue, cl_command_queue)
FAKE_RETAIN(Context, cl_context)
FAKE_RETAIN(Event, cl_event)
FAKE_RETAIN(MemObject, cl_mem)
#undef FAKE_RETAIN

cl_int CL_API_CALL ReleaseKernel(cl_kernel kernel) { return Release(kernel); }
cl_int CL_API_CALL ReleaseProgram(cl_program program) { return Release(program); }

}  // namespace

Api FakeDriver::GetApi() {
  Api api;
#define FAKE_MEMBER(name) api.name = name;
  ONNXIFI_OPENCL_FUNCTIONS(FAKE_MEMBER)
  ONNXIFI_OPENCL_LATER_FUNCTIONS(FAKE_MEMBER)
#undef FAKE_MEMBER
  return api;
}

std::vector<std::string> FakeDriver::Functions() {
  std::vector<std::string> names;
#define FAKE_NAME(name) names.emplace_back(#name);
  ONNXIFI_OPENCL_FUNCTIONS(FAKE_NAME)
#undef FAKE_NAME
  names.emplace_back("SVMAlloc");
  std::erase_if(names, [](const std::string& name) { return name.starts_with("Release"); });
  return names;
}

void FakeDriver::Fail(const std::string& function, cl_int result, int call) {
  const std::lock_guard lock(TheState().mutex);
  TheState().faults[function] = {result, call};
}

void FakeDriver::FailAll(cl_int result) {
  const std::lock_guard lock(TheState().mutex);
  TheState().fault_of_all = result;
}

void FakeDriver::Recover() {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  state.faults.clear();
  state.fault_of_all = CL_SUCCESS;
  state.calls.clear();
  state.sources.clear();
}

int FakeDriver::CallCount(const std::string& function) {
  const std::lock_guard lock(TheState().mutex);
  const auto found = TheState().calls.find(function);
  return found == TheState().calls.end() ? 0 : found->second;
}

int64_t FakeDriver::LiveObjects() { return live_objects; }

std::vector<std::string> FakeDriver::BuiltSources() {
  const std::lock_guard lock(TheState().mutex);
  return TheState().sources;
}

}  // namespace onnxifi::opencl
