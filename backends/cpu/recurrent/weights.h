// SPDX-License-Identifier: Apache-2.0
//
// Weights: the recurrent weights in the order in which cells read them, and the small operands of a
// recurrence from wherever their views find them.

#ifndef ONNXIFI_BACKENDS_CPU_RECURRENT_WEIGHTS_H_
#define ONNXIFI_BACKENDS_CPU_RECURRENT_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "backends/core/device/device.h"
#include "backends/cpu/threads/thread_pool.h"

namespace onnxifi::recurrent {

// Elements of type T at the coordinates of a view, its guards kept, whatever the address.
template <typename T>
class Elements {
 public:
  // `view` outlives it.
  Elements(const device::BoundView& view, const std::byte* base) : view_(view), base_(base) {}

  T At(std::initializer_list<int64_t> coordinates) const {
    for (const device::BoundGuard& guard : view_.guards) {
      const int64_t place = guard.offset + Sum(coordinates, guard.coefficients);
      if (place < 0 || place >= guard.extent) return Fill();
    }
    const int64_t position = view_.offset + Sum(coordinates, view_.strides);
    T element;
    std::memcpy(&element, base_ + position * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return element;
  }

 private:
  static int64_t Sum(std::initializer_list<int64_t> coordinates,
                     const std::vector<int64_t>& factors) {
    int64_t sum = 0;
    size_t axis = 0;
    for (const int64_t coordinate : coordinates) sum += coordinate * factors[axis++];
    return sum;
  }
  T Fill() const {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(view_.fill.i);
    return static_cast<T>(view_.fill.f);
  }

  const device::BoundView& view_;
  const std::byte* const base_;
};

// Floats of the packed weights of one direction.
int64_t PackedWeightFloats(const program::Recurrent& recurrent, int64_t hidden);

// Packs the weights of all directions, [directions, gates * hidden, hidden] at `base`, as
// Direction::weights has them, one direction behind the other.
void PackWeights(const program::Recurrent& recurrent, int64_t directions, int64_t hidden,
                 const device::BoundView& view, const std::byte* base, threads::ThreadPool& pool,
                 float* packed);

}  // namespace onnxifi::recurrent

#endif  // ONNXIFI_BACKENDS_CPU_RECURRENT_WEIGHTS_H_
