// SPDX-License-Identifier: Apache-2.0
//
// LibraryCall: the library's part and our own, in one piece of working memory.

#include "backends/cuda/libraries/library_call.h"

#include <utility>
#include <vector>

#include "backends/core/codegen/scratch.h"

namespace onnxifi::cuda {

using base::Result;
using base::Status;
using codegen::Scratch;
using device::BoundView;
using device::MemoryUse;

Status LibraryCall::Enqueue(device::Queue& queue, device::Addresses addresses) const {
  const Scratch::Use use(services_.scratch, queue);
  // With the sums behind the program's buffers, as the kernel behind the library counts them.
  std::vector<std::byte*> places(addresses.begin(), addresses.end());
  places.push_back(use.at(0));
  std::byte* const workspace =
      workspace_bytes_ == 0 ? nullptr : use.at(Scratch::Aligned(sum_bytes_));
  std::vector<MemoryUse> uses;
  for (const Location* const place : {&first_, &second_, &bias_, &addend_, &output_}) {
    if (place->is_there()) uses.push_back(place->UseIn(places, /*is_written=*/place == &output_));
  }
  if (workspace != nullptr) {
    uses.push_back(MemoryUse::Of(workspace, workspace_bytes_, /*is_written=*/true));
  }
  ONNXIFI_RETURN_IF_ERROR(Put(queue, places, uses, workspace));
  return behind_ == nullptr ? base::Ok() : behind_->Enqueue(queue, places);
}

std::string LibraryCall::Detail() const {
  return behind_ == nullptr ? "results by the library" : "results by a kernel of ours";
}

Result<std::unique_ptr<device::BoundKernel>> LibraryBinder::Bind() {
  Status bound = BindEpilogue();
  if (!bound.ok()) {
    // Anything else keeps the sums from being bound, too.
    if (bound.code() != base::Code::kUnsupportedOperator) return bound;
    ONNXIFI_RETURN_IF_ERROR(BindSums());
  }
  ONNXIFI_RETURN_IF_ERROR(request_.services.scratch.Reserve(Scratch::Aligned(call_->sum_bytes_) +
                                                            call_->workspace_bytes_));
  return std::unique_ptr<device::BoundKernel>(std::move(call_));
}

Status LibraryBinder::TryLayOut(const LibraryResults& results) {
  call_ = NewCall();
  ONNXIFI_ASSIGN_OR_RETURN(const ProductExtents extents, LayOut(results));
  if (results.bias != nullptr) call_->bias_ = Location::Of(*results.bias);
  if (results.addend != nullptr) call_->addend_ = Location::Of(*results.addend);
  if (results.out != nullptr) call_->output_ = Location::Of(*results.out);
  return CheckRules(request_, library_, form_.type, extents);
}

Status LibraryBinder::BindEpilogue() {
  if (!form_.epilogue) return Refuse("The results are a kernel's.");
  const ContractEpilogue& epilogue = *form_.epilogue;
  ONNXIFI_RETURN_IF_ERROR(CheckEpilogue(epilogue));
  const auto read = [&](int number) {
    return number < 0 ? nullptr : &step_.reads[static_cast<size_t>(number)];
  };
  LibraryResults results{.out = &step_.writes[0],
                         .bias = read(epilogue.bias),
                         .addend = read(epilogue.addend),
                         .scale = epilogue.scale,
                         .is_rectified = epilogue.is_rectified};
  Status laid_out = TryLayOut(results);
  // Of two terms either may be the bias, and one alone, too.
  if (!laid_out.ok()) {
    std::swap(results.bias, results.addend);
    laid_out = TryLayOut(results);
  }
  ONNXIFI_RETURN_IF_ERROR(std::move(laid_out));
  return Describe(results);
}

Status LibraryBinder::BindSums() {
  ONNXIFI_RETURN_IF_ERROR(TryLayOut({}));
  const BoundView sums = Sums();
  call_->output_ = Location::Of(sums);
  call_->sum_bytes_ = sums.buffer_bytes;
  ONNXIFI_RETURN_IF_ERROR(Describe({}));
  ONNXIFI_ASSIGN_OR_RETURN(call_->behind_, BindResults(request_, sums));
  return base::Ok();
}

}  // namespace onnxifi::cuda
