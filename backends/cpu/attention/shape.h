// SPDX-License-Identifier: Apache-2.0
//
// AttentionCode, AttentionShape: a step before and after its extents are known: what its kernels
// share, and the sizes of the blocks that they take at a time. Blocks of keys depend on extents
// alone, so that results do not depend on threads.

#ifndef ONNXIFI_BACKENDS_CPU_ATTENTION_SHAPE_H_
#define ONNXIFI_BACKENDS_CPU_ATTENTION_SHAPE_H_

#include <cstdint>
#include <memory>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/attention/bound_score.h"
#include "backends/cpu/attention/heads.h"
#include "backends/cpu/attention/operand.h"
#include "backends/cpu/attention/results.h"
#include "backends/cpu/attention/score.h"
#include "backends/cpu/runtime/recipe.h"

namespace onnxifi::engine {
class Runtime;
}

namespace onnxifi::attention {

inline constexpr int64_t kLine = 64;
inline constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
// Bytes of so many floats, up to a cache line.
inline int64_t LineBytes(int64_t floats) { return (floats * kFloat + kLine - 1) / kLine * kLine; }
inline int64_t DivideUp(int64_t count, int64_t size) { return (count + size - 1) / size; }

struct AttentionCode {
  OperandCode query, key, value;
  ScoreCode score;
  EpilogueCode epilogue;

  // UNSUPPORTED_DATATYPE or UNSUPPORTED_SHAPE with what no kernel here does.
  static base::Status Check(const device::Facts& facts);
  // Of a step that Check took.
  static AttentionCode Compile(const device::Facts& facts, engine::LoopSet loops);
};

// Keys of a block, where rows of queries take blocks in turn.
int64_t KeysOfBlock(int64_t keys, int64_t width, int64_t values);

// A step with numbers. The domain is not empty.
struct AttentionShape {
  // `code` outlives what is made of it. `few_rows` and `block_keys` are those of the kernel.
  AttentionShape(const AttentionCode& code, const device::BoundStep& step);

  int64_t width, keys, values;
  Heads heads;
  tensor::Extents query_extents, key_extents, value_extents;
};

// The kernels; their runs fail with NO_SYSTEM_MEMORY. Heads of few rows read keys and values where
// they lie, once; those of more rows pack blocks of them for all rows of a chunk.
std::unique_ptr<device::BoundKernel> BindFewRows(std::shared_ptr<const AttentionCode> code,
                                                 const device::BoundStep& step,
                                                 AttentionShape shape, runtime::Runtime& runtime,
                                                 engine::Runtime& engine);
std::unique_ptr<device::BoundKernel> BindBlocks(std::shared_ptr<const AttentionCode> code,
                                                const device::BoundStep& step, AttentionShape shape,
                                                int64_t threads, engine::Runtime& engine);

}  // namespace onnxifi::attention

#endif  // ONNXIFI_BACKENDS_CPU_ATTENTION_SHAPE_H_
