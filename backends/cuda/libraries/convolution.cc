// SPDX-License-Identifier: Apache-2.0
//
// Convolution: a plan of the library's, and what a run gives it.

#include "backends/cuda/libraries/convolution.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/libraries/convolution_engine.h"
#include "backends/cuda/libraries/convolution_graph.h"
#include "backends/cuda/libraries/convolution_layout.h"
#include "backends/cuda/libraries/library_call.h"
#include "backends/cuda/libraries/reordered_weights.h"

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Result;
using base::Status;
using device::BoundView;
using device::MemoryUse;
using program::Contract;
using tensor::ElementType;

class BoundConvolution final : public LibraryCall {
 public:
  BoundConvolution(const Cudnn& library, codegen::Services& services)
      : LibraryCall(library.host(), services), library_(library) {}

  bool ReadsAtRun(int read) const override { return read != 1 || held_weights_ == nullptr; }
  std::string Detail() const override {
    return std::string(layout_.is_channels_last ? "channels last, " : "channels first, ") +
           LibraryCall::Detail();
  }

 private:
  friend class ConvolutionBinder;
  static constexpr const char kDoing[] = "convolve";

  Status Put(device::Queue& queue, device::Addresses places, std::span<const MemoryUse> uses,
             std::byte* workspace) const override {
    std::vector<int64_t> ids;
    std::vector<void*> pointers;
    const auto add = [&](ConvolutionGraph::Tensor id, std::byte* address) {
      ids.push_back(id);
      pointers.push_back(address);
    };
    if (held_weights_ != nullptr) add(ConvolutionGraph::kWeights, held_weights_->data());
    const auto add_place = [&](ConvolutionGraph::Tensor id, const Location& at,
                               const ConvolutionLayout::Tensor& tensor) {
      if (at.is_there()) add(id, at.In(places, tensor.offset));
    };
    add_place(ConvolutionGraph::kImage, first_, layout_.image);
    add_place(ConvolutionGraph::kWeights, second_, layout_.weights);
    add_place(ConvolutionGraph::kBias, bias_, layout_.bias);
    add_place(ConvolutionGraph::kAddend, addend_, layout_.addend);
    add_place(ConvolutionGraph::kOutput, output_, layout_.output);
    return host_.Put(queue, kDoing, uses,
                     [&](CUstream stream) { return Execute(ids, pointers, workspace, stream); });
  }

  Status Execute(const std::vector<int64_t>& ids, const std::vector<void*>& pointers,
                 void* workspace, CUstream stream) const {
    const std::lock_guard lock(library_.mutex());
    const Cudnn::Functions& functions = library_.functions();
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor pack,
                             CudnnDescriptor::Create(library_, dnn::kVariantPack));
    ONNXIFI_RETURN_IF_ERROR(pack.Set(dnn::kPackIds, dnn::kOfInt64, ids));
    ONNXIFI_RETURN_IF_ERROR(pack.Set(dnn::kPackPointers, dnn::kOfPointer, pointers));
    ONNXIFI_RETURN_IF_ERROR(pack.Set(dnn::kPackWorkspace, dnn::kOfPointer, workspace));
    ONNXIFI_RETURN_IF_ERROR(pack.Finalize());
    ONNXIFI_RETURN_IF_ERROR(
        Cudnn::ToStatus(functions.SetStream(library_.handle(), stream), "use a stream"));
    return Cudnn::ToStatus(
        functions.BackendExecute(library_.handle(), plan_.descriptor.get(), pack.get()), kDoing);
  }

  const Cudnn& library_;
  ConvolutionLayout layout_;
  // In the library's order; shared with the step's other kernels.
  std::shared_ptr<device::Allocation> held_weights_;
  ConvolutionPlan plan_;
};

class ConvolutionBinder final : public LibraryBinder {
 public:
  ConvolutionBinder(const Cudnn& library, const ContractForm& form, const BindRequest& request,
                    ReorderedWeights& weights)
      : LibraryBinder(Library::kCudnn, form, request), library_(library), weights_(weights) {}

 private:
  // Sums, an addend, a bias, at least 0: no more is asked of the library.
  Status CheckEpilogue(const ContractEpilogue& epilogue) const override {
    return epilogue.scale == 1 ? base::Ok() : Refuse("The results are a kernel's.");
  }

  std::unique_ptr<LibraryCall> NewCall() override {
    auto call = std::make_unique<BoundConvolution>(library_, request_.services);
    made_ = call.get();
    return call;
  }

  Result<ProductExtents> LayOut(const LibraryResults& results) override {
    ONNXIFI_ASSIGN_OR_RETURN(made_->layout_, LayOutConvolution(step_, results));
    made_->first_ = Location::Of(step_.reads[0]);
    if (!made_->layout_.are_weights_reordered) {
      made_->second_ = Location::Of(step_.reads[1]);
    } else if (ConstantOf(request_, step_.reads[1]) == nullptr) {
      return Refuse("Weights that are no constant do not lie as the image does.");
    }
    return made_->layout_.extents;
  }

  BoundView Sums() const override { return SumsOf(step_, made_->layout_.is_channels_last); }

  Status Describe(const LibraryResults& results) override {
    const ConvolutionLayout& layout = made_->layout_;
    const ElementType type = results.out == nullptr ? Sums().type : results.out->type;
    {
      const std::lock_guard lock(library_.mutex());
      ONNXIFI_ASSIGN_OR_RETURN(
          const ConvolutionGraph graph,
          ConvolutionGraph::Make(library_, form_.operand, layout, results, type));
      ONNXIFI_ASSIGN_OR_RETURN(made_->plan_, ChooseEngine(library_, form_, graph.descriptor()));
    }
    made_->workspace_bytes_ = made_->plan_.workspace_bytes;
    if (layout.are_weights_reordered) {
      ONNXIFI_ASSIGN_OR_RETURN(made_->held_weights_,
                               weights_.Hold(request_, library_.host(), layout.is_channels_last));
    }
    return base::Ok();
  }

  const Cudnn& library_;
  ReorderedWeights& weights_;
  BoundConvolution* made_ = nullptr;
};

class Convolution final : public Candidate {
 public:
  Convolution(const Cudnn& library, const ContractForm& form) : library_(library), form_(form) {}
  std::string_view name() const override { return "cuDNN"; }
  std::string version() const override { return std::to_string(library_.version()); }
  Result<std::unique_ptr<device::BoundKernel>> Bind(const BindRequest& request) const override {
    return ConvolutionBinder(library_, form_, request, weights_).Bind();
  }

 private:
  const Cudnn& library_;
  const ContractForm form_;
  mutable ReorderedWeights weights_;
};

Status Refuse(std::string sentence) {
  return Status(Code::kUnsupportedOperator, std::move(sentence));
}

}  // namespace

Status CheckConvolution(const Contract& contract, const ContractForm& form) {
  constexpr size_t kMaxSpatialAxes = 3;
  const size_t axes = contract.a_spatial.size();
  if (contract.form != Contract::Form::kConv || axes < 1 || axes > kMaxSpatialAxes) {
    return Refuse("cuDNN is asked for convolutions of 1 to 3 spatial axes alone.");
  }
  if (form.operand == ElementType::kInt8) {
    return Refuse("cuDNN is asked for convolutions of floats alone.");
  }
  return base::Ok();
}

std::unique_ptr<const Candidate> MakeConvolution(const Cudnn& library, const ContractForm& form) {
  return std::make_unique<Convolution>(library, form);
}

}  // namespace onnxifi::cuda
