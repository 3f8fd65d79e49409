// SPDX-License-Identifier: Apache-2.0
//
// Combination: how updates enter elements of one type, as rows that lie contiguous and as elements
// at any place.

#ifndef ONNXIFI_BACKENDS_CPU_SCATTER_COMBINE_H_
#define ONNXIFI_BACKENDS_CPU_SCATTER_COMBINE_H_

#include <cstddef>
#include <cstdint>

#include "backends/core/program/step.h"
#include "backends/cpu/engine/loop.h"

namespace onnxifi::scatter {

// Whether elements of the type have lanes of whole bytes. Those of more than 8 bytes have none.
bool HasCombination(program::Index::Combine combine, tensor::ElementType type);

// Immutable. Results are the reference's. Updates of type bool are 0 or 1.
class Combination {
 public:
  // Of what HasCombination takes.
  Combination(program::Index::Combine combine, tensor::ElementType type);

  // target[k] = combine(target[k], updates[k]) for k in [0, count). Neither overlaps the other. Of
  // bools that replace others, updates may be any byte.
  void Row(std::byte* target, const std::byte* updates, int64_t count) const;

  // The same for target[offsets[k]], in ascending order of k; negative offsets are left out.
  void Elements(std::byte* target, const int64_t* offsets, const std::byte* updates,
                int64_t count) const {
    elements_(*this, target, offsets, updates, count);
  }

 private:
  using ElementsLoop = void (*)(const Combination& combination, std::byte* target,
                                const int64_t* offsets, const std::byte* updates, int64_t count);

  template <typename T, typename Operation>
  static void RunElements(const Combination& combination, std::byte* target, const int64_t* offsets,
                          const std::byte* updates, int64_t count);
  template <typename T>
  static ElementsLoop FindElements(program::Index::Combine combine);
  static void RunScalars(const Combination& combination, std::byte* target, const int64_t* offsets,
                         const std::byte* updates, int64_t count);
  void CombineOne(std::byte* target, int64_t element, const std::byte* updates,
                  int64_t update) const;

  const program::Index::Combine combine_;
  const tensor::ElementType type_;
  const int64_t lane_bytes_;
  engine::Loop loop_ = nullptr;   // of a row; null where there is none
  engine::Loop widen_ = nullptr;  // of 16-bit floats, around a loop of float32
  engine::Loop narrow_ = nullptr;
  ElementsLoop elements_ = nullptr;
};

}  // namespace onnxifi::scatter

#endif  // ONNXIFI_BACKENDS_CPU_SCATTER_COMBINE_H_
