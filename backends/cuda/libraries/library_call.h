// SPDX-License-Identifier: Apache-2.0
//
// LibraryCall: a step that a library computes, bound; LibraryBinder: how it comes about. Either the
// library makes the step's results, or it leaves the sums in working memory, and a kernel of ours
// makes the results of them (results_kernel.h).

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_LIBRARY_CALL_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_LIBRARY_CALL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "backends/core/base/result.h"
#include "backends/core/device/memory_use.h"
#include "backends/cuda/libraries/candidate.h"
#include "backends/cuda/libraries/contract_form.h"
#include "backends/cuda/libraries/library_host.h"
#include "backends/cuda/libraries/results_kernel.h"

namespace onnxifi::cuda {

class LibraryCall : public device::BoundKernel {
 public:
  base::Status Enqueue(device::Queue& queue, device::Addresses addresses) const final;
  std::string Detail() const override;

 protected:
  LibraryCall(const LibraryHost& host, codegen::Services& services)
      : host_(host), services_(services) {}

  // Puts the calls into the host's queue. `places` are the addresses of the program's buffers, and
  // behind them that of the sums; `uses` is all memory that is used. The workspace is null where
  // the library wants none. One thread at a time.
  virtual base::Status Put(device::Queue& queue, device::Addresses places,
                           std::span<const device::MemoryUse> uses, std::byte* workspace) const = 0;

  const LibraryHost& host_;
  Location first_, second_;  // operands, in the library's order
  Location bias_, addend_;
  Location output_;  // of the library: the step's, or the sums
  int64_t workspace_bytes_ = 0;

 private:
  friend class LibraryBinder;
  codegen::Services& services_;
  int64_t sum_bytes_ = 0;  // before the workspace; 0: the library writes the step's results
  std::unique_ptr<device::BoundKernel> behind_;
};

// Makes one call.
class LibraryBinder {
 public:
  virtual ~LibraryBinder() = default;
  LibraryBinder(const LibraryBinder&) = delete;
  LibraryBinder& operator=(const LibraryBinder&) = delete;

  // As Candidate::Bind.
  base::Result<std::unique_ptr<device::BoundKernel>> Bind();

 protected:
  LibraryBinder(Library library, const ContractForm& form, const BindRequest& request)
      : form_(form), request_(request), step_(request.step), library_(library) {}

  static base::Status Refuse(std::string sentence) {
    return base::Status(base::Code::kUnsupportedOperator, std::move(sentence));
  }

  // UNSUPPORTED_OPERATOR: of the sums a kernel of ours makes these results.
  virtual base::Status CheckEpilogue(const ContractEpilogue& epilogue) const = 0;
  // A call without anything.
  virtual std::unique_ptr<LibraryCall> NewCall() = 0;
  // The step in the library's terms, for the last new call, with its operands.
  virtual base::Result<ProductExtents> LayOut(const LibraryResults& results) = 0;
  // The sums that were laid out.
  virtual device::BoundView Sums() const = 0;
  // Tells the library, and asks it for what computes this, and for its working memory.
  virtual base::Status Describe(const LibraryResults& results) = 0;

  const ContractForm& form_;
  const BindRequest& request_;
  const device::BoundStep& step_;

 private:
  base::Status TryLayOut(const LibraryResults& results);
  base::Status BindEpilogue();
  base::Status BindSums();

  const Library library_;
  std::unique_ptr<LibraryCall> call_;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_LIBRARY_CALL_H_
