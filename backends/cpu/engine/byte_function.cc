// SPDX-License-Identifier: Apache-2.0
//
// ByteFunction: where the processor selects bytes out of 128 by one instruction (VBMI), two of them
// are the table of bytes; elsewhere, and of floats, elements are looked up one by one.

#include "backends/cpu/engine/byte_function.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/cpu/processor/processor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/byte_function.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

bool SelectsBytes() { return __builtin_cpu_supports("avx512vbmi") != 0; }

// Of the 128 bytes of two vectors those at the low 7 bits of each byte of `at`.
HWY_INLINE __m512i Select(__m512i low, __m512i high, __m512i at) {
  __asm__("vpermi2b %2, %1, %0" : "+v"(at) : "v"(low), "v"(high));
  return at;
}

bool LookUpVectors(const uint8_t* table, int64_t rows, int64_t columns, const uint8_t* from,
                   int64_t from_stride, uint8_t* to, int64_t to_stride) {
  if (!SelectsBytes()) return false;
  __m512i quarters[4];
  for (int k = 0; k < 4; ++k) quarters[k] = _mm512_loadu_si512(table + 64 * k);
  for (int64_t row = 0; row < rows; ++row, from += from_stride, to += to_stride) {
    for (int64_t done = 0; done < columns; done += 64) {
      const __mmask64 mask = ~uint64_t{0} >> (64 - std::min<int64_t>(64, columns - done));
      const __m512i at = _mm512_maskz_loadu_epi8(mask, from + done);
      const __m512i lower = Select(quarters[0], quarters[1], at);
      const __m512i upper = Select(quarters[2], quarters[3], at);
      _mm512_mask_storeu_epi8(to + done, mask,
                              _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), lower, upper));
    }
  }
  return true;
}

#else

bool SelectsBytes() { return false; }
bool LookUpVectors(const uint8_t* /*table*/, int64_t /*rows*/, int64_t /*columns*/,
                   const uint8_t* /*from*/, int64_t /*from_stride*/, uint8_t* /*to*/,
                   int64_t /*to_stride*/) {
  return false;
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {
namespace {

HWY_EXPORT(LookUpVectors);
HWY_EXPORT(SelectsBytes);

using program::ExprOp;
using tensor::ElementType;

constexpr int64_t kBytes = 256;
// Bytes of a part of the work.
constexpr int64_t kPart = 4096;
// Elements that are worth a table.
constexpr int64_t kMinElements = 4 * kBytes;
// Picoseconds to look one element up, and a byte where vectors do it.
constexpr int64_t kLookUp = 400;
constexpr int64_t kLookUpInVectors = 40;
// What floats have to cost to be worth a table: costs of expressions count operations one by one,
// of which several are done at once.
constexpr int64_t kMinCost = 1000;

bool IsByte(ElementType type) { return type == ElementType::kInt8 || type == ElementType::kUint8; }

// Whether a view over the domain is of one element.
bool IsNumber(const device::BoundView& view, const tensor::Extents& domain) {
  for (size_t axis = 0; axis < domain.size(); ++axis) {
    if (domain[axis] != 1 && view.strides[axis] != 0) return false;
  }
  return view.guards.empty();
}

// The read whose bytes are all that a Map of bytes depends on, beside constant numbers; -1 for any
// other step.
int FindArgument(const device::BoundStep& step, device::Addresses constants) {
  const auto* map = step.step->As<program::Map>();
  if (map == nullptr || map->roots.size() != 1) return -1;
  const ElementType result = step.writes[0].type;
  if (!IsByte(result) && result != ElementType::kFloat32) return -1;
  const program::ExprPool& pool = step.program->exprs;
  int argument = -1;
  for (const program::ExprId id : program::Reachable(pool, map->roots)) {
    const program::ExprNode& node = pool[id];
    if (node.op == ExprOp::kIndex || node.op == ExprOp::kDim || node.op == ExprOp::kRandom) {
      return -1;
    }
    if (node.op != ExprOp::kLoad) continue;
    if (!node.operands.empty()) return -1;
    const auto read = static_cast<int>(node.payload);
    const device::BoundView& view = step.reads[node.payload];
    if (IsNumber(view, step.domain)) {
      if (constants[static_cast<size_t>(view.buffer)] == nullptr) return -1;
    } else if (!IsByte(view.type) || !view.guards.empty() || (argument >= 0 && argument != read)) {
      return -1;
    } else {
      argument = read;
    }
  }
  return argument;
}

// Whether both views are of the same elements of dense memory, in the same order.
bool AreFlat(const device::BoundView& from, const device::BoundView& to,
             const tensor::Extents& domain) {
  std::vector<std::pair<int64_t, int64_t>> axes;  // stride, extent
  for (size_t axis = 0; axis < domain.size(); ++axis) {
    if (domain[axis] == 1) continue;
    if (from.strides[axis] != to.strides[axis]) return false;
    axes.emplace_back(from.strides[axis], domain[axis]);
  }
  std::ranges::sort(axes);
  int64_t next = 1;
  for (const auto& [stride, extent] : axes) {
    if (stride != next) return false;
    next *= extent;
  }
  return true;
}

template <typename Result>
using Table = std::array<Result, kBytes>;

// Of bytes or floats.
template <typename Result>
class BoundByteFunction final : public device::BoundKernel {
 public:
  BoundByteFunction(const Table<Result>& table, const device::BoundStep& step, int argument,
                    Runtime& runtime)
      : table_(table),
        count_(tensor::ElementCount(step.domain)),
        argument_(argument),
        from_(step.reads[static_cast<size_t>(argument)]),
        to_(step.writes[0]),
        runtime_(runtime) {}

  bool ReadsAtRun(int read) const override { return read == argument_; }
  std::string Detail() const override {
    return "table of " + std::string(kIsOfBytes ? "bytes, " : "floats, ") +
           processor::VectorName() + (HasVectors() ? " with VBMI" : "");
  }

  base::Status Run(device::Addresses addresses) const override {
    const auto* const from =
        reinterpret_cast<const uint8_t*>(addresses[static_cast<size_t>(from_.buffer)]) +
        from_.offset;
    // At any address.
    std::byte* const to = addresses[static_cast<size_t>(to_.buffer)] + to_.offset * kResultBytes;
    // Picoseconds.
    const int64_t cost = kPart * (HasVectors() ? kLookUpInVectors : kLookUp);
    return runtime_.For((count_ + kPart - 1) / kPart, cost,
                        [&](int64_t begin, int64_t end, std::byte* /*scratch*/) {
                          const int64_t first = begin * kPart;
                          LookUp(from + first, std::min(count_, end * kPart) - first,
                                 to + first * kResultBytes);
                        });
  }

 private:
  static constexpr bool kIsOfBytes = std::is_same_v<Result, uint8_t>;
  static constexpr auto kResultBytes = static_cast<int64_t>(sizeof(Result));

  static bool HasVectors() { return kIsOfBytes && HWY_DYNAMIC_DISPATCH(SelectsBytes)(); }

  void LookUp(const uint8_t* from, int64_t count, std::byte* to) const {
    if constexpr (kIsOfBytes) {
      LookUpBytes(table_.data(), /*rows=*/1, count, from, 0, reinterpret_cast<uint8_t*>(to), 0);
    } else {
      for (int64_t k = 0; k < count; ++k) {
        std::memcpy(to + k * kResultBytes, &table_[from[k]], sizeof(Result));
      }
    }
  }

  const Table<Result> table_;
  const int64_t count_;
  const int argument_;
  const device::BoundView from_, to_;
  Runtime& runtime_;
};

// What the Map of `step` gives for all bytes.
template <typename Result>
base::Result<std::unique_ptr<device::BoundKernel>> BindTable(const device::BoundStep& step,
                                                             device::Addresses constants,
                                                             int argument, const RunMap& run,
                                                             Runtime& runtime) {
  device::BoundStep all = step;
  all.domain = {kBytes};
  std::vector<std::byte*> addresses(constants.begin(), constants.end());
  for (device::BoundView& read : all.reads) read.strides = {0};
  device::BoundView& bytes = all.reads[static_cast<size_t>(argument)];
  device::BoundView& results = all.writes[0];
  // Arguments and results may be parts of one buffer: what they are here lies side by side, too.
  struct Memory {
    Table<Result> table;
    Table<uint8_t> arguments;
  };
  Memory memory{};
  for (int64_t k = 0; k < kBytes; ++k) {
    memory.arguments[static_cast<size_t>(k)] = static_cast<uint8_t>(k);
  }
  for (device::BoundView* view : {&bytes, &results}) {
    view->offset = 0;
    view->strides = {1};
    view->buffer_bytes = sizeof(memory);
  }
  auto* const table = reinterpret_cast<std::byte*>(&memory);
  const auto table_bytes = static_cast<int64_t>(sizeof(memory.table));
  if (bytes.buffer == results.buffer) {
    bytes.offset = table_bytes;
  } else {
    addresses[static_cast<size_t>(bytes.buffer)] = table + table_bytes;
    bytes.buffer_bytes = kBytes;
  }
  addresses[static_cast<size_t>(results.buffer)] = table;
  ONNXIFI_RETURN_IF_ERROR(run(all, addresses));
  return std::unique_ptr<device::BoundKernel>(
      std::make_unique<BoundByteFunction<Result>>(memory.table, step, argument, runtime));
}

}  // namespace

base::Result<std::unique_ptr<device::BoundKernel>> BindByteFunction(const device::BoundStep& step,
                                                                    device::Addresses constants,
                                                                    int64_t cost, const RunMap& run,
                                                                    Runtime& runtime) {
  std::unique_ptr<device::BoundKernel> none;
  if (tensor::ElementCount(step.domain) < kMinElements) return none;
  if (step.writes[0].type == ElementType::kFloat32 && cost < kMinCost) return none;
  const int argument = FindArgument(step, constants);
  if (argument < 0) return none;
  if (!AreFlat(step.reads[static_cast<size_t>(argument)], step.writes[0], step.domain)) return none;
  return step.writes[0].type == ElementType::kFloat32
             ? BindTable<float>(step, constants, argument, run, runtime)
             : BindTable<uint8_t>(step, constants, argument, run, runtime);
}

void LookUpBytes(const uint8_t* table, int64_t rows, int64_t columns, const uint8_t* from,
                 int64_t from_stride, uint8_t* to, int64_t to_stride) {
  if (HWY_DYNAMIC_DISPATCH(LookUpVectors)(table, rows, columns, from, from_stride, to, to_stride)) {
    return;
  }
  for (int64_t row = 0; row < rows; ++row, from += from_stride, to += to_stride) {
    for (int64_t column = 0; column < columns; ++column) to[column] = table[from[column]];
  }
}

}  // namespace onnxifi::engine
#endif
