// SPDX-License-Identifier: Apache-2.0
//
// Place: where a value lies that islands read or make: in memory of the caller's, in ours, which
// may be a device's, too, or in what a run of its island kept.

#ifndef ONNXIFI_ONNXIFI_BOUNDARY_PLACE_H_
#define ONNXIFI_ONNXIFI_BOUNDARY_PLACE_H_

#include <cstddef>
#include <memory>
#include <span>

#include "backends/core/abi/provider.h"
#include "backends/core/abi/tensor_descriptor.h"
#include "backends/core/base/result.h"
#include "backends/core/tensor/value.h"

namespace onnxifi::boundary {

// Where memory comes from on which one device and the host both work.
class SharedSource {
 public:
  virtual ~SharedSource() = default;
  // UNSUPPORTED_MEMORY_TYPE where there is none such; resource codes. The owner keeps what it
  // needs.
  virtual base::Result<abi::SharedMemory> AllocateShared(int64_t size_bytes) const = 0;
};

struct Place {
  // As the host reads and writes it.
  abi::TensorDescriptor descriptor;
  // The caller's memory, or none of the caller's.
  bool is_callers = false;
  // A run keeps it: there is no memory for it before.
  bool is_kept = false;
  // Whether the descriptor says how it is in the run under way, or in every run.
  bool is_known = false;
  // Whether that may be different in every run.
  bool depends_on_data = false;
  // Ours, for as many bytes; the host's alone, or a device's, too.
  abi::SharedMemory memory;
  size_t capacity_bytes = 0;
  const SharedSource* sharer = nullptr;
  // What the last run kept: holds the data of the descriptor.
  tensor::ValueRef kept = nullptr;

  // Has memory for what the descriptor says: what is there, where that is enough, or new, which the
  // first of `sources` that can shares with its device where that saves more than it takes.
  // MISMATCHING_SHAPE where the caller's is too small; NO_SYSTEM_MEMORY.
  base::Status Reserve(std::span<const SharedSource* const> sources = {});
  // As graphs of `device` read and write it.
  abi::TensorDescriptor DescriptorFor(const SharedSource* device) const;
  // Whether what a device tells after a run is what was bound; in memory of the caller's there may
  // be less than it has room for. Else a Contradiction.
  base::Status CheckAfterRun(const abi::TensorShape& told) const;
};

// Bytes of a dense tensor. NO_SYSTEM_MEMORY where no memory can have as many, or its type has no
// size.
base::Result<size_t> SizeBytes(const abi::TensorDescriptor& descriptor);

}  // namespace onnxifi::boundary

#endif  // ONNXIFI_ONNXIFI_BOUNDARY_PLACE_H_
