// SPDX-License-Identifier: Apache-2.0
//
// Sequence: puts this run's addresses into the arguments and calls the primitives.

#include "backends/cpu/onednn/sequence.h"

#include <algorithm>

#include "backends/cpu/onednn/call.h"
#include "backends/cpu/runtime/aligned_constant.h"

namespace onnxifi::onednn {
namespace {

constexpr int64_t kAlignment = 64;

// Whether the buffer lies where floats can be read in every run: in the arena, or as a constant at
// an address that is known.
bool IsAlwaysAligned(const program::Program& program, program::BufferId buffer,
                     device::Addresses constants) {
  if (program.buffers[buffer].kind == program::Buffer::Kind::kConstant) {
    return runtime::AlignedConstant::IsAligned(constants[buffer]);
  }
  return program.buffers[buffer].kind == program::Buffer::Kind::kTemporary &&
         std::ranges::find(program.outputs, buffer, &program::Port::buffer) ==
             program.outputs.end();
}

}  // namespace

std::vector<bool> ReadsOf(const device::BoundStep& step, const Work& work, bool has_loops,
                          device::Addresses constants) {
  std::vector<bool> reads(step.reads.size(), has_loops || !work.prologues.empty());
  for (const Work::Primitive& primitive : work.primitives) {
    for (const auto& [name, place] : primitive.arguments) {
      if (place.buffer == program::kNoBuffer) continue;
      if (!IsAlwaysAligned(*step.program, place.buffer, constants)) {
        reads.assign(reads.size(), true);
      }
      for (size_t read = 0; read < reads.size(); ++read) {
        reads[read] = reads[read] || step.reads[read].buffer == place.buffer;
      }
    }
  }
  return reads;
}

dnnl::primitive_attr Attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

Sequence::Sequence(Runtime& runtime, Work work, bool is_tiny,
                   std::shared_ptr<const reference::Expression> roots,
                   std::optional<reference::Epilogue> epilogue,
                   std::unique_ptr<device::BoundKernel> fallback, std::vector<bool> reads)
    : runtime_(runtime),
      work_(std::move(work)),
      is_tiny_(is_tiny),
      roots_(std::move(roots)),
      epilogue_(std::move(epilogue)),
      fallback_(std::move(fallback)),
      reads_(std::move(reads)) {}

base::Status Sequence::Run(device::Addresses addresses) const {
  if (!IsAligned(addresses)) return fallback_->Run(addresses);
  std::optional<threads::ThreadPool::Alone> alone;
  if (is_tiny_) alone.emplace(runtime_.pool());
  ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                           runtime_.work_memory().Lend(work_.size_bytes));
  for (const Work::Loops& loops : work_.prologues) {
    ONNXIFI_RETURN_IF_ERROR(
        loops.prologue.Run(addresses, lease.data() + loops.offset_bytes, runtime_.pool()));
  }
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Context> context, TakeContext());
  runtime_.EnterThread();
  ONNXIFI_RETURN_IF_ERROR(RunPrimitives(*context, addresses, lease.data()));
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(context));
  }
  if (!epilogue_) return base::Ok();
  return epilogue_->Run(lease.data(), addresses);
}

std::string Sequence::Detail() const {
  std::string text;
  const auto add = [&](std::string_view part) {
    if (!text.empty()) text += ", ";
    text += part;
  };
  for (size_t k = 0; k < work_.prologues.size(); ++k) add("prologue loops");
  for (const Work::Primitive& step : work_.primitives) {
    const_dnnl_primitive_desc_t desc = nullptr;
    const char* name = nullptr;
    const bool is_named =
        dnnl_primitive_get_primitive_desc(step.primitive.get(), &desc) == dnnl_success &&
        dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name) == dnnl_success;
    const bool is_reorder = step.primitive.get_kind() == dnnl::primitive::kind::reorder;
    add((is_reorder ? "reorder " : "") + std::string(is_named ? name : "unnamed"));
  }
  if (epilogue_) add("epilogue loops");
  return text;
}

// A caller's own memory may lie anywhere; oneDNN's C++ parts read floats.
bool Sequence::IsAligned(device::Addresses addresses) const {
  for (const Work::Primitive& step : work_.primitives) {
    for (const auto& [name, place] : step.arguments) {
      if (place.buffer == program::kNoBuffer) continue;
      if (!runtime::AlignedConstant::IsAligned(addresses[place.buffer])) return false;
    }
  }
  return true;
}

base::Result<std::unique_ptr<Sequence::Context>> Sequence::TakeContext() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Context> context = std::move(idle_.back());
      idle_.pop_back();
      return context;
    }
  }
  auto context = std::make_unique<Context>();
  ONNXIFI_RETURN_IF_ERROR(Call("preparing the arguments of a run", [&] {
    context->stream = runtime_.NewStream();
    for (const Work::Primitive& step : work_.primitives) {
      for (const auto& [name, place] : step.arguments) {
        context->memories.push_back(dnnl::memory(place.desc, runtime_.engine(), DNNL_MEMORY_NONE));
        context->arguments.push_back({name, context->memories.back().get()});
      }
    }
    return base::Ok();
  }));
  return context;
}

base::Status Sequence::RunPrimitives(Context& context, device::Addresses addresses,
                                     std::byte* work) const {
  size_t first = 0;
  for (const Work::Primitive& step : work_.primitives) {
    for (size_t k = 0; k < step.arguments.size(); ++k) {
      const StoredTensor& place = step.arguments[k].second;
      std::byte* base = place.packed != nullptr              ? place.packed->data()
                        : place.buffer == program::kNoBuffer ? work
                                                             : addresses[place.buffer];
      ONNXIFI_RETURN_IF_ERROR(
          StatusOf(dnnl_memory_set_data_handle(context.arguments[first + k].memory,
                                               base + place.offset_bytes),
                   "placing an argument"));
    }
    ONNXIFI_RETURN_IF_ERROR(
        StatusOf(dnnl_primitive_execute(step.primitive.get(), context.stream.get(),
                                        static_cast<int>(step.arguments.size()),
                                        context.arguments.data() + first),
                 "running a primitive"));
    first += step.arguments.size();
  }
  return StatusOf(dnnl_stream_wait(context.stream.get()), "waiting for its primitives");
}

StoredTensor SequenceBuilder::At(const Tensor& tensor, Desc desc) const {
  return {std::move(desc), tensor.view.buffer, tensor.packed,
          tensor.view.offset * tensor::BitWidth(tensor.view.type) / 8};
}

StoredTensor SequenceBuilder::NewPlace(const Desc& desc) {
  StoredTensor place{desc, program::kNoBuffer, nullptr, work_.size_bytes};
  const auto size_bytes = static_cast<int64_t>(desc.get_size());
  work_.size_bytes += (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  return place;
}

device::BoundView SequenceBuilder::WorkView(const Extents& extents) {
  const StoredTensor place = NewPlace(Dense({tensor::ElementCount(extents)}));
  return {program::kNoBuffer,
          tensor::ElementType::kFloat32,
          place.offset_bytes / static_cast<int64_t>(sizeof(float)),
          tensor::DenseStrides(extents),
          {},
          {}};
}

void SequenceBuilder::AddPrologue(BoundPrologue prologue, const device::BoundView& target) {
  work_.prologues.push_back(
      {std::move(prologue), target.offset * static_cast<int64_t>(sizeof(float))});
}

base::Result<StoredTensor> SequenceBuilder::As(const StoredTensor& given, const Desc& wanted) {
  std::byte* data = nullptr;  // of a constant
  if (IsConstant(given)) {
    data = (given.packed != nullptr ? given.packed->data() : constants_[given.buffer]) +
           given.offset_bytes;
  }
  if (given.desc == wanted && (data == nullptr || runtime::AlignedConstant::IsAligned(data)))
    return given;
  if (data != nullptr) {
    ONNXIFI_ASSIGN_OR_RETURN(PackedConstant packed,
                             packed_.Pack(runtime_, data, given.desc, wanted));
    return StoredTensor{wanted, program::kNoBuffer, std::move(packed), 0};
  }
  const StoredTensor place = NewPlace(wanted);
  ONNXIFI_RETURN_IF_ERROR(Reorder(given, place));
  return place;
}

base::Status SequenceBuilder::Reorder(const StoredTensor& from, const StoredTensor& to) {
  const dnnl::reorder::primitive_desc desc(runtime_.engine(), from.desc, runtime_.engine(), to.desc,
                                           Attributes(), /*allow_empty=*/true);
  if (!desc) {
    return base::Status(base::Code::kUnsupportedShape,
                        "oneDNN cannot reorder an operand from the layout of its view.");
  }
  Append(dnnl::reorder(desc), desc, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  return base::Ok();
}

StoredTensor SequenceBuilder::Target(const StoredTensor& result, const Desc& wanted) {
  return result.desc == wanted ? result : NewPlace(wanted);
}

base::Status SequenceBuilder::Deliver(const StoredTensor& target, const StoredTensor& result) {
  return target.desc == result.desc ? base::Ok() : Reorder(target, result);
}

void SequenceBuilder::Append(const dnnl::primitive& primitive,
                             const dnnl::primitive_desc_base& desc,
                             std::vector<Argument> arguments) {
  const Desc scratchpad = desc.query_md(dnnl::query::scratchpad_md);
  if (scratchpad.get_size() != 0) arguments.emplace_back(DNNL_ARG_SCRATCHPAD, NewPlace(scratchpad));
  work_.primitives.push_back({primitive, std::move(arguments)});
}

void SequenceBuilder::Clear() { work_ = Work(); }

}  // namespace onnxifi::onednn
