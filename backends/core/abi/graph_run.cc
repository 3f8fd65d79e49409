// SPDX-License-Identifier: Apache-2.0
//
// GraphRun: the order of the checks is the interface's, so each step stands by itself.

#include "backends/core/abi/graph_run.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/abi/descriptor_check.h"
#include "backends/core/abi/value_record.h"

namespace onnxifi::abi {

using base::Code;
using base::Status;

Status CheckPointers(const IoDescriptors& io) {
  if (io.inputs == nullptr && io.inputs_count > 0) {
    return Status(Code::kInvalidPointer, "The array of " + std::to_string(io.inputs_count) +
                                             " input descriptors is NULL.");
  }
  if (io.values == nullptr && io.values_count > 0) {
    return Status(Code::kInvalidPointer,
                  "The array of " + std::to_string(io.values_count) + " input values is NULL.");
  }
  if (io.keeps_others && io.outputs_count == 0) return base::Ok();
  if (io.outputs == nullptr) {
    return Status(Code::kInvalidPointer, "The array of output descriptors is NULL.");
  }
  if (io.outputs_count == 0) {
    return Status(Code::kInvalidSize, "The number of output descriptors (0) is below 1.");
  }
  return base::Ok();
}

namespace {

// The input values as descriptors: a tensor of numbers as one of the copy of its memory.
Status AppendValues(const IoDescriptors& io, std::vector<TensorDescriptor>& inputs) {
  for (uint32_t index = 0; index < io.values_count; ++index) {
    const std::string position = "Input value " + std::to_string(index);
    if (io.values[index] == nullptr) {
      return {Code::kInvalidPointer, position + " is NULL."};
    }
    // The name lies in front of what tells the kind.
    const bool has_name =
        io.values[index]->struct_size >= offsetof(onnxValue, name) + sizeof(io.values[index]->name);
    if (!has_name || io.values[index]->name == nullptr) {
      return {has_name ? Code::kInvalidName : Code::kInvalidSize,
              position + (has_name ? " has a NULL name." : " has no room for a name.")};
    }
    TensorDescriptor& input = inputs.emplace_back();
    input.name = io.values[index]->name;
    ONNXIFI_ASSIGN_OR_RETURN(input.value,
                             CopyValue(*io.values[index], "Input '" + input.name + "'"));
    if (!input.value->is_tensor()) continue;
    const tensor::Tensor& tensor = input.value->tensor;
    input.data_type = static_cast<onnxEnum>(tensor.type());
    input.shape.assign(tensor.extents().begin(), tensor.extents().end());
    input.buffer = reinterpret_cast<onnxPointer>(tensor.data());
  }
  return base::Ok();
}

// Stands for every declared output that has no descriptor.
void AppendKept(const std::vector<DeclaredTensor>& declared,
                std::vector<TensorDescriptor>& outputs) {
  for (const DeclaredTensor& declaration : declared) {
    const bool has_descriptor = std::any_of(
        outputs.begin(), outputs.end(),
        [&](const TensorDescriptor& output) { return output.name == declaration.name; });
    if (has_descriptor) continue;
    TensorDescriptor& output = outputs.emplace_back();
    output.name = declaration.name;
    output.is_kept = true;
  }
}

}  // namespace

base::Result<std::shared_ptr<const Binding>> MakeBinding(const GraphObject& graph,
                                                         const IoDescriptors& io, BindingUse use) {
  ONNXIFI_RETURN_IF_ERROR(CheckPointers(io));
  const Signature* signature = graph.graph->signature();
  const auto* declared_inputs = signature != nullptr ? &signature->inputs : nullptr;
  const auto* declared_outputs = signature != nullptr ? &signature->outputs : nullptr;
  const Backend& backend = *graph.owner->backend;

  GraphTensors tensors;
  ONNXIFI_ASSIGN_OR_RETURN(tensors.inputs, CopyDescriptors(DescriptorRole::kInput, io.inputs_count,
                                                           io.inputs, backend, declared_inputs));
  ONNXIFI_ASSIGN_OR_RETURN(tensors.outputs,
                           CopyDescriptors(DescriptorRole::kOutput, io.outputs_count, io.outputs,
                                           backend, declared_outputs));
  ONNXIFI_RETURN_IF_ERROR(AppendValues(io, tensors.inputs));
  ONNXIFI_RETURN_IF_ERROR(CheckNames(DescriptorRole::kInput, tensors.inputs, declared_inputs));
  ONNXIFI_RETURN_IF_ERROR(CheckNames(DescriptorRole::kOutput, tensors.outputs, declared_outputs));
  tensors.keeps_others = io.keeps_others;
  if (signature != nullptr) {
    if (io.keeps_others) AppendKept(signature->outputs, tensors.outputs);
    ONNXIFI_ASSIGN_OR_RETURN(tensors.inputs, Arrange(DescriptorRole::kInput,
                                                     std::move(tensors.inputs), signature->inputs));
    ONNXIFI_ASSIGN_OR_RETURN(
        tensors.outputs,
        Arrange(DescriptorRole::kOutput, std::move(tensors.outputs), signature->outputs));
    ONNXIFI_RETURN_IF_ERROR(CheckDeclarations(tensors, *signature));
  }
  return use == BindingUse::kStanding ? graph.graph->Bind(std::move(tensors))
                                      : graph.graph->BindForOneRun(std::move(tensors));
}

namespace {

// Descriptors in another order than the graph's tensors are bound anew.
bool IsSame(const onnxTensorDescriptorV1& given, const TensorDescriptor& bound) {
  return given.tag == ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1 && given.name != nullptr &&
         given.memoryType == bound.memory_type && given.dataType == bound.data_type &&
         given.buffer == bound.buffer && given.dimensions == bound.shape.size() &&
         (given.dimensions == 0 || given.shape != nullptr) &&
         std::equal(bound.shape.begin(), bound.shape.end(), given.shape) &&
         bound.name == given.name;
}

bool AreSame(uint32_t count, const onnxTensorDescriptorV1* given,
             std::span<const TensorDescriptor> bound) {
  return std::ranges::equal(std::span(given, count), bound, IsSame);
}

// Whether the caller's memory is all the host's, and none of it is kept by being bound.
bool IsOfHostMemory(std::span<const TensorDescriptor> bound) {
  return std::ranges::all_of(bound, [](const TensorDescriptor& tensor) {
    return tensor.memory_type == ONNXIFI_MEMORY_TYPE_CPU && tensor.owner == nullptr &&
           tensor.value == nullptr && !tensor.is_kept;
  });
}

}  // namespace

namespace {

// As many as there are callers who run a graph at once.
constexpr size_t kMaxOneRunBindings = 16;

// Whether the first output is the same, without which nothing is.
bool MayBeSame(const IoDescriptors& io, const Binding& bound) {
  const std::vector<TensorDescriptor>& outputs = bound.tensors().outputs;
  return io.outputs_count == outputs.size() && !outputs.empty() && io.outputs != nullptr &&
         io.outputs[0].buffer == outputs[0].buffer;
}

bool IsSame(const IoDescriptors& io, const Binding& bound) {
  return io.values_count == 0 && !io.keeps_others &&
         AreSame(io.inputs_count, io.inputs, bound.tensors().inputs) &&
         AreSame(io.outputs_count, io.outputs, bound.tensors().outputs);
}

// The binding of an earlier run that may be the same; it is the first from then on. Null without.
std::shared_ptr<const Binding> FindEarlier(GraphObject& graph, const IoDescriptors& io) {
  const std::lock_guard lock(graph.mutex);
  std::vector<std::shared_ptr<const Binding>>& earlier = graph.one_run_bindings;
  const auto found = std::ranges::find_if(
      earlier, [&](const std::shared_ptr<const Binding>& bound) { return MayBeSame(io, *bound); });
  if (found == earlier.end()) return nullptr;
  std::rotate(earlier.begin(), found, std::next(found));
  return earlier.front();
}

}  // namespace

base::Result<std::shared_ptr<const Binding>> BindOneRun(GraphObject& graph,
                                                        const IoDescriptors& io) {
  const std::shared_ptr<const Binding> earlier = FindEarlier(graph, io);
  if (earlier != nullptr && IsSame(io, *earlier)) return earlier;
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const Binding> binding,
                           MakeBinding(graph, io, BindingUse::kOneRun));
  const bool serves = binding->ServesLaterRuns() && IsOfHostMemory(binding->tensors().inputs) &&
                      IsOfHostMemory(binding->tensors().outputs);
  // What is kept no longer ends behind the lock.
  std::shared_ptr<const Binding> oldest;
  const std::lock_guard lock(graph.mutex);
  std::vector<std::shared_ptr<const Binding>>& kept = graph.one_run_bindings;
  // In the place of what has the same first output, which whoever binds it now has done with.
  const auto replaced = std::ranges::find(kept, earlier);
  const auto leaves = replaced != kept.end()              ? replaced
                      : kept.size() == kMaxOneRunBindings ? std::prev(kept.end())
                                                          : kept.end();
  if (leaves != kept.end()) {
    oldest = std::move(*leaves);
    kept.erase(leaves);
  }
  if (serves) kept.insert(kept.begin(), binding);
  return binding;
}

Status CheckFenceTag(const onnxMemoryFenceV1& fence, const char* which) {
  if (fence.tag == ONNXIFI_TAG_MEMORY_FENCE_V1) return base::Ok();
  return Status(Code::kUnsupportedTag, std::string("The ") + which + " fence has the tag " +
                                           std::to_string(fence.tag) + "; the only one known is " +
                                           std::to_string(ONNXIFI_TAG_MEMORY_FENCE_V1) + ".");
}

Status CheckFenceType(const onnxMemoryFenceV1& fence, const char* which, const Backend& backend) {
  if (fence.type == ONNXIFI_SYNCHRONIZATION_EVENT) return base::Ok();
  if (fence.type == ONNXIFI_SYNCHRONIZATION_IMPLICIT) {
    if (backend.TakesImplicitFences()) return base::Ok();
    return Status(Code::kUnsupportedFenceType,
                  std::string("The ") + which +
                      " fence asks for implicit synchronisation (2); this backend takes events (0)"
                      " only.");
  }
  return Status(Code::kInvalidFenceType, std::string("The ") + which + " fence has type " +
                                             std::to_string(fence.type) +
                                             ", which is no synchronisation type.");
}

Status StartRun(const GraphObject& graph, std::shared_ptr<const Binding> binding, RunStart start,
                onnxMemoryFenceV1* output_fence) {
  // The handle is made before the run, because nothing may fail once the run is accepted.
  auto object = std::make_shared<EventObject>();
  object->owner = graph.owner;
  object->binding = binding;
  HandleTable<EventObject>& events = Library::Get().events();
  const onnxEvent handle = events.Add(object);
  auto output = start.is_after_shared_queue
                    ? graph.graph->RunAfterSharedQueue(std::move(binding))
                    : graph.graph->Run(std::move(binding), std::move(start.input));
  if (!output.ok()) {
    events.Take(handle);
    return std::move(output).status();
  }
  object->event = *std::move(output);
  output_fence->event = handle;
  return base::Ok();
}

}  // namespace onnxifi::abi
