// SPDX-License-Identifier: Apache-2.0
//
// Column: blocks of lanes from and to memory. Addresses are computed modulo 2^64: a coordinate
// taken from data may be any number, and is only an address once the guards let it pass.

#include "backends/core/reference/column.h"

#include <algorithm>
#include <cstring>

#include "backends/core/tensor/packed.h"

namespace onnxifi::reference {
namespace {

using device::BoundGuard;
using device::BoundView;
using tensor::ElementType;

struct Wide {
  uint64_t low;
  uint64_t high;
};

int64_t WrapMulAdd(int64_t sum, int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(sum) +
                              static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

template <typename T>
void GatherStrided(const std::byte* source, int64_t stride, int64_t count, std::byte* column) {
  if (stride == 1) {
    std::memcpy(column, source, static_cast<size_t>(count) * sizeof(T));
    return;
  }
  T* lanes = reinterpret_cast<T*>(column);
  const int64_t stride_bytes = stride * static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < count; ++i) std::memcpy(&lanes[i], source + i * stride_bytes, sizeof(T));
}

template <typename T>
void ScatterStrided(std::byte* target, int64_t stride, int64_t count, const std::byte* column) {
  if (stride == 1) {
    std::memcpy(target, column, static_cast<size_t>(count) * sizeof(T));
    return;
  }
  const T* lanes = reinterpret_cast<const T*>(column);
  const int64_t stride_bytes = stride * static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < count; ++i) std::memcpy(target + i * stride_bytes, &lanes[i], sizeof(T));
}

// Elements element, element + stride, ... of a buffer into a column.
void Gather(ElementType type, const std::byte* base, int64_t element, int64_t stride, int64_t count,
            std::byte* column) {
  auto* bytes = reinterpret_cast<uint8_t*>(column);
  switch (tensor::BitWidth(type)) {
    case 2:
      for (int64_t i = 0; i < count; ++i)
        bytes[i] = tensor::LoadPacked<2>(base, element + i * stride);
      break;
    case 4:
      for (int64_t i = 0; i < count; ++i)
        bytes[i] = tensor::LoadPacked<4>(base, element + i * stride);
      break;
    case 6:
      for (int64_t i = 0; i < count; ++i)
        bytes[i] = tensor::LoadPacked<6>(base, element + i * stride);
      break;
    case 8:
      GatherStrided<uint8_t>(base + element, stride, count, column);
      break;
    case 16:
      GatherStrided<uint16_t>(base + element * 2, stride, count, column);
      break;
    case 32:
      GatherStrided<uint32_t>(base + element * 4, stride, count, column);
      break;
    case 64:
      GatherStrided<uint64_t>(base + element * 8, stride, count, column);
      break;
    case 128:
      GatherStrided<Wide>(base + element * 16, stride, count, column);
      break;
    default:
      break;
  }
  if (type == ElementType::kBool) {
    // Any byte but 0 is true; arithmetic on bool relies on 0 and 1.
    for (int64_t i = 0; i < count; ++i) bytes[i] = bytes[i] != 0 ? 1 : 0;
  }
}

void Scatter(ElementType type, std::byte* base, int64_t element, int64_t stride, int64_t count,
             const std::byte* column) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(column);
  switch (tensor::BitWidth(type)) {
    case 2:
      for (int64_t i = 0; i < count; ++i)
        tensor::StorePacked<2>(base, element + i * stride, bytes[i]);
      break;
    case 4:
      for (int64_t i = 0; i < count; ++i)
        tensor::StorePacked<4>(base, element + i * stride, bytes[i]);
      break;
    case 6:
      for (int64_t i = 0; i < count; ++i)
        tensor::StorePacked<6>(base, element + i * stride, bytes[i]);
      break;
    case 8:
      ScatterStrided<uint8_t>(base + element, stride, count, column);
      break;
    case 16:
      ScatterStrided<uint16_t>(base + element * 2, stride, count, column);
      break;
    case 32:
      ScatterStrided<uint32_t>(base + element * 4, stride, count, column);
      break;
    case 64:
      ScatterStrided<uint64_t>(base + element * 8, stride, count, column);
      break;
    case 128:
      ScatterStrided<Wide>(base + element * 16, stride, count, column);
      break;
    default:
      break;
  }
}

void Fill(const BoundView& view, int64_t count, std::byte* column) {
  if (count <= 0) return;
  const int64_t lane_bytes = LaneBytes(view.type);
  std::byte lane[16] = {};
  if (tensor::IsComplex(view.type)) {
    // A complex fill is its real part.
    if (view.type == ElementType::kComplex64) {
      const auto real = static_cast<float>(view.fill.f);
      std::memcpy(lane, &real, sizeof(real));
    } else {
      std::memcpy(lane, &view.fill.f, sizeof(double));
    }
  } else {
    tensor::StoreScalar(view.type, lane, 0, view.fill);
  }
  for (int64_t i = 0; i < count; ++i) std::memcpy(column + i * lane_bytes, lane, lane_bytes);
}

int64_t FloorDiv(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

// Narrows the lanes [low, high) of a run to those where the guard holds. The guard's value is
// `start` at lane 0 and grows by `step` from lane to lane.
void Narrow(const BoundGuard& guard, int64_t start, int64_t step, int64_t& low, int64_t& high) {
  if (step == 0) {
    if (start < 0 || start >= guard.extent) high = low;
    return;
  }
  // Numbers this large only come from saturated expressions; short of the ends they can be added
  // and negated.
  constexpr int64_t kFar = int64_t{1} << 61;
  start = std::clamp(start, -kFar, kFar);
  step = std::clamp(step, -kFar, kFar);
  const int64_t extent = std::clamp(guard.extent, -kFar, kFar);
  int64_t first;
  int64_t end;
  if (step > 0) {
    first = -FloorDiv(start, step);                // smallest lane with start + lane * step >= 0
    end = FloorDiv(extent - 1 - start, step) + 1;  // first lane beyond the extent
  } else {
    first = FloorDiv(start - extent, -step) + 1;
    end = FloorDiv(start, -step) + 1;
  }
  low = std::max(low, first);
  high = std::max(low, std::min(high, end));
}

// How many of the last swept axes the view steps through evenly, so that they can be taken as one.
int MergedAxes(const BoundView& view, const Sweep& sweep) {
  const int rank = static_cast<int>(view.strides.size());
  const int last = sweep.last_axis() - 1;
  if (last < sweep.first_axis()) return 0;
  int axis = last;
  if (!view.guards.empty() || last >= rank) return 1;
  while (axis > sweep.first_axis() &&
         view.strides[axis - 1] == WrapMulAdd(0, view.strides[axis], sweep.extents()[axis])) {
    --axis;
  }
  return last - axis + 1;
}

}  // namespace

int64_t LaneBytes(ElementType type) { return std::max(1, tensor::BitWidth(type) / 8); }

void Sweep::Move(int64_t position, int64_t lanes) {
  lanes_ = lanes;
  Fix(first_axis_, last_axis_, position);
}

void Sweep::Fix(int first_axis, int last_axis, int64_t position) {
  for (int axis = last_axis; axis-- > first_axis;) {
    // An empty axis is only ever fixed at coordinate 0, where nothing is read.
    const int64_t extent = std::max<int64_t>(1, extents_[axis]);
    coordinates_[axis] = position % extent;
    position /= extent;
  }
}

void LoadColumn(const BoundView& view, const std::byte* base, const Sweep& sweep,
                std::byte* column) {
  const int last = sweep.last_axis() - 1;
  // A scalar loaded at no coordinates has no axes, whatever the domain has.
  const size_t rank = std::min(view.strides.size(), static_cast<size_t>(sweep.rank()));
  const bool is_swept = last >= sweep.first_axis() && last < static_cast<int>(rank);
  const int64_t stride = is_swept ? view.strides[last] : 0;
  const int64_t lane_bytes = LaneBytes(view.type);
  const int merged = MergedAxes(view, sweep);
  ForEachRun(sweep, merged, [&](std::span<const int64_t> coordinates, int64_t lane, int64_t count) {
    int64_t low = 0;
    int64_t high = count;
    for (const BoundGuard& guard : view.guards) {
      int64_t start = guard.offset;
      for (size_t axis = 0; axis < rank; ++axis) {
        start = WrapMulAdd(start, guard.coefficients[axis], coordinates[axis]);
      }
      Narrow(guard, start, is_swept ? guard.coefficients[last] : 0, low, high);
    }
    std::byte* lanes = column + lane * lane_bytes;
    if (low > 0) Fill(view, std::min(low, count), lanes);
    if (low < high) {
      int64_t element = view.offset;
      for (size_t axis = 0; axis < rank; ++axis) {
        element = WrapMulAdd(element, view.strides[axis], coordinates[axis]);
      }
      Gather(view.type, base, WrapMulAdd(element, stride, low), stride, high - low,
             lanes + low * lane_bytes);
    }
    high = std::max(high, std::min(low, count));
    if (high < count) Fill(view, count - high, lanes + high * lane_bytes);
  });
}

void LoadColumnAt(const BoundView& view, const std::byte* base,
                  std::span<const std::byte* const> coordinates, int64_t lanes, std::byte* column) {
  const int64_t lane_bytes = LaneBytes(view.type);
  auto coordinate = [&](size_t axis, int64_t lane) {
    return reinterpret_cast<const int64_t*>(coordinates[axis])[lane];
  };
  for (int64_t lane = 0; lane < lanes; ++lane) {
    bool is_inside = true;
    for (const BoundGuard& guard : view.guards) {
      int64_t value = guard.offset;
      for (size_t axis = 0; axis < coordinates.size(); ++axis) {
        value = WrapMulAdd(value, guard.coefficients[axis], coordinate(axis, lane));
      }
      is_inside &= value >= 0 && value < guard.extent;
    }
    std::byte* target = column + lane * lane_bytes;
    if (!is_inside) {
      Fill(view, 1, target);
      continue;
    }
    int64_t element = view.offset;
    for (size_t axis = 0; axis < coordinates.size(); ++axis) {
      element = WrapMulAdd(element, view.strides[axis], coordinate(axis, lane));
    }
    Gather(view.type, base, element, 1, 1, target);
  }
}

void StoreColumn(const BoundView& view, std::byte* base, const Sweep& sweep,
                 const std::byte* column) {
  const int last = sweep.last_axis() - 1;
  const int64_t stride = last >= sweep.first_axis() ? view.strides[last] : 0;
  const int64_t lane_bytes = LaneBytes(view.type);
  const int merged = MergedAxes(view, sweep);
  ForEachRun(sweep, merged, [&](std::span<const int64_t> coordinates, int64_t lane, int64_t count) {
    int64_t element = view.offset;
    for (size_t axis = 0; axis < view.strides.size(); ++axis) {
      element = WrapMulAdd(element, view.strides[axis], coordinates[axis]);
    }
    Scatter(view.type, base, element, stride, count, column + lane * lane_bytes);
  });
}

}  // namespace onnxifi::reference
