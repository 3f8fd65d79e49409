// SPDX-License-Identifier: Apache-2.0
//
// Layout: strides of axes of extent 1 never matter and are written as in a dense tensor, so that
// oneDNN knows the layout again.

#include "backends/cpu/onednn/layout.h"

#include <cassert>

namespace onnxifi::onednn {

DataType DataTypeOf(tensor::ElementType type) {
  assert(type == tensor::ElementType::kFloat32 || type == tensor::ElementType::kBfloat16);
  return type == tensor::ElementType::kBfloat16 ? DataType::bf16 : DataType::f32;
}

// The names of instruction sets are sets of bits, each with those of what it extends.
bool HasBfloat16Products() {
  constexpr auto kNeeded = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  return isa != dnnl::cpu_isa::isa_default && (static_cast<unsigned>(isa) & kNeeded) == kNeeded;
}

std::optional<Desc> Strided(const Extents& extents, const Extents& strides, DataType type) {
  if (extents.empty() || extents.size() > DNNL_MAX_NDIMS) return std::nullopt;
  Extents plain(strides);
  int64_t inner = 1;  // the stride that a dense tensor would have here
  for (size_t axis = extents.size(); axis-- > 0;) {
    if (extents[axis] < 1) return std::nullopt;
    if (extents[axis] == 1) {
      plain[axis] = inner;
    } else if (strides[axis] < 1) {
      return std::nullopt;
    } else {
      inner = strides[axis] * extents[axis];
    }
  }
  Desc desc(extents, type, plain, /*allow_empty=*/true);
  if (!desc) return std::nullopt;
  return desc;
}

Desc Dense(const Extents& extents, DataType type) {
  return {extents, type, tensor::DenseStrides(extents)};
}

Desc ChannelsLast(const Extents& extents, DataType type) {
  Extents strides(extents.size());
  strides[1] = 1;
  int64_t stride = extents[1];
  for (size_t axis = extents.size(); axis-- > 2;) {
    strides[axis] = stride;
    stride *= extents[axis];
  }
  strides[0] = stride;
  return {extents, type, strides};
}

bool IsChannelsLast(const Extents& extents, const Extents& strides) {
  if (extents[1] > 1 && strides[1] != 1) return false;
  int64_t inner = extents[1];
  for (size_t axis = extents.size(); axis-- > 2;) {
    if (extents[axis] == 1) continue;
    if (strides[axis] < inner) return false;
    inner = strides[axis] * extents[axis];
  }
  return extents[0] == 1 || strides[0] >= inner;
}

Desc Any(const Extents& extents, DataType type) {
  return {extents, type, dnnl::memory::format_tag::any};
}

}  // namespace onnxifi::onednn
