// SPDX-License-Identifier: Apache-2.0
//
// Sequence: puts this run's addresses into the arguments and calls the primitives.

#include "backends/cpu/onednn/sequence.h"

#include "backends/cpu/onednn/call.h"

namespace onnxifi::onednn {
namespace {

constexpr int64_t kAlignment = 64;

}  // namespace

dnnl::primitive_attr Attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

Sequence::Sequence(Runtime& runtime, std::vector<Step> steps, int64_t work_bytes,
                   std::optional<Apart> apart, std::unique_ptr<device::BoundKernel> fallback)
    : runtime_(runtime),
      steps_(std::move(steps)),
      work_bytes_(work_bytes),
      apart_(std::move(apart)),
      fallback_(std::move(fallback)) {}

base::Status Sequence::Run(device::Addresses addresses) const {
  if (!IsAligned(addresses)) return fallback_->Run(addresses);
  ONNXIFI_ASSIGN_OR_RETURN(const WorkMemory::Lease work, runtime_.work_memory().Lend(work_bytes_));
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Context> context, TakeContext());
  runtime_.EnterThread();
  ONNXIFI_RETURN_IF_ERROR(RunSteps(*context, addresses, work.data()));
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(context));
  }
  if (!apart_) return base::Ok();
  return apart_->epilogue.Run(work.data() + apart_->sums_offset_bytes, addresses);
}

// A caller's own memory may lie anywhere; oneDNN's C++ parts read floats.
bool Sequence::IsAligned(device::Addresses addresses) const {
  for (const Step& step : steps_) {
    for (const auto& [name, place] : step.arguments) {
      if (place.buffer == program::kNoBuffer) continue;
      if (reinterpret_cast<uintptr_t>(addresses[place.buffer]) % alignof(float) != 0) return false;
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
    for (const Step& step : steps_) {
      for (const auto& [name, place] : step.arguments) {
        context->memories.push_back(dnnl::memory(place.desc, runtime_.engine(), DNNL_MEMORY_NONE));
        context->arguments.push_back({name, context->memories.back().get()});
      }
    }
    return base::Ok();
  }));
  return context;
}

base::Status Sequence::RunSteps(Context& context, device::Addresses addresses,
                                std::byte* work) const {
  size_t first = 0;
  for (const Step& step : steps_) {
    for (size_t k = 0; k < step.arguments.size(); ++k) {
      const Place& place = step.arguments[k].second;
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

Place SequenceBuilder::At(const device::BoundView& view, Desc desc) const {
  return {std::move(desc), view.buffer, nullptr, view.offset * static_cast<int64_t>(sizeof(float))};
}

Place SequenceBuilder::Work(const Desc& desc) {
  Place place{desc, program::kNoBuffer, nullptr, work_bytes_};
  const auto size_bytes = static_cast<int64_t>(desc.get_size());
  work_bytes_ += (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  return place;
}

base::Result<Place> SequenceBuilder::As(const Place& given, const Desc& wanted) {
  if (given.desc == wanted) return given;
  if (IsConstant(given)) {
    ONNXIFI_ASSIGN_OR_RETURN(
        PackedConstant packed,
        packed_.Pack(runtime_, constants_[given.buffer] + given.offset_bytes, given.desc, wanted));
    return Place{wanted, program::kNoBuffer, std::move(packed), 0};
  }
  const Place place = Work(wanted);
  ONNXIFI_RETURN_IF_ERROR(Reorder(given, place));
  return place;
}

base::Status SequenceBuilder::Reorder(const Place& from, const Place& to) {
  const dnnl::reorder::primitive_desc desc(runtime_.engine(), from.desc, runtime_.engine(), to.desc,
                                           Attributes(), /*allow_empty=*/true);
  if (!desc) {
    return base::Status(base::Code::kUnsupportedShape,
                        "oneDNN cannot reorder an operand from the layout of its view.");
  }
  Append(dnnl::reorder(desc), desc, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  return base::Ok();
}

Place SequenceBuilder::Target(const Place& result, const Desc& wanted) {
  return result.desc == wanted ? result : Work(wanted);
}

base::Status SequenceBuilder::Deliver(const Place& target, const Place& result) {
  return target.desc == result.desc ? base::Ok() : Reorder(target, result);
}

void SequenceBuilder::Append(const dnnl::primitive& primitive,
                             const dnnl::primitive_desc_base& desc,
                             std::vector<Argument> arguments) {
  const Desc scratchpad = desc.query_md(dnnl::query::scratchpad_md);
  if (scratchpad.get_size() != 0) arguments.emplace_back(DNNL_ARG_SCRATCHPAD, Work(scratchpad));
  steps_.push_back({primitive, std::move(arguments)});
}

void SequenceBuilder::Clear() {
  steps_.clear();
  work_bytes_ = 0;
}

}  // namespace onnxifi::onednn
