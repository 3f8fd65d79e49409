// SPDX-License-Identifier: Apache-2.0
//
// Weights: packed block by block.

#include "backends/cpu/recurrent/weights.h"

#include <cstring>

#include "backends/cpu/recurrent/cell.h"

namespace onnxifi::recurrent {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

int64_t BlockCount(int64_t hidden) { return (hidden + BlockUnits() - 1) / BlockUnits(); }

// `weight_at(direction, row, k)`: an element of the weights.
template <typename WeightAt>
void Pack(const program::Recurrent& recurrent, int64_t directions, int64_t hidden,
          threads::ThreadPool& pool, float* packed, const WeightAt& weight_at) {
  const int64_t units = BlockUnits();
  const int64_t blocks = BlockCount(hidden);
  float* product_begin = packed;
  for (int64_t direction = 0; direction < directions; ++direction) {
    for (const ProductGates& gates : ProductsOf(recurrent)) {
      const int64_t block_floats = hidden * gates.count * units;
      pool.For(blocks, /*grain=*/1, [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
          float* to = product_begin + block * block_floats;
          for (int64_t k = 0; k < hidden; ++k) {
            for (int gate = gates.first; gate < gates.first + gates.count; ++gate) {
              for (int64_t unit = block * units; unit < (block + 1) * units; ++unit) {
                *to++ = unit < hidden ? weight_at(direction, gate * hidden + unit, k) : 0.0F;
              }
            }
          }
        }
      });
      product_begin += blocks * block_floats;
    }
  }
}

}  // namespace

int64_t PackedWeightFloats(const program::Recurrent& recurrent, int64_t hidden) {
  return BlockCount(hidden) * BlockUnits() * hidden * recurrent.gates();
}

void PackWeights(const program::Recurrent& recurrent, int64_t directions, int64_t hidden,
                 const device::BoundView& view, const std::byte* base, threads::ThreadPool& pool,
                 float* packed) {
  if (!view.guards.empty()) {
    const Elements<float> weights(view, base);
    Pack(recurrent, directions, hidden, pool, packed,
         [&](int64_t direction, int64_t row, int64_t k) {
           return weights.At({direction, row, k});
         });
    return;
  }
  const std::byte* const first = base + view.offset * kFloatBytes;
  const int64_t steps[] = {view.strides[0] * kFloatBytes, view.strides[1] * kFloatBytes,
                           view.strides[2] * kFloatBytes};
  Pack(recurrent, directions, hidden, pool, packed, [&](int64_t direction, int64_t row, int64_t k) {
    float weight;
    std::memcpy(&weight, first + direction * steps[0] + row * steps[1] + k * steps[2],
                sizeof(weight));
    return weight;
  });
}

}  // namespace onnxifi::recurrent
