// SPDX-License-Identifier: Apache-2.0
//
// Layout: views of the tensor program as oneDNN's memory descriptors.

#ifndef ONNXIFI_BACKENDS_CPU_ONEDNN_LAYOUT_H_
#define ONNXIFI_BACKENDS_CPU_ONEDNN_LAYOUT_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "backends/core/tensor/tensor.h"

namespace onnxifi::onednn {

using Desc = dnnl::memory::desc;
using DataType = dnnl::memory::data_type;
using tensor::Extents;

// float32 or bfloat16.
DataType DataTypeOf(tensor::ElementType type);
// Whether oneDNN multiplies bfloat16 by the processor's own instructions here.
bool HasBfloat16Products();

// Strides in elements. Nothing for what oneDNN cannot say: negative strides, an extent of 0, more
// than 12 axes, elements that share an address.
std::optional<Desc> Strided(const Extents& extents, const Extents& strides,
                            DataType type = DataType::f32);
Desc Dense(const Extents& extents, DataType type = DataType::f32);
// The channels of [N, C, spatial] innermost.
Desc ChannelsLast(const Extents& extents, DataType type = DataType::f32);
// Whether [N, C, spatial] with these strides has its channels innermost; gaps between pixels, as in
// a part of a concatenation, are fine.
bool IsChannelsLast(const Extents& extents, const Extents& strides);
// The layout is for the primitive to choose.
Desc Any(const Extents& extents, DataType type = DataType::f32);

}  // namespace onnxifi::onednn

#endif  // ONNXIFI_BACKENDS_CPU_ONEDNN_LAYOUT_H_
