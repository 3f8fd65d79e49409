// SPDX-License-Identifier: Apache-2.0
//
// KernelDriver: what a device that compiles offers to the kernels of this folder: it compiles their
// source, keeps their numbers and starts them. A backend has one over its driver; how kernels are
// kept, bound and put one behind the other is written once on top (kernel_cache.h,
// kernel_launch.h, generated.h, tiled.h).

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_DRIVER_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/codegen/dialect.h"
#include "backends/core/codegen/kernel_text.h"
#include "backends/core/device/device.h"

namespace onnxifi::codegen {

// A kernel as the driver has it.
class DriverKernel {
 public:
  virtual ~DriverKernel() = default;
};

// The numbers of a kernel, where it reads them.
class DriverNumbers {
 public:
  virtual ~DriverNumbers() = default;
};

// Where the buffers of a kernel begin in one run, by argument.
class KernelOperands {
 public:
  // `buffers[k]`: the buffer of argument k, for those that are not working memory, `bytes[k]`: how
  // large it is; `scratch[n]`: where working memory n begins.
  KernelOperands(std::span<const Argument> arguments, std::span<const program::BufferId> buffers,
                 std::span<const int64_t> bytes, device::Addresses addresses,
                 device::Addresses scratch)
      : arguments_(arguments),
        buffers_(buffers),
        bytes_(bytes),
        addresses_(addresses),
        scratch_(scratch) {}

  size_t count() const { return arguments_.size(); }
  std::byte* address(size_t argument) const {
    return arguments_[argument].is_scratch
               ? scratch_[static_cast<size_t>(arguments_[argument].operand)]
               : addresses_[static_cast<size_t>(buffers_[argument])];
  }
  // The kernel counts the offset in the memory of a handle in units of this.
  int unit_bytes(size_t argument) const { return arguments_[argument].unit_bytes; }
  // -1: not known.
  int64_t size_bytes(size_t argument) const { return bytes_[argument]; }
  bool is_written(size_t argument) const { return arguments_[argument].is_write; }

 private:
  const std::span<const Argument> arguments_;
  const std::span<const program::BufferId> buffers_;
  const std::span<const int64_t> bytes_;
  const device::Addresses addresses_;
  const device::Addresses scratch_;
};

// One start of a kernel. After its operands a kernel has its numbers, then `item_count`.
struct KernelStart {
  KernelOperands operands;
  const DriverNumbers* numbers = nullptr;  // null: it has none
  int64_t item_count = 0;
  int64_t group_count = 0;
  int group_size = 0;
};

class KernelDriver {
 public:
  virtual ~KernelDriver() = default;

  virtual const Dialect& dialect() const = 0;
  // The functions that TiledProduct::Generate wants.
  virtual std::string_view product_library() const = 0;
  // All that a binary depends on beside its source: device, driver, options.
  virtual std::string_view binary_key() const = 0;

  // The kernel kEntryPoint of `source`. Resource codes; INTERNAL_ERROR with the compiler's words
  // if it refuses the source. Any thread.
  virtual base::Result<std::unique_ptr<DriverKernel>> Compile(const std::string& source) = 0;
  // What the driver makes of BinaryOf's bytes, of this process or another. Any thread.
  virtual base::Result<std::unique_ptr<DriverKernel>> Load(std::span<const std::byte> binary) = 0;
  // Empty if the driver does not tell.
  virtual std::vector<std::byte> BinaryOf(const DriverKernel& kernel) = 0;

  // `numbers`, not empty, for whatever is started later. Resource codes. Any thread.
  virtual base::Result<std::unique_ptr<DriverNumbers>> Hold(std::span<const int64_t> numbers) = 0;
  // Puts a kernel into a queue of the device; without one, into the device's order outside of any
  // run: what runs put in later is done after it. Any thread.
  virtual base::Status Start(device::Queue* queue, DriverKernel& kernel,
                             const KernelStart& start) = 0;
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_DRIVER_H_
