// SPDX-License-Identifier: Apache-2.0
//
// Dialect: what differs between the languages that kernels are written in. The generators write one
// neutral C-like text: types named f32, i64, u8 ..., casts AS(type, value), bit patterns
// BITS_f32(value) and FROM_BITS_f32(bits), elements LOAD(buffer, index) and
// STORE(buffer, index, value), 16 bytes from an element on, where that is a multiple of them,
// LOAD_WORD(buffer, index) as u32x4 and STORE_WORD(buffer, index, u32, u32, u32, u32), and of f32
// in an array that a group shares LOAD4_SHARED(array, index) as f32x4, the larger of a u32 in
// memory and a value put there as one operation MAX_BITS(buffer, index, value), 64-bit literals
// U64(high, low), numbers of the binding NUMBER(place), the upper half of a product of two u32
// MUL_HIGH(a, b), mathematical functions by their C names behind M_, BARRIER for the items of a
// group, INDEPENDENT before a loop whose rounds may be done side by side, and UNROLL before one of
// few rounds. Where the language promises right answers of an instruction, DECODE_f16(u32) as f32
// and ENCODE_f16(f32), of what is no NaN, as u32 are defined. Numbers are converted by AS wherever
// that loses bits, and conditions are bool. A dialect defines these names and the frame of a kernel
// around them.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_DIALECT_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_DIALECT_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onnxifi::codegen {

// A parameter of a kernel: a buffer of elements of a neutral type.
struct Parameter {
  std::string name;
  std::string type;
  bool is_written = false;
  bool is_alone = false;  // no other parameter names the same memory
};

// What the parts of a kernel are put together from.
struct KernelParts {
  std::string_view family;  // of the step that it is made for; empty in tests
  bool uses_float64 = false;
  bool is_narrow = false;  // idx, the type of coordinates, has 32 bits instead of 64
  std::string library;     // functions that the device brings, in its own language
  std::string helpers;     // functions
  std::vector<Parameter> parameters;
  // Arrays that a group shares: "f32 name[64]".
  std::vector<std::string> shared;
  int group_size = 0;
  int number_count = 0;
  std::string body;
};

class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual std::string Assemble(const KernelParts& parts) const = 0;
};

// OpenCL C 1.2 and newer. Items are counted by global ID 0 in groups of `group_size`.
class OpenClDialect final : public Dialect {
 public:
  std::string Assemble(const KernelParts& parts) const override;
};

// GLSL 4.60 with 64-bit addresses of buffers, for SPIR-V of Vulkan 1.2; the entry point is "main".
// Push constants are 64-bit words: the address of the numbers, the count of items, then the address
// of the first element of each parameter or, where these are more than kMaxPushedOperands, the
// address of an array of them. Groups may stand in rows along axis 1.
class GlslDialect final : public Dialect {
 public:
  static constexpr size_t kMaxPushedOperands = 14;
  std::string Assemble(const KernelParts& parts) const override;
};

// CUDA C++ for NVRTC. Parameters are pointers to the first element of each buffer, then the numbers
// as one structure by value, then the count of items. Groups are counted along axis x.
class CudaDialect final : public Dialect {
 public:
  std::string Assemble(const KernelParts& parts) const override;
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_DIALECT_H_
