// SPDX-License-Identifier: Apache-2.0
//
// The emulated driver's objects, and the order in which it carries out what streams hold. A handle
// is the address of an object, and is looked up before it is used.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_OBJECTS_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_OBJECTS_H_

#include <cuda.h>

#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/testing/emulated/interface.h"

namespace emulated {

using Clock = std::chrono::steady_clock;

struct Context {
  int device = 0;
  bool is_primary = false;
  int owners = 0;
  unsigned flags = 0;
  // What every later call answers: the context is lost.
  CUresult lost = CUDA_SUCCESS;
};

struct Memory {
  uintptr_t base = 0;
  size_t size_bytes = 0;
  Context* context = nullptr;
  bool is_host = false;
  bool is_registered = false;
  bool is_managed = false;
  unsigned flags = 0;
  // With the pages that nobody may touch.
  char* mapping = nullptr;
  size_t mapping_bytes = 0;
};

// Whether and when a piece of work was done.
struct Completion {
  bool is_done = false;
  Clock::time_point time;
};

// What a stream or a node of a graph holds.
struct Action {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  // Empty, or why no device survives it. Null: nothing to do.
  std::function<std::string()> run;
  // Null: at once.
  std::function<bool()> is_ready;
  // Of kernel nodes.
  CUDA_KERNEL_NODE_PARAMS kernel{};
};

struct Operation {
  Action action;
  std::vector<std::shared_ptr<Completion>> after;
  std::shared_ptr<Completion> completion;
  uint64_t number = 0;
};

struct Node {
  Action action;
  std::vector<Node*> after;
};

// A caller's object that lives as long as anybody refers to it. Its end is told by a thread of the
// driver's.
struct UserObject {
  UserObject(CUhostFn at_end, void* of_caller) : destroy(at_end), data(of_caller) {}
  UserObject(const UserObject&) = delete;
  UserObject& operator=(const UserObject&) = delete;
  ~UserObject();
  const CUhostFn destroy;
  void* const data;
};

struct Graph {
  std::vector<std::shared_ptr<Node>> nodes;
  // Also of what is made of it.
  std::vector<std::shared_ptr<UserObject>> kept;
};

struct Executable {
  std::vector<std::shared_ptr<UserObject>> kept;
  // In an order in which each follows what it depends on, by index.
  std::vector<Action> actions;
  std::vector<std::vector<size_t>> after;
  std::vector<const Node*> nodes;
};

struct Stream;

struct Capture {
  std::shared_ptr<Graph> graph;
  Stream* origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  uint64_t number = 0;
  bool is_invalid = false;
};

struct Stream {
  Context* context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  uint64_t number = 0;
  bool is_legacy = false;
  bool is_busy = false;
  std::deque<Operation> operations;
  // Of the last operation that it was given.
  std::shared_ptr<Completion> last;
  std::shared_ptr<Capture> capture;
  std::vector<Node*> capture_after;
};

struct Event {
  Context* context = nullptr;
  unsigned flags = 0;
  std::shared_ptr<Completion> recorded;
  std::shared_ptr<Capture> capture;
  std::vector<Node*> capture_after;
};

// Its code stays while a launch or a graph needs it.
struct Module {
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module();
  Context* context = nullptr;
  void* library = nullptr;
  EmulatedModule entries{};
};

struct Function {
  Module* module = nullptr;
  const EmulatedKernel* kernel = nullptr;
  int most_dynamic_shared_bytes = 48 << 10;
};

struct Fault {
  CUresult result = CUDA_SUCCESS;
  int calls_before = 0;
  int count = 0;
};

template <typename T>
using Objects = std::map<const void*, std::shared_ptr<T>>;

struct Driver {
  std::mutex mutex;
  // Whoever carries out an operation holds it, without the mutex.
  std::mutex execution;
  std::condition_variable changed;

  bool is_initialized = false;
  int process = 0;
  int device_count = 1;
  uint64_t memory_bytes = uint64_t{4} << 30;
  bool runs_twice = false;
  std::map<int, uint64_t> used_bytes;

  Objects<Context> contexts;
  std::vector<Context*> primary;
  std::map<uintptr_t, Memory> memory;
  // Freed memory, whose addresses stay forbidden for a while.
  std::deque<Memory> freed;
  Objects<Stream> streams;
  // Of destroyed streams, until they are done.
  std::vector<std::shared_ptr<Stream>> ending_streams;
  Objects<Event> events;
  Objects<Module> modules;
  Objects<Function> functions;
  Objects<Graph> graphs;
  // References that callers own.
  std::map<const void*, std::vector<std::shared_ptr<UserObject>>> user_objects;
  Objects<Executable> executables;
  std::map<Context*, std::shared_ptr<Stream>> legacy_streams;

  std::map<std::string, int> calls;
  std::map<std::string, Fault> faults;
  std::set<std::string> hidden;
  std::deque<std::string> misuses;
  uint64_t next_number = 1;
  bool has_worker = false;
  long long launch_count = 0;
  // Of emulated_set_clock: what events tell, and what a kernel and a host function take. 0: the
  // real clock tells the time.
  Clock::time_point clock;
  Clock::duration kernel_time{}, function_time{};
  bool has_clock() const { return kernel_time.count() > 0; }
};

Driver& D();

// One call of one of CUDA's functions: holds the driver's mutex, and tells what the function has to
// answer before it does anything.
class Call {
 public:
  enum Kind { kAnytime, kInitialized, kWithContext };
  Call(const char* function, Kind kind);
  CUresult result() const { return result_; }
  std::unique_lock<std::mutex>& lock() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
  CUresult result_ = CUDA_SUCCESS;
};

#define EMULATED_CALL(function, kind)                       \
  ::emulated::Call call(#function, ::emulated::Call::kind); \
  if (call.result() != CUDA_SUCCESS) return call.result()

// All below are called with the driver's mutex.

// Notes what no program should do, and answers `result`.
CUresult Misuse(CUresult result, std::string sentence);
// Of the calling thread; null if it has none.
Context* Current();
void SetCurrent(Context* context);
std::vector<Context*>& ContextStack();

template <typename T, typename Handle>
T* Find(const Objects<T>& objects, Handle handle) {
  const auto found = objects.find(handle);
  return found == objects.end() ? nullptr : found->second.get();
}

// The stream of a handle, the legacy one and the thread's own included. Null if there is none.
Stream* FindStream(CUstream handle);
#define EMULATED_STREAM(name, handle)                              \
  ::emulated::Stream* const name = ::emulated::FindStream(handle); \
  if (name == nullptr) return ::emulated::Misuse(CUDA_ERROR_INVALID_HANDLE, "A stream is none.")

// Puts the action into the stream, or into the graph that the stream is captured into.
CUresult Enqueue(Stream* stream, Action action, std::shared_ptr<Completion> awaited = nullptr,
                 std::shared_ptr<Completion> completion = nullptr);
// Carries out operations until `is_done`. The lock is the driver's mutex.
void WaitUntil(std::unique_lock<std::mutex>& lock, const std::function<bool()>& is_done);
// Until the context's streams are empty; all contexts if null.
void WaitForAll(std::unique_lock<std::mutex>& lock, const Context* context);
// Of a call that is not safe beside captures: a capture that the thread's mode takes note of is
// invalid from then on.
CUresult CheckNoCapture();
CUstreamCaptureMode& ThreadCaptureMode();

// The memory that holds the address; null if none does.
Memory* FindMemory(uintptr_t address);
// Ok if bytes of device or pinned memory lie there; else the sentence why not.
std::string CheckRange(uintptr_t address, size_t size_bytes, const char* what);
// Empty, or the sentence about a red zone that was written to.
std::string CheckRedZones();
void ReleaseMemory(const Memory& memory);
void ReleaseContext(Context* context);

// A launch as an action; also for nodes of graphs.
CUresult MakeLaunch(const CUDA_KERNEL_NODE_PARAMS& launch, Action* action);
// The graph in an order to carry it out.
std::shared_ptr<Executable> MakeExecutable(const Graph& graph);
Action MakeGraphLaunch(std::shared_ptr<Executable> executable);

}  // namespace emulated

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_OBJECTS_H_
