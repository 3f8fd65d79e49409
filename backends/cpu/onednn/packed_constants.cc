// SPDX-License-Identifier: Apache-2.0
//
// PackedConstants: a reorder on the thread pool.

#include "backends/cpu/onednn/packed_constants.h"

#include "backends/cpu/onednn/call.h"
#include "backends/cpu/runtime/aligned_constant.h"

namespace onnxifi::onednn {

base::Result<PackedConstant> PackedConstants::Pack(Runtime& runtime, std::byte* data,
                                                   const Desc& from, const Desc& to) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const Entry& entry) { return entry.packed.expired(); });
  for (const Entry& entry : entries_) {
    if (entry.data != data || entry.from != from || entry.to != to) continue;
    if (PackedConstant packed = entry.packed.lock()) return packed;
  }
  ONNXIFI_ASSIGN_OR_RETURN(PackedConstant packed,
                           runtime.memory().Allocate(static_cast<int64_t>(to.get_size())));
  ONNXIFI_ASSIGN_OR_RETURN(const runtime::AlignedConstant aligned,
                           runtime::AlignedConstant::Create(runtime.memory(), data,
                                                            static_cast<int64_t>(from.get_size())));
  ONNXIFI_RETURN_IF_ERROR(Call("packing a constant", [&] {
    dnnl::stream stream = runtime.NewStream();
    dnnl::memory source(from, runtime.engine(), aligned.data());
    dnnl::memory target(to, runtime.engine(), packed->data());
    dnnl::reorder(source, target).execute(stream, source, target);
    stream.wait();
    return base::Ok();
  }));
  entries_.push_back({data, from, to, packed});
  return packed;
}

}  // namespace onnxifi::onednn
