// SPDX-License-Identifier: Apache-2.0
//
// Convolution: what the library is told, and which of its engines is taken.

#include "backends/cuda/libraries/convolution.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/codegen/generated.h"
#include "backends/core/codegen/scratch.h"
#include "backends/cuda/libraries/convolution_layout.h"
#include "backends/cuda/libraries/results_kernel.h"

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Result;
using base::Status;
using codegen::Scratch;
using device::BoundView;
using device::MemoryUse;
using program::Contract;
using tensor::ElementType;

enum Id : int64_t { kImage = 1, kWeights, kOutput, kBias, kAddend, kFirstSums };

Status Refuse(std::string sentence) {
  return Status(Code::kUnsupportedOperator, std::move(sentence));
}

dnn::DataType TypeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat16:
      return dnn::kFloat16;
    case ElementType::kBfloat16:
      return dnn::kBfloat16;
    default:
      return dnn::kFloat32;
  }
}

// The library's description of a convolution, which says itself what its parts are: a function
// returns the first error of what it sets.
class Description {
 public:
  struct Plan {
    CudnnDescriptor descriptor;
    int64_t workspace_bytes = 0;
  };

  Description(const Cudnn& library, const ContractForm& form, const ConvolutionLayout& layout)
      : library_(library), form_(form), layout_(layout) {}

  // What is made of the sums; the output and all terms have one type.
  struct Results {
    ElementType type = ElementType::kFloat32;
    bool has_addend = false, has_bias = false, is_rectified = false;
  };

  Result<Plan> MakePlan(const Results& results) {
    const std::lock_guard lock(library_.mutex());
    operations_left_ =
        (results.has_addend ? 1 : 0) + (results.has_bias ? 1 : 0) + (results.is_rectified ? 1 : 0);
    ONNXIFI_RETURN_IF_ERROR(Convolve(results.type));
    ONNXIFI_ASSIGN_OR_RETURN(const CudnnDescriptor graph, MakeGraph(results));
    int found = 0;
    std::string fault;
    for (const int mode : {dnn::kByTable, dnn::kFallback}) {
      Result<std::vector<CudnnDescriptor>> configs = FindConfigs(graph, mode);
      if (!configs.ok()) {
        if (IsOutOfMemory(configs.status())) return std::move(configs).status();
        fault = " " + std::string(configs.status().sentence());
        continue;
      }
      for (const CudnnDescriptor& config : *configs) {
        ++found;
        const Result<bool> is_exact = IsExact(config);
        if (is_exact.ok() && !*is_exact) continue;
        Result<Plan> plan = is_exact.ok() ? Finish(config) : Status(is_exact.status());
        if (plan.ok() && plan->workspace_bytes <= static_cast<int64_t>(kMaxWorkspaceBytes)) {
          return plan;
        }
        if (plan.ok()) continue;
        if (IsOutOfMemory(plan.status())) return plan;
        fault = " " + std::string(plan.status().sentence());
      }
    }
    return Refuse("None of cuDNN's " + std::to_string(found) + " engines computes in " +
                  std::string(form_.type) + ", each time alike, in 64 MiB of working memory." +
                  fault);
  }

 private:
  // What else keeps one engine from being built says nothing of the next.
  static bool IsOutOfMemory(const Status& status) {
    return status.code() == Code::kNoDeviceMemory || status.code() == Code::kNoSystemMemory;
  }

  Result<CudnnDescriptor> Make(dnn::Kind kind) { return CudnnDescriptor::Create(library_, kind); }
  Result<CudnnDescriptor*> Keep(CudnnDescriptor descriptor) {
    parts_.push_back(std::make_unique<CudnnDescriptor>(std::move(descriptor)));
    return parts_.back().get();
  }

  Result<CudnnDescriptor*> MakeTensor(int64_t id, const ConvolutionLayout::Tensor& tensor,
                                      ElementType type, bool is_virtual = false) {
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor made, Make(dnn::kTensor));
    // Buffers lie at multiples of 16 bytes or more.
    const auto offset_bytes =
        static_cast<uint64_t>(tensor.offset * tensor::BitWidth(type) / 8) | uint64_t{16};
    const int64_t aligned = int64_t{1} << std::countr_zero(offset_bytes);
    ONNXIFI_RETURN_IF_ERROR(made.Set(dnn::kTensorType, dnn::kOfDataType, TypeOf(type)));
    ONNXIFI_RETURN_IF_ERROR(made.Set(dnn::kTensorExtents, dnn::kOfInt64, tensor.extents));
    ONNXIFI_RETURN_IF_ERROR(made.Set(dnn::kTensorStrides, dnn::kOfInt64, tensor.strides));
    ONNXIFI_RETURN_IF_ERROR(made.Set(dnn::kTensorId, dnn::kOfInt64, id));
    ONNXIFI_RETURN_IF_ERROR(made.Set(dnn::kTensorAlignment, dnn::kOfInt64, aligned));
    ONNXIFI_RETURN_IF_ERROR(made.Set(dnn::kTensorIsVirtual, dnn::kOfBoolean, is_virtual));
    ONNXIFI_RETURN_IF_ERROR(made.Finalize());
    return Keep(std::move(made));
  }

  // What the next operation writes: the step's output, or sums that are nowhere in memory.
  Result<CudnnDescriptor*> MakeOutput(ElementType result_type) {
    if (operations_left_-- == 0) return MakeTensor(kOutput, layout_.output, result_type);
    return MakeTensor(kFirstSums + operations_left_, layout_.output, ElementType::kFloat32,
                      /*is_virtual=*/true);
  }

  Status Convolve(ElementType result_type) {
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor convolution, Make(dnn::kConvolution));
    const auto axes = static_cast<int64_t>(layout_.strides.size());
    ONNXIFI_RETURN_IF_ERROR(
        convolution.Set(dnn::kConvolutionPrecision, dnn::kOfDataType, dnn::kFloat32));
    ONNXIFI_RETURN_IF_ERROR(
        convolution.Set(dnn::kConvolutionMode, dnn::kOfConvolutionMode, dnn::kCrossCorrelation));
    ONNXIFI_RETURN_IF_ERROR(convolution.Set(dnn::kConvolutionSpatialAxes, dnn::kOfInt64, axes));
    for (const auto& [attribute, numbers] : {std::pair{dnn::kConvolutionStrides, &layout_.strides},
                                             {dnn::kConvolutionDilations, &layout_.dilations},
                                             {dnn::kConvolutionPadsBefore, &layout_.pads_before},
                                             {dnn::kConvolutionPadsAfter, &layout_.pads_after}}) {
      ONNXIFI_RETURN_IF_ERROR(convolution.Set(attribute, dnn::kOfInt64, *numbers));
    }
    ONNXIFI_RETURN_IF_ERROR(convolution.Finalize());
    ONNXIFI_ASSIGN_OR_RETURN(const CudnnDescriptor* const kept, Keep(std::move(convolution)));
    ONNXIFI_ASSIGN_OR_RETURN(const CudnnDescriptor* const image,
                             MakeTensor(kImage, layout_.image, form_.operand));
    ONNXIFI_ASSIGN_OR_RETURN(const CudnnDescriptor* const weights,
                             MakeTensor(kWeights, layout_.weights, form_.operand));
    ONNXIFI_ASSIGN_OR_RETURN(output_, MakeOutput(result_type));
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor forward, Make(dnn::kForward));
    const float one = 1, zero = 0;
    ONNXIFI_RETURN_IF_ERROR(forward.SetDescriptor(dnn::kForwardConvolution, *kept));
    ONNXIFI_RETURN_IF_ERROR(forward.SetDescriptor(dnn::kForwardImage, *image));
    ONNXIFI_RETURN_IF_ERROR(forward.SetDescriptor(dnn::kForwardWeights, *weights));
    ONNXIFI_RETURN_IF_ERROR(forward.SetDescriptor(dnn::kForwardOutput, *output_));
    ONNXIFI_RETURN_IF_ERROR(forward.Set(dnn::kForwardAlpha, dnn::kOfFloat, one));
    ONNXIFI_RETURN_IF_ERROR(forward.Set(dnn::kForwardBeta, dnn::kOfFloat, zero));
    return AddOperation(std::move(forward));
  }

  Status AddOperation(CudnnDescriptor operation) {
    ONNXIFI_RETURN_IF_ERROR(operation.Finalize());
    ONNXIFI_ASSIGN_OR_RETURN(const CudnnDescriptor* const kept, Keep(std::move(operation)));
    operations_.push_back(kept->get());
    return base::Ok();
  }

  // To what the operation before it leaves.
  Status Apply(dnn::PointwiseMode mode, const CudnnDescriptor* second, ElementType result_type) {
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor* const to, MakeOutput(result_type));
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor pointwise, Make(dnn::kPointwise));
    ONNXIFI_RETURN_IF_ERROR(pointwise.Set(dnn::kPointwiseMode, dnn::kOfPointwiseMode, mode));
    ONNXIFI_RETURN_IF_ERROR(
        pointwise.Set(dnn::kPointwisePrecision, dnn::kOfDataType, dnn::kFloat32));
    if (mode == dnn::kRelu) {
      ONNXIFI_RETURN_IF_ERROR(
          pointwise.Set(dnn::kPointwiseNan, dnn::kOfNanPropagation, dnn::kPropagateNan));
    }
    ONNXIFI_RETURN_IF_ERROR(pointwise.Finalize());
    ONNXIFI_ASSIGN_OR_RETURN(const CudnnDescriptor* const kept, Keep(std::move(pointwise)));
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor operation, Make(dnn::kPointwiseOperation));
    ONNXIFI_RETURN_IF_ERROR(operation.SetDescriptor(dnn::kOperationPointwise, *kept));
    ONNXIFI_RETURN_IF_ERROR(operation.SetDescriptor(dnn::kOperationInput, *output_));
    if (second != nullptr) {
      ONNXIFI_RETURN_IF_ERROR(operation.SetDescriptor(dnn::kOperationSecondInput, *second));
    }
    ONNXIFI_RETURN_IF_ERROR(operation.SetDescriptor(dnn::kOperationOutput, *to));
    output_ = to;
    return AddOperation(std::move(operation));
  }

  Result<CudnnDescriptor> MakeGraph(const Results& results) {
    if (results.has_addend) {
      ONNXIFI_ASSIGN_OR_RETURN(const CudnnDescriptor* const addend,
                               MakeTensor(kAddend, layout_.addend, results.type));
      ONNXIFI_RETURN_IF_ERROR(Apply(dnn::kAdd, addend, results.type));
    }
    if (results.has_bias) {
      ONNXIFI_ASSIGN_OR_RETURN(const CudnnDescriptor* const bias,
                               MakeTensor(kBias, layout_.bias, results.type));
      ONNXIFI_RETURN_IF_ERROR(Apply(dnn::kAdd, bias, results.type));
    }
    if (results.is_rectified) {
      ONNXIFI_RETURN_IF_ERROR(Apply(dnn::kRelu, nullptr, results.type));
    }
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor graph, Make(dnn::kGraph));
    ONNXIFI_RETURN_IF_ERROR(graph.Set(dnn::kGraphHandle, dnn::kOfHandle, library_.handle()));
    ONNXIFI_RETURN_IF_ERROR(graph.Set(dnn::kGraphOperations, dnn::kOfDescriptor, operations_));
    ONNXIFI_RETURN_IF_ERROR(InContext([&] { return graph.Finalize(); }));
    return graph;
  }

  // The library's engines with their settings, the one it thinks fastest first.
  Result<std::vector<CudnnDescriptor>> FindConfigs(const CudnnDescriptor& graph, int mode) {
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor heuristic, Make(dnn::kHeuristic));
    ONNXIFI_RETURN_IF_ERROR(heuristic.SetDescriptor(dnn::kHeuristicGraph, graph));
    ONNXIFI_RETURN_IF_ERROR(heuristic.Set(dnn::kHeuristicMode, dnn::kOfHeuristicMode, mode));
    ONNXIFI_RETURN_IF_ERROR(InContext([&] { return heuristic.Finalize(); }));
    std::vector<CudnnDescriptor> configs;
    std::vector<dnn::Descriptor> pointers;
    int64_t count = 0;
    const auto get = [&](int64_t wanted) {
      return InContext([&]() -> Status {
        ONNXIFI_ASSIGN_OR_RETURN(count,
                                 heuristic.Get(dnn::kHeuristicResults, dnn::kOfDescriptor, wanted,
                                               wanted == 0 ? nullptr : pointers.data()));
        return base::Ok();
      });
    };
    ONNXIFI_RETURN_IF_ERROR(get(0));
    const int64_t wanted = std::max<int64_t>(count, 0);
    for (int64_t k = 0; k < wanted; ++k) {
      ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor config, Make(dnn::kEngineConfig));
      pointers.push_back(config.get());
      configs.push_back(std::move(config));
    }
    if (wanted > 0) ONNXIFI_RETURN_IF_ERROR(get(wanted));
    configs.resize(static_cast<size_t>(std::clamp<int64_t>(count, 0, wanted)));
    return configs;
  }

  // Whether the engine rounds nothing but what the caller permits, and is the same each time.
  Result<bool> IsExact(const CudnnDescriptor& config) {
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor engine, Make(dnn::kEngine));
    dnn::Descriptor pointer = engine.get();
    ONNXIFI_RETURN_IF_ERROR(
        config.Get(dnn::kConfigEngine, dnn::kOfDescriptor, 1, &pointer).status());
    std::array<int, dnn::kMaxNotes> notes{};
    ONNXIFI_ASSIGN_OR_RETURN(
        const int64_t count,
        engine.Get(dnn::kEngineNotes, dnn::kOfNumericalNote, dnn::kMaxNotes, notes.data()));
    // float32 comes to tensor cores as TF32. To what an engine narrows its inputs it does not tell:
    // it may be float16, whose range is no float32's.
    const bool is_plain =
        form_.operand == ElementType::kFloat32 && form_.precision == tensor::Precision::kFloat32;
    const auto told = std::span(notes).first(static_cast<size_t>(std::min(count, dnn::kMaxNotes)));
    return std::ranges::all_of(told, [&](int note) {
      switch (note) {
        case dnn::kTensorCores:
          return !is_plain;
        case dnn::kStrictNan:
          return true;
        default:
          return false;
      }
    });
  }

  Result<Plan> Finish(const CudnnDescriptor& config) {
    Plan plan;
    ONNXIFI_ASSIGN_OR_RETURN(plan.descriptor, Make(dnn::kPlan));
    ONNXIFI_RETURN_IF_ERROR(
        plan.descriptor.Set(dnn::kPlanHandle, dnn::kOfHandle, library_.handle()));
    ONNXIFI_RETURN_IF_ERROR(plan.descriptor.SetDescriptor(dnn::kPlanConfig, config));
    ONNXIFI_RETURN_IF_ERROR(InContext([&] { return plan.descriptor.Finalize(); }));
    ONNXIFI_RETURN_IF_ERROR(
        plan.descriptor.Get(dnn::kPlanWorkspaceBytes, dnn::kOfInt64, 1, &plan.workspace_bytes)
            .status());
    return plan;
  }

  template <typename Call>
  Status InContext(const Call& call) {
    return library_.host().Do("choose an engine", call);
  }

  const Cudnn& library_;
  const ContractForm& form_;
  const ConvolutionLayout& layout_;
  // What the graph is made of, which outlives it.
  std::vector<std::unique_ptr<CudnnDescriptor>> parts_;
  std::vector<dnn::Descriptor> operations_;
  CudnnDescriptor* output_ = nullptr;  // of the last operation
  int operations_left_ = 0;
};

class BoundConvolution final : public device::BoundKernel {
 public:
  BoundConvolution(const Cudnn& library, codegen::Services& services)
      : library_(library), services_(services) {}

  Status Enqueue(device::Queue& queue, device::Addresses addresses) const override {
    const Scratch::Use use(services_.scratch, queue);
    // With the sums behind the program's buffers, as the kernel behind the library counts them.
    std::vector<std::byte*> places(addresses.begin(), addresses.end());
    places.push_back(use.at(0));
    std::byte* const workspace =
        plan_.workspace_bytes == 0 ? nullptr : use.at(Scratch::Aligned(sum_bytes_));
    std::vector<int64_t> ids;
    std::vector<void*> pointers;
    std::vector<MemoryUse> uses;
    const auto add = [&](Id id, const Location& at, int64_t offset, bool is_written) {
      if (!at.is_there()) return;
      ids.push_back(id);
      pointers.push_back(at.In(places, offset));
      uses.push_back(at.UseIn(places, is_written));
    };
    add(kImage, image_, layout_.image.offset, /*is_written=*/false);
    add(kWeights, weights_, layout_.weights.offset, /*is_written=*/false);
    if (held_weights_ != nullptr) {
      ids.push_back(kWeights);
      pointers.push_back(held_weights_->data());
    }
    add(kBias, bias_, layout_.bias.offset, /*is_written=*/false);
    add(kAddend, addend_, layout_.addend.offset, /*is_written=*/false);
    add(kOutput, output_, layout_.output.offset, /*is_written=*/true);
    if (workspace != nullptr) {
      uses.push_back(MemoryUse::Of(workspace, plan_.workspace_bytes, /*is_written=*/true));
    }
    ONNXIFI_RETURN_IF_ERROR(library_.host().Put(queue, kDoing, uses, [&](CUstream stream) {
      return Execute(ids, pointers, workspace, stream);
    }));
    return behind_ == nullptr ? base::Ok() : behind_->Enqueue(queue, places);
  }

  bool ReadsAtRun(int read) const override { return read != 1 || held_weights_ == nullptr; }
  std::string Detail() const override {
    return std::string(layout_.is_channels_last ? "channels last" : "channels first") +
           (behind_ == nullptr ? ", results by the library" : ", results by a kernel of ours");
  }

 private:
  friend class ConvolutionBinder;
  static constexpr const char kDoing[] = "convolve";

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
  codegen::Services& services_;
  ConvolutionLayout layout_;
  Location image_, weights_, bias_, addend_, output_;
  // In the library's order; shared with the step's other kernels.
  std::shared_ptr<device::Allocation> held_weights_;
  Description::Plan plan_;
  int64_t sum_bytes_ = 0;  // before the workspace; 0: the library writes the step's results
  std::unique_ptr<device::BoundKernel> behind_;
};

// The constant weights of a step in an order that they do not have in memory, for all extents that
// its other operands may have. There are none once no kernel has them.
struct ReorderedWeights {
  std::mutex mutex;
  std::weak_ptr<device::Allocation> held;  // by kernels
};

// Makes one bound convolution.
class ConvolutionBinder {
 public:
  ConvolutionBinder(const Cudnn& library, const ContractForm& form, const BindRequest& request,
                    std::array<ReorderedWeights, 2>& weights)
      : library_(library), form_(form), request_(request), step_(request.step), weights_(weights) {}

  Result<std::unique_ptr<device::BoundKernel>> Bind() {
    Status bound = BindResultsOfLibrary();
    if (!bound.ok()) {
      if (bound.code() != Code::kUnsupportedOperator) return bound;
      ONNXIFI_RETURN_IF_ERROR(BindSums());
    }
    made_->image_ = Location::Of(step_.reads[0]);
    if (made_->layout_.are_weights_reordered) {
      ONNXIFI_RETURN_IF_ERROR(HoldWeights());
    } else {
      made_->weights_ = Location::Of(step_.reads[1]);
    }
    ONNXIFI_RETURN_IF_ERROR(request_.services.scratch.Reserve(Scratch::Aligned(made_->sum_bytes_) +
                                                              made_->plan_.workspace_bytes));
    return std::unique_ptr<device::BoundKernel>(std::move(made_));
  }

 private:
  Status LayOut(const ConvolutionOutput& output) {
    made_ = std::make_unique<BoundConvolution>(library_, request_.services);
    ONNXIFI_ASSIGN_OR_RETURN(made_->layout_, LayOutConvolution(step_, output));
    const BoundView& weights = step_.reads[1];
    if (made_->layout_.are_weights_reordered && ConstantOf(weights) == nullptr) {
      return Refuse("Weights that are no constant do not lie as the image does.");
    }
    return CheckRules(request_, Library::kCudnn, form_.type, made_->layout_.extents);
  }

  std::byte* ConstantOf(const BoundView& view) const {
    const auto buffer = static_cast<size_t>(view.buffer);
    return step_.program->buffers[buffer].kind == program::Buffer::Kind::kConstant
               ? request_.constants[buffer]
               : nullptr;
  }

  const BoundView* ReadOf(int read) const {
    return read < 0 ? nullptr : &step_.reads[static_cast<size_t>(read)];
  }

  // Sums, an addend, a bias, at least 0: no more is asked of the library.
  Status BindResultsOfLibrary() {
    if (!form_.epilogue || form_.epilogue->scale != 1) {
      return Refuse("The results are a kernel's.");
    }
    ContractEpilogue epilogue = *form_.epilogue;
    const BoundView& out = step_.writes[0];
    Status laid_out = LayOut({&out, ReadOf(epilogue.bias), ReadOf(epilogue.addend)});
    // Of two terms either may be the bias, and one alone, too.
    if (!laid_out.ok()) {
      std::swap(epilogue.bias, epilogue.addend);
      laid_out = LayOut({&out, ReadOf(epilogue.bias), ReadOf(epilogue.addend)});
    }
    ONNXIFI_RETURN_IF_ERROR(std::move(laid_out));
    ONNXIFI_ASSIGN_OR_RETURN(made_->plan_, Description(library_, form_, made_->layout_)
                                               .MakePlan({.type = out.type,
                                                          .has_addend = epilogue.addend >= 0,
                                                          .has_bias = epilogue.bias >= 0,
                                                          .is_rectified = epilogue.is_rectified}));
    made_->output_ = Location::Of(out);
    if (epilogue.bias >= 0) made_->bias_ = Location::Of(*ReadOf(epilogue.bias));
    if (epilogue.addend >= 0) made_->addend_ = Location::Of(*ReadOf(epilogue.addend));
    return base::Ok();
  }

  Status BindSums() {
    ONNXIFI_RETURN_IF_ERROR(LayOut({}));
    const BoundView sums = SumsOf(step_, made_->layout_.is_channels_last);
    ONNXIFI_ASSIGN_OR_RETURN(
        made_->plan_, Description(library_, form_, made_->layout_).MakePlan({.type = sums.type}));
    made_->output_ = Location::Of(sums);
    made_->sum_bytes_ = sums.buffer_bytes;
    ONNXIFI_ASSIGN_OR_RETURN(made_->behind_, BindResults(request_, sums));
    return base::Ok();
  }

  Status HoldWeights() {
    ReorderedWeights& weights = weights_[made_->layout_.is_channels_last ? 1 : 0];
    const std::lock_guard lock(weights.mutex);
    made_->held_weights_ = weights.held.lock();
    if (made_->held_weights_ == nullptr) {
      ONNXIFI_ASSIGN_OR_RETURN(made_->held_weights_, ReorderWeights());
      weights.held = made_->held_weights_;
    }
    return base::Ok();
  }

  // The weights in the image's order, copied by a kernel of ours.
  Result<std::shared_ptr<device::Allocation>> ReorderWeights() {
    const BoundView& from = step_.reads[1];
    tensor::Extents extents = {step_.domain[1]};
    for (const program::Dim& dim : step_.step->As<Contract>()->inner) {
      extents.push_back(step_.Number(dim));
    }
    const int64_t bytes = tensor::SizeBytes(from.type, tensor::ElementCount(extents));
    ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<device::Allocation> held,
                             request_.services.memory.Allocate(bytes));
    program::Program program;
    const program::Shape shape(extents.begin(), extents.end());
    const auto make_view = [&](int64_t offset, const std::vector<int64_t>& strides) {
      return program::View{
          .buffer = program.AddBuffer(
              {.kind = program::Buffer::Kind::kTemporary, .type = from.type, .shape = shape}),
          .type = from.type,
          .offset = offset,
          .strides = program::Dims(strides.begin(), strides.end())};
    };
    program::Step copy{.domain = shape, .reads = {}, .writes = {}, .body = program::Map{}};
    copy.reads.push_back(make_view(from.offset, from.strides));
    copy.writes.push_back(make_view(
        0, PackedStrides({extents.begin(), extents.end()}, made_->layout_.is_channels_last)));
    program::Map map;
    map.roots = {program::Load(program.exprs, from.type, 0).id()};
    copy.body = std::move(map);
    program.steps.push_back(std::move(copy));
    ONNXIFI_ASSIGN_OR_RETURN(
        const std::unique_ptr<const codegen::Recipe> recipe,
        codegen::SelectGenerated({program, program.steps[0]}, request_.capabilities));
    const std::unique_ptr<device::Kernel> kernel = recipe->Build(request_.services);
    ONNXIFI_ASSIGN_OR_RETURN(
        const std::unique_ptr<device::BoundKernel> bound,
        kernel->Bind(device::Bind(program, program.steps[0], /*dims=*/{}), {}));
    ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<device::Queue> queue,
                             library_.host().NewQueue());
    std::array<std::byte*, 2> addresses = {ConstantOf(from), held->data()};
    ONNXIFI_RETURN_IF_ERROR(bound->Enqueue(*queue, addresses));
    // The constant may be gone afterwards.
    ONNXIFI_RETURN_IF_ERROR(queue->Finish());
    return held;
  }

  const Cudnn& library_;
  const ContractForm& form_;
  const BindRequest& request_;
  const device::BoundStep& step_;
  std::array<ReorderedWeights, 2>& weights_;
  std::unique_ptr<BoundConvolution> made_;
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
  mutable std::array<ReorderedWeights, 2> weights_;  // with channels first, and last
};

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
