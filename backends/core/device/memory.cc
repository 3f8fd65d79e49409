// SPDX-License-Identifier: Apache-2.0
//
// Memory: what is common to devices whose memory is the host's.

#include "backends/core/device/device.h"
#include "backends/core/tensor/file_pages.h"

namespace onnxifi::device {
namespace {

class BorrowedAllocation : public Allocation {
 public:
  explicit BorrowedAllocation(tensor::Tensor tensor) : tensor_(std::move(tensor)) {}
  std::byte* data() override { return tensor_.mutable_data(); }
  int64_t size_bytes() const override { return tensor_.size_bytes(); }
  void Rest() override {
    if (tensor_.backing() == tensor::Backing::kFile) tensor::GiveBackPages(tensor_.bytes());
  }

 private:
  tensor::Tensor tensor_;
};

}  // namespace

base::Result<std::unique_ptr<Allocation>> Memory::Hold(const tensor::Tensor& constant) {
  return std::unique_ptr<Allocation>(std::make_unique<BorrowedAllocation>(constant));
}

}  // namespace onnxifi::device
