// SPDX-License-Identifier: Apache-2.0
//
// TensorStorage: where a tensor lives that islands read or make, and how its extents are known.

#ifndef ONNXIFI_ONNXIFI_PARTITIONED_TENSOR_STORAGE_H_
#define ONNXIFI_ONNXIFI_PARTITIONED_TENSOR_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "backends/core/abi/provider.h"
#include "backends/core/abi/tensor_descriptor.h"
#include "backends/core/base/result.h"
#include "backends/core/tensor/value.h"
#include "onnxifi/plugins/shared_source.h"

namespace onnxifi::partitioned {

// Where a tensor lives.
enum class Location : uint8_t {
  // In memory that the caller bound.
  kCallerMemory,
  // The caller bound no memory: a run makes the result and the caller takes it.
  kCallerResult,
  // Between islands, in memory of the workspace, which a device may share with the host.
  kWorkspace,
  // Between islands, in a result that a run makes, because only that run tells the extents.
  kRunResult,
};

// How the extents of a tensor are known.
enum class ExtentSource : uint8_t {
  // Nobody has told them.
  kNone,
  // They are fixed once the caller's tensors are bound, and the same in every run.
  kBinding,
  // Each run may have others; the island's device infers them from its inputs before it runs.
  kInference,
  // Only the run of the island tells them.
  kRun,
};

struct TensorStorage {
  // As the host reads and writes it.
  abi::TensorDescriptor descriptor;
  Location location = Location::kWorkspace;
  ExtentSource extent_source = ExtentSource::kNone;
  // Memory of the workspace, for as many bytes; the host's alone, or a device's, too.
  abi::SharedMemory memory;
  size_t capacity_bytes = 0;
  const plugins::SharedSource* sharer = nullptr;
  // What the last run kept: holds the data of the descriptor.
  tensor::ValueRef kept = nullptr;

  // Whether a run makes it, in memory that does not exist before that run.
  bool is_kept() const {
    return location == Location::kCallerResult || location == Location::kRunResult;
  }
  // Whether the extents are known before the island runs that makes it.
  bool has_known_extents() const {
    return extent_source == ExtentSource::kBinding || extent_source == ExtentSource::kInference;
  }
  // Whether the extents may differ from run to run.
  bool varies_by_run() const {
    return extent_source == ExtentSource::kInference || extent_source == ExtentSource::kRun;
  }

  // Takes what a device infers of the extents from the inputs of the island; null for nothing.
  // `varies`: whether those inputs may differ from run to run. A tensor between islands then lives
  // in the workspace where the extents are known, else in the result of a run.
  void TakeInference(const abi::TensorShape* told, bool varies);
  // Has memory for what the descriptor says: what is there, where that is enough, or new, which the
  // first of `sources` that can shares with its device where that saves more than it takes.
  // MISMATCHING_SHAPE where the caller's is too small; NO_SYSTEM_MEMORY.
  base::Status Reserve(std::span<const plugins::SharedSource* const> sources = {});
  // As graphs of `device` read and write it.
  abi::TensorDescriptor DescriptorFor(const plugins::SharedSource* device) const;
  // Whether what a device tells after a run is what was bound; in memory of the caller's there may
  // be less than it has room for. Else a Contradiction.
  base::Status CheckAfterRun(const abi::TensorShape& told) const;
};

// Bytes of a dense tensor. NO_SYSTEM_MEMORY where no memory can have as many, or its type has no
// size.
base::Result<size_t> SizeBytes(const abi::TensorDescriptor& descriptor);

}  // namespace onnxifi::partitioned

#endif  // ONNXIFI_ONNXIFI_PARTITIONED_TENSOR_STORAGE_H_
