// SPDX-License-Identifier: Apache-2.0
//
// KernelText: one generated kernel: its source, and what its arguments are in terms of the step it
// was made for. The source holds ranks, types and constants of expressions, never an extent, a
// stride or an offset: those are numbers that a binding gives.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_TEXT_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backends/core/codegen/loop_nest.h"
#include "backends/core/tensor/dim.h"

namespace onnxifi::codegen {

// A number that a kernel is given when its step is bound.
struct Number {
  enum class Kind : uint8_t {
    kDim,     // `dim`
    kExtent,  // of axis `axis` of the loops
    kReadOffset,
    kReadStride,  // of axis `axis` of read `operand`, and so on
    kReadGuardCoefficient,
    kReadGuardOffset,
    kReadGuardExtent,
    kWriteOffset,
    kWriteStride,
    kGiven,  // number `operand` of LoopNest::given
  };
  // A number that positions are divided by is given in two more forms: position / number is
  // (2 * position * multiplier >> 32) >> shift, for all positions below 2^31.
  enum class Form : uint8_t { kItself, kMultiplier, kShift };
  Kind kind = Kind::kDim;
  int operand = 0;
  int axis = 0;
  int guard = 0;
  tensor::Dim dim;
  Form form = Form::kItself;

  bool operator==(const Number&) const = default;
};

// A buffer that a kernel is given when it runs.
struct Argument {
  bool is_write = false;
  // Working memory of whoever launches the kernel instead of a buffer of the program; `operand`
  // counts it.
  bool is_scratch = false;
  int operand = 0;  // position among the step's reads or writes
  // The kernel counts the offset of the buffer in its memory in units of this many bytes. Offsets
  // of buffers are multiples of 64 bytes.
  int unit_bytes = 1;

  bool operator==(const Argument&) const = default;
};

// How a kernel is run: by as many items in a row as the product of the extents of the first
// `item_axes` axes of the loops; or by a whole group for each of them; or by as many items as
// number `given_items` of LoopNest::given says.
struct Launch {
  int item_axes = 0;
  int run_length = 1;  // an item has up to so many coordinates of the last of these axes
  int given_items = -1;
  bool has_group_per_item = false;
  int group_size = 64;         // work items
  bool uses_products = false;  // of the device's product library
};

// In the order of the kernel's parameters: for each argument the buffer and its offset, then the
// numbers (int64) as one array, then the count of items.
struct KernelText {
  std::string source;
  std::vector<Argument> arguments;
  std::vector<Number> numbers;
  Launch launch;
};

// The name of every generated kernel.
inline constexpr const char kEntryPoint[] = "run";

// Values for `numbers`, given the loops that the step was bound to.
std::vector<int64_t> ValuesOf(const std::vector<Number>& numbers, const LoopNest& loops);
// How many items (groups, for a launch by groups) `launch` says; 0 if there is nothing to do.
int64_t ItemCount(const Launch& launch, const LoopNest& loops);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_TEXT_H_
