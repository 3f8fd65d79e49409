// SPDX-License-Identifier: Apache-2.0
//
// Functions of the emulated driver: graphs. A graph is carried out in an order that its dependences
// allow; where launches are done twice, in the opposite one of those, so that a dependence that is
// missing shows.

#include <algorithm>
#include <map>
#include <utility>

#include "backends/cuda/testing/emulated/objects.h"

namespace emulated {
namespace {

// The nodes' numbers; of those that may come next, the first or the last does.
std::vector<size_t> OrderOf(const std::vector<std::vector<size_t>>& after, bool is_descending) {
  std::vector<size_t> order;
  std::vector<bool> is_done(after.size(), false);
  while (order.size() < after.size()) {
    const size_t before = order.size();
    for (size_t place = 0; place < after.size(); ++place) {
      const size_t n = is_descending ? after.size() - 1 - place : place;
      if (is_done[n]) continue;
      if (!std::all_of(after[n].begin(), after[n].end(), [&](size_t m) { return is_done[m]; }))
        continue;
      is_done[n] = true;
      order.push_back(n);
      break;
    }
    if (order.size() == before) return {};
  }
  return order;
}

}  // namespace

std::shared_ptr<Executable> MakeExecutable(const Graph& graph) {
  auto executable = std::make_shared<Executable>();
  executable->kept = graph.kept;
  std::map<const Node*, size_t> numbers;
  for (const auto& node : graph.nodes) {
    numbers[node.get()] = executable->actions.size();
    executable->nodes.push_back(node.get());
    executable->actions.push_back(node->action);
  }
  for (const auto& node : graph.nodes) {
    executable->after.emplace_back();
    for (const Node* const earlier : node->after) {
      const auto found = numbers.find(earlier);
      if (found != numbers.end()) executable->after.back().push_back(found->second);
    }
  }
  if (OrderOf(executable->after, false).size() != executable->actions.size()) return nullptr;
  return executable;
}

Action MakeGraphLaunch(std::shared_ptr<Executable> executable) {
  Action action;
  action.type = CU_GRAPH_NODE_TYPE_GRAPH;
  // Parameters may change once the launch is in the stream: it keeps those it has.
  action.run = [actions = executable->actions, after = executable->after,
                kept = executable->kept]() -> std::string {
    bool runs_twice = false;
    {
      const std::lock_guard lock(D().mutex);
      runs_twice = D().runs_twice;
    }
    for (const size_t n : OrderOf(after, runs_twice)) {
      if (actions[n].run == nullptr) continue;
      std::string fault = actions[n].run();
      if (!fault.empty()) return fault;
    }
    return std::string();
  };
  return action;
}

}  // namespace emulated

using namespace emulated;

namespace {

#define EMULATED_GRAPH(name, handle)            \
  Graph* const name = Find(D().graphs, handle); \
  if (name == nullptr) return Misuse(CUDA_ERROR_INVALID_HANDLE, "A graph is none.")
#define EMULATED_EXECUTABLE(name, handle)                 \
  Executable* const name = Find(D().executables, handle); \
  if (name == nullptr) return Misuse(CUDA_ERROR_INVALID_HANDLE, "An executable graph is none.")

CUresult AddNode(CUgraphNode* made, Graph* graph, const CUgraphNode* after, size_t count,
                 Action action) {
  if (made == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto node = std::make_shared<Node>();
  node->action = std::move(action);
  for (size_t n = 0; n < count; ++n) {
    auto* const earlier = reinterpret_cast<Node*>(after[n]);
    const bool is_known = std::any_of(graph->nodes.begin(), graph->nodes.end(),
                                      [&](const auto& known) { return known.get() == earlier; });
    if (!is_known) return Misuse(CUDA_ERROR_INVALID_VALUE, "A node follows one of another graph.");
    node->after.push_back(earlier);
  }
  *made = reinterpret_cast<CUgraphNode>(node.get());
  graph->nodes.push_back(std::move(node));
  return CUDA_SUCCESS;
}

CUresult Instantiate(CUgraphExec* made, CUgraph handle) {
  EMULATED_GRAPH(graph, handle);
  if (made == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Executable> executable = MakeExecutable(*graph);
  if (executable == nullptr)
    return Misuse(CUDA_ERROR_INVALID_VALUE, "A graph's dependences go round.");
  *made = reinterpret_cast<CUgraphExec>(executable.get());
  D().executables[executable.get()] = std::move(executable);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CUDAAPI cuGraphCreate(CUgraph* made, unsigned int flags) {
  EMULATED_CALL(cuGraphCreate, kInitialized);
  if (made == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  auto graph = std::make_shared<Graph>();
  *made = reinterpret_cast<CUgraph>(graph.get());
  D().graphs[graph.get()] = std::move(graph);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphDestroy(CUgraph handle) {
  EMULATED_CALL(cuGraphDestroy, kInitialized);
  EMULATED_GRAPH(graph, handle);
  (void)graph;
  D().graphs.erase(handle);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph graph,
                                             unsigned long long flags) {
  EMULATED_CALL(cuGraphInstantiateWithFlags, kWithContext);
  (void)flags;
  return Instantiate(made, graph);
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec* made, CUgraph graph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  EMULATED_CALL(cuGraphInstantiateWithParams, kWithContext);
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Instantiate(made, graph);
  parameters->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec handle) {
  EMULATED_CALL(cuGraphExecDestroy, kInitialized);
  EMULATED_EXECUTABLE(executable, handle);
  (void)executable;
  D().executables.erase(handle);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
  EMULATED_CALL(cuGraphUpload, kWithContext);
  EMULATED_EXECUTABLE(executable, handle);
  EMULATED_STREAM(stream, stream_handle);
  (void)executable;
  (void)stream;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  EMULATED_CALL(cuGraphLaunch, kWithContext);
  EMULATED_EXECUTABLE(executable, handle);
  EMULATED_STREAM(stream, stream_handle);
  (void)executable;
  if (stream->capture != nullptr) {
    return Misuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                  "An executable graph is launched into a capture.");
  }
  return Enqueue(stream, MakeGraphLaunch(D().executables.at(handle)));
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  EMULATED_CALL(cuGraphGetNodes, kInitialized);
  EMULATED_GRAPH(graph, handle);
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t n = 0; nodes != nullptr && n < std::min(*count, graph->nodes.size()); ++n) {
    nodes[n] = reinterpret_cast<CUgraphNode>(graph->nodes[n].get());
  }
  *count = nodes == nullptr ? graph->nodes.size() : std::min(*count, graph->nodes.size());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  EMULATED_CALL(cuGraphNodeGetType, kInitialized);
  *type = reinterpret_cast<Node*>(node)->action.type;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphKernelNodeGetParams_v2(CUgraphNode node,
                                               CUDA_KERNEL_NODE_PARAMS* parameters) {
  EMULATED_CALL(cuGraphKernelNodeGetParams_v2, kInitialized);
  const Action& action = reinterpret_cast<Node*>(node)->action;
  if (action.type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
  *parameters = action.kernel;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(CUgraphExec handle, CUgraphNode node,
                                                   const CUDA_KERNEL_NODE_PARAMS* parameters) {
  EMULATED_CALL(cuGraphExecKernelNodeSetParams_v2, kWithContext);
  EMULATED_EXECUTABLE(executable, handle);
  const auto found =
      std::find(executable->nodes.begin(), executable->nodes.end(), reinterpret_cast<Node*>(node));
  if (found == executable->nodes.end() || parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Action& action = executable->actions[found - executable->nodes.begin()];
  if (action.type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
  Action changed;
  const CUresult result = MakeLaunch(*parameters, &changed);
  if (result == CUDA_SUCCESS) action = std::move(changed);
  return result;
}

CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode* made, CUgraph handle,
                                         const CUgraphNode* after, size_t count,
                                         const CUDA_KERNEL_NODE_PARAMS* parameters) {
  EMULATED_CALL(cuGraphAddKernelNode_v2, kWithContext);
  EMULATED_GRAPH(graph, handle);
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Action action;
  const CUresult result = MakeLaunch(*parameters, &action);
  return result != CUDA_SUCCESS ? result : AddNode(made, graph, after, count, std::move(action));
}

CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode* made, CUgraph handle,
                                          const CUgraphNode* after, size_t count,
                                          CUgraph child_handle) {
  EMULATED_CALL(cuGraphAddChildGraphNode, kWithContext);
  EMULATED_GRAPH(graph, handle);
  EMULATED_GRAPH(child, child_handle);
  // A copy: what becomes of the child later changes nothing.
  std::shared_ptr<Executable> copy = MakeExecutable(*child);
  if (copy == nullptr) return Misuse(CUDA_ERROR_INVALID_VALUE, "A graph's dependences go round.");
  return AddNode(made, graph, after, count, MakeGraphLaunch(std::move(copy)));
}

CUresult CUDAAPI cuUserObjectCreate(CUuserObject* made, void* data, CUhostFn destroy,
                                    unsigned int count, unsigned int flags) {
  EMULATED_CALL(cuUserObjectCreate, kInitialized);
  if (made == nullptr || destroy == nullptr || count == 0 ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto object = std::make_shared<UserObject>(destroy, data);
  *made = reinterpret_cast<CUuserObject>(object.get());
  D().user_objects[object.get()].assign(count, object);
  return CUDA_SUCCESS;
}

namespace {
// Takes `count` references that the caller owns.
std::vector<std::shared_ptr<UserObject>> TakeReferences(CUuserObject object, unsigned count) {
  const auto found = D().user_objects.find(object);
  if (found == D().user_objects.end() || found->second.size() < count) return {};
  std::vector<std::shared_ptr<UserObject>> taken(found->second.end() - count, found->second.end());
  found->second.resize(found->second.size() - count);
  if (found->second.empty()) D().user_objects.erase(found);
  return taken;
}
}  // namespace

CUresult CUDAAPI cuUserObjectRelease(CUuserObject object, unsigned int count) {
  EMULATED_CALL(cuUserObjectRelease, kInitialized);
  if (TakeReferences(object, count).empty())
    return Misuse(CUDA_ERROR_INVALID_VALUE, "A reference that is not owned is released.");
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphRetainUserObject(CUgraph handle, CUuserObject object, unsigned int count,
                                         unsigned int flags) {
  EMULATED_CALL(cuGraphRetainUserObject, kInitialized);
  EMULATED_GRAPH(graph, handle);
  if (count == 0 || flags > CU_GRAPH_USER_OBJECT_MOVE) return CUDA_ERROR_INVALID_VALUE;
  if (flags == CU_GRAPH_USER_OBJECT_MOVE) {
    for (auto& reference : TakeReferences(object, count)) graph->kept.push_back(reference);
    return graph->kept.empty()
               ? Misuse(CUDA_ERROR_INVALID_VALUE, "A reference that is not owned is moved.")
               : CUDA_SUCCESS;
  }
  const auto found = D().user_objects.find(object);
  if (found == D().user_objects.end()) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned k = 0; k < count; ++k) graph->kept.push_back(found->second.front());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode* made, CUgraph handle, const CUgraphNode* after,
                                     size_t count) {
  EMULATED_CALL(cuGraphAddEmptyNode, kInitialized);
  EMULATED_GRAPH(graph, handle);
  return AddNode(made, graph, after, count, Action());
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode* made, CUgraph handle, const CUgraphNode* after,
                                    size_t count, const CUDA_HOST_NODE_PARAMS* parameters) {
  EMULATED_CALL(cuGraphAddHostNode, kInitialized);
  EMULATED_GRAPH(graph, handle);
  if (parameters == nullptr || parameters->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Action action;
  action.type = CU_GRAPH_NODE_TYPE_HOST;
  action.run = [call_it = *parameters]() -> std::string {
    call_it.fn(call_it.userData);
    return std::string();
  };
  return AddNode(made, graph, after, count, std::move(action));
}

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode* made, CUgraph handle, const CUgraphNode* after,
                                      size_t count, const CUDA_MEMSET_NODE_PARAMS* parameters,
                                      CUcontext) {
  EMULATED_CALL(cuGraphAddMemsetNode, kWithContext);
  EMULATED_GRAPH(graph, handle);
  if (parameters == nullptr || parameters->height != 1) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMSET_NODE_PARAMS fill = *parameters;
  if (fill.elementSize != 1 && fill.elementSize != 2 && fill.elementSize != 4)
    return CUDA_ERROR_INVALID_VALUE;
  Action action;
  action.type = CU_GRAPH_NODE_TYPE_MEMSET;
  action.run = [fill]() -> std::string {
    {
      const std::lock_guard lock(D().mutex);
      std::string fault = CheckRange(fill.dst, fill.width * fill.elementSize, "A fill of a graph");
      if (!fault.empty()) return fault;
    }
    auto* const bytes = reinterpret_cast<char*>(fill.dst);
    for (size_t n = 0; n < fill.width; ++n) {
      __builtin_memcpy(bytes + n * fill.elementSize, &fill.value, fill.elementSize);
    }
    return std::string();
  };
  return AddNode(made, graph, after, count, std::move(action));
}

CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode* made, CUgraph handle, const CUgraphNode* after,
                                      size_t count, const CUDA_MEMCPY3D* parameters, CUcontext) {
  EMULATED_CALL(cuGraphAddMemcpyNode, kWithContext);
  EMULATED_GRAPH(graph, handle);
  if (parameters == nullptr || parameters->Height != 1 || parameters->Depth != 1)
    return CUDA_ERROR_INVALID_VALUE;
  const bool from_device = parameters->srcMemoryType == CU_MEMORYTYPE_DEVICE;
  const bool to_device = parameters->dstMemoryType == CU_MEMORYTYPE_DEVICE;
  const uintptr_t from =
      (from_device ? parameters->srcDevice : reinterpret_cast<uintptr_t>(parameters->srcHost)) +
      parameters->srcXInBytes;
  const uintptr_t to =
      (to_device ? parameters->dstDevice : reinterpret_cast<uintptr_t>(parameters->dstHost)) +
      parameters->dstXInBytes;
  const size_t size_bytes = parameters->WidthInBytes;
  Action action;
  action.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  action.run = [=]() -> std::string {
    {
      const std::lock_guard lock(D().mutex);
      std::string fault =
          from_device ? CheckRange(from, size_bytes, "A copy of a graph") : std::string();
      if (fault.empty() && to_device) fault = CheckRange(to, size_bytes, "A copy of a graph");
      if (!fault.empty()) return fault;
    }
    __builtin_memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size_bytes);
    return std::string();
  };
  return AddNode(made, graph, after, count, std::move(action));
}

CUresult CUDAAPI cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode* from,
                                           const CUgraphNode* to, const CUgraphEdgeData*,
                                           size_t count) {
  EMULATED_CALL(cuGraphAddDependencies_v2, kInitialized);
  EMULATED_GRAPH(graph, handle);
  (void)graph;
  for (size_t n = 0; n < count; ++n) {
    reinterpret_cast<Node*>(to[n])->after.push_back(reinterpret_cast<Node*>(from[n]));
  }
  return CUDA_SUCCESS;
}
