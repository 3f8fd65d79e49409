// SPDX-License-Identifier: Apache-2.0
//
// Runs a graph on tensors in host memory, the way a careful caller does, and checks what no
// caller can see: that nothing is written beside the outputs or into the inputs.

#ifndef ONNXIFI_CLIENT_EXECUTION_H_
#define ONNXIFI_CLIENT_EXECUTION_H_

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "client/library.h"
#include "client/onnx_file/tensor_file.h"

namespace onnxifi::client {

// Descriptors together with the names and shapes that they point to.
class DescriptorList {
 public:
  void Add(std::string name, onnx_file::ElementType type, std::span<const int64_t> extents,
           void* buffer);

  const onnxTensorDescriptorV1* data() const { return descriptors_.data(); }
  uint32_t count() const { return static_cast<uint32_t>(descriptors_.size()); }
  // For tests that spoil a descriptor.
  onnxTensorDescriptorV1& operator[](size_t index) { return descriptors_[index]; }

 private:
  std::vector<onnxTensorDescriptorV1> descriptors_;
  // Addresses of their elements stay when they grow.
  std::deque<std::string> names_;
  std::deque<std::vector<uint64_t>> shapes_;
};

// ok when `status` is SUCCESS or FALLBACK; otherwise the sentence "onnxRunGraph answers
// INVALID_STATE: <last error>".
base::Status ExpectSuccess(const Library& library, std::string_view function, onnxStatus status);

// An event that is released however the run ends.
class ScopedEvent {
 public:
  ScopedEvent(const Library& library, onnxEvent event) : library_(library), event_(event) {}
  ~ScopedEvent() {
    if (event_ != nullptr) (void)library_.onnxReleaseEvent(event_);
  }
  ScopedEvent(const ScopedEvent&) = delete;
  ScopedEvent& operator=(const ScopedEvent&) = delete;

 private:
  const Library& library_;
  onnxEvent event_;
};

struct ExecutionOptions {
  // Whether the input event is signalled before onnxRunGraph or after it; both are legal.
  bool signal_before_run = false;
  // Buffers start on no more than their element's natural alignment.
  bool misalign = false;
  // Runs of the one binding. What the run before wrote into the outputs is spoiled.
  int run_count = 1;
  // Binds and runs by onnxSetIOAndRunGraph, once, as callers in several threads do. Without an
  // input event; run_count is 1.
  bool binds_with_run = false;
};

// Runs a bound graph once and waits. `output_event`, the caller's to release, is the run's, null
// where it did not start.
base::Status RunAndWait(const Library& library, onnxBackend backend, onnxGraph graph,
                        const ExecutionOptions& options, onnxEvent& output_event);

// Binds `inputs` and buffers like `outputs` (names, types, extents as upper bounds; values are not
// used), runs and waits. The tensors returned are those of the last run, with the extents that the
// library reports after it where it can, else those given. Errors: any call that does not succeed,
// bytes written beside a buffer, an input that changed.
base::Result<std::vector<onnx_file::DenseTensor>> Execute(
    const Library& library, const Extensions& extensions, onnxBackend backend, onnxGraph graph,
    std::span<const onnx_file::DenseTensor> inputs, std::span<const onnx_file::DenseTensor> outputs,
    const ExecutionOptions& options);

}  // namespace onnxifi::client

#endif  // ONNXIFI_CLIENT_EXECUTION_H_
