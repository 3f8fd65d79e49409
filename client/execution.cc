// SPDX-License-Identifier: Apache-2.0
//
// One bind-run-wait cycle.

#include "client/execution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "client/guarded_buffer.h"

namespace onnxifi::client {
namespace {

using onnx_file::DenseTensor;

base::Status Fault(std::string sentence) {
  return base::Status(base::Code::kInternalError, std::move(sentence));
}

std::vector<GuardedBuffer> MakeBuffers(std::span<const DenseTensor> tensors, bool misalign) {
  std::vector<GuardedBuffer> buffers;
  for (const DenseTensor& tensor : tensors) {
    const int bits = onnx_file::FactsOf(tensor.type).bits;
    buffers.emplace_back(tensor.bytes.size(), misalign ? std::max(1, bits / 8) : 0);
  }
  return buffers;
}

DescriptorList Describe(std::span<const DenseTensor> tensors, std::span<GuardedBuffer> buffers) {
  DescriptorList list;
  for (size_t index = 0; index < tensors.size(); ++index) {
    const DenseTensor& tensor = tensors[index];
    list.Add(tensor.name, tensor.type, tensor.extents, buffers[index].data());
  }
  return list;
}

// Shapes after a run by output name, filled by the library's callback.
using ShapesByName = std::map<std::string, std::vector<int64_t>, std::less<>>;

void ONNXIFI_ABI CollectShape(void* context, const onnxTensorShape* shape) {
  auto& shapes = *static_cast<ShapesByName*>(context);
  if (shape->has_rank != 0) {
    shapes[shape->name].assign(shape->extents, shape->extents + shape->rank);
  }
}

// Cuts the outputs, which were bound with upper bounds, to the shapes they have.
base::Status TakeRunShapes(const Library& library, const Extensions& extensions, onnxEvent event,
                           std::vector<DenseTensor>& outputs) {
  if (extensions.get_run_output_shapes == nullptr) return base::Ok();
  ShapesByName shapes;
  ONNXIFI_RETURN_IF_ERROR(
      ExpectSuccess(library, "onnxGetRunOutputShapes",
                    extensions.get_run_output_shapes(event, CollectShape, &shapes)));
  for (DenseTensor& output : outputs) {
    const auto shape = shapes.find(output.name);
    if (shape == shapes.end()) {
      return Fault(fmt::format("onnxGetRunOutputShapes does not report output '{}'.", output.name));
    }
    const std::optional<int64_t> count = onnx_file::ElementCount(shape->second);
    const std::optional<int64_t> size_bytes =
        count ? onnx_file::SizeBytes(output.type, *count) : std::nullopt;
    if (!size_bytes || *size_bytes > static_cast<int64_t>(output.bytes.size())) {
      return Fault(fmt::format(
          "onnxGetRunOutputShapes says that output '{}' has shape {}, which "
          "does not fit into the bound {}.",
          output.name, onnx_file::ToString(shape->second), onnx_file::ToString(output.extents)));
    }
    output.extents = shape->second;
    output.bytes.resize(static_cast<size_t>(*size_bytes));
  }
  return base::Ok();
}

base::Status CheckBuffers(std::span<const DenseTensor> inputs,
                          std::span<const GuardedBuffer> input_buffers,
                          std::span<const DenseTensor> outputs,
                          std::span<const GuardedBuffer> output_buffers) {
  for (size_t index = 0; index < inputs.size(); ++index) {
    const std::span<const std::byte> now = input_buffers[index].bytes();
    if (!std::ranges::equal(now, inputs[index].bytes) || !input_buffers[index].IsIntact()) {
      return Fault(fmt::format("The run writes to the memory of input '{}'.", inputs[index].name));
    }
  }
  for (size_t index = 0; index < outputs.size(); ++index) {
    if (!output_buffers[index].IsIntact()) {
      return Fault(
          fmt::format("The run writes beside the buffer of output '{}'.", outputs[index].name));
    }
  }
  return base::Ok();
}

// Starts a run by the function that is for callers in several threads; returns its event.
base::Result<onnxEvent> BindAndRun(const Library& library, const Extensions& extensions,
                                   onnxGraph graph, const DescriptorList& inputs,
                                   const DescriptorList& outputs) {
  onnxMemoryFenceV1 fence = {ONNXIFI_TAG_MEMORY_FENCE_V1, ONNXIFI_SYNCHRONIZATION_EVENT, {nullptr}};
  ONNXIFI_RETURN_IF_ERROR(
      ExpectSuccess(library, "onnxSetIOAndRunGraph",
                    extensions.set_io_and_run_graph(graph, inputs.count(), inputs.data(),
                                                    outputs.count(), outputs.data(), &fence)));
  if (fence.event == nullptr) {
    return Fault("onnxSetIOAndRunGraph stores no event in the output fence.");
  }
  return fence.event;
}

}  // namespace

void DescriptorList::Add(std::string name, onnx_file::ElementType type,
                         std::span<const int64_t> extents, void* buffer) {
  const std::vector<uint64_t>& shape = shapes_.emplace_back(extents.begin(), extents.end());
  onnxTensorDescriptorV1 descriptor = {};
  descriptor.tag = ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1;
  descriptor.name = names_.emplace_back(std::move(name)).c_str();
  descriptor.dataType = static_cast<onnxEnum>(type);
  descriptor.memoryType = ONNXIFI_MEMORY_TYPE_CPU;
  descriptor.dimensions = static_cast<uint32_t>(shape.size());
  descriptor.shape = shape.empty() ? nullptr : shape.data();
  descriptor.buffer = reinterpret_cast<onnxPointer>(buffer);
  descriptors_.push_back(descriptor);
}

base::Status ExpectSuccess(const Library& library, std::string_view function, onnxStatus status) {
  if (IsAcceptance(status)) return base::Ok();
  const std::string reason = library.LastError();
  return Fault(fmt::format("{} answers {}{}", function, StatusName(status),
                           reason.empty() ? std::string(".") : ": " + reason));
}

base::Status RunAndWait(const Library& library, onnxBackend backend, onnxGraph graph,
                        const ExecutionOptions& options, onnxEvent& output_event) {
  onnxEvent input_event = nullptr;
  ONNXIFI_RETURN_IF_ERROR(
      ExpectSuccess(library, "onnxInitEvent", library.onnxInitEvent(backend, &input_event)));
  const ScopedEvent scoped_input(library, input_event);
  if (options.signal_before_run) {
    ONNXIFI_RETURN_IF_ERROR(
        ExpectSuccess(library, "onnxSignalEvent", library.onnxSignalEvent(input_event)));
  }
  const onnxMemoryFenceV1 input_fence = {
      ONNXIFI_TAG_MEMORY_FENCE_V1, ONNXIFI_SYNCHRONIZATION_EVENT, {input_event}};
  onnxMemoryFenceV1 output_fence = {
      ONNXIFI_TAG_MEMORY_FENCE_V1, ONNXIFI_SYNCHRONIZATION_EVENT, {nullptr}};
  ONNXIFI_RETURN_IF_ERROR(ExpectSuccess(library, "onnxRunGraph",
                                        library.onnxRunGraph(graph, &input_fence, &output_fence)));
  output_event = output_fence.event;
  if (output_event == nullptr) return Fault("onnxRunGraph stores no event in the output fence.");
  if (!options.signal_before_run) {
    ONNXIFI_RETURN_IF_ERROR(
        ExpectSuccess(library, "onnxSignalEvent", library.onnxSignalEvent(input_event)));
  }
  return ExpectSuccess(library, "onnxWaitEvent", library.onnxWaitEvent(output_event));
}

base::Result<std::vector<DenseTensor>> Execute(const Library& library, const Extensions& extensions,
                                               onnxBackend backend, onnxGraph graph,
                                               std::span<const DenseTensor> inputs,
                                               std::span<const DenseTensor> outputs,
                                               const ExecutionOptions& options) {
  std::vector<GuardedBuffer> input_buffers = MakeBuffers(inputs, options.misalign);
  std::vector<GuardedBuffer> output_buffers = MakeBuffers(outputs, options.misalign);
  for (size_t index = 0; index < inputs.size(); ++index) {
    std::ranges::copy(inputs[index].bytes, input_buffers[index].data());
  }
  onnxEvent output_event = nullptr;
  base::Status run;
  {
    // Gone before the run: a library copies what it needs of them.
    const DescriptorList input_list = Describe(inputs, input_buffers);
    const DescriptorList output_list = Describe(outputs, output_buffers);
    if (options.binds_with_run) {
      ONNXIFI_ASSIGN_OR_RETURN(output_event,
                               BindAndRun(library, extensions, graph, input_list, output_list));
    } else {
      ONNXIFI_RETURN_IF_ERROR(
          ExpectSuccess(library, "onnxSetGraphIO",
                        library.onnxSetGraphIO(graph, input_list.count(), input_list.data(),
                                               output_list.count(), output_list.data())));
    }
  }
  for (int number = 1; number < options.run_count; ++number) {
    onnxEvent event = nullptr;
    const base::Status run = RunAndWait(library, backend, graph, options, event);
    const ScopedEvent scoped(library, event);
    ONNXIFI_RETURN_IF_ERROR(run);
    for (GuardedBuffer& buffer : output_buffers) buffer.Refill();
  }
  if (options.binds_with_run) {
    run = ExpectSuccess(library, "onnxWaitEvent", library.onnxWaitEvent(output_event));
  } else {
    run = RunAndWait(library, backend, graph, options, output_event);
  }
  const ScopedEvent scoped_output(library, output_event);
  ONNXIFI_RETURN_IF_ERROR(run);
  ONNXIFI_RETURN_IF_ERROR(CheckBuffers(inputs, input_buffers, outputs, output_buffers));

  std::vector<DenseTensor> results;
  for (size_t index = 0; index < outputs.size(); ++index) {
    DenseTensor& result = results.emplace_back();
    result.name = outputs[index].name;
    result.type = outputs[index].type;
    result.extents = outputs[index].extents;
    const std::span<const std::byte> bytes = output_buffers[index].bytes();
    result.bytes.assign(bytes.begin(), bytes.end());
  }
  ONNXIFI_RETURN_IF_ERROR(TakeRunShapes(library, extensions, output_event, results));
  return results;
}

}  // namespace onnxifi::client
