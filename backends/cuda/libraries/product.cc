// SPDX-License-Identifier: Apache-2.0
//
// Product: what the library is told.

#include "backends/cuda/libraries/product.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/cuda/libraries/library_call.h"
#include "backends/cuda/libraries/product_layout.h"

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Result;
using base::Status;
using device::BoundView;
using device::MemoryUse;
using program::Contract;
using tensor::ElementType;

Status Refuse(std::string sentence) {
  return Status(Code::kUnsupportedOperator, std::move(sentence));
}

lt::Type TypeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat16:
      return lt::kFloat16;
    case ElementType::kBfloat16:
      return lt::kBfloat16;
    case ElementType::kInt8:
      return lt::kInt8;
    case ElementType::kInt32:
      return lt::kInt32;
    default:
      return lt::kFloat32;
  }
}

lt::Compute ComputeOf(const ContractForm& form) {
  if (form.operand == ElementType::kInt8) return lt::kInInt32;
  return form.precision == tensor::Precision::kFloat32 ? lt::kInFloat32 : lt::kRoundedToTf32;
}

template <typename Object>
using Owned = std::unique_ptr<std::remove_pointer_t<Object>, int (*)(Object)>;

class BoundProduct final : public LibraryCall {
 public:
  BoundProduct(const CublasLt& library, codegen::Services& services)
      : LibraryCall(library.host(), services), library_(library) {}

 private:
  friend class ProductBinder;
  static constexpr const char kDoing[] = "multiply";

  Status Put(device::Queue& queue, device::Addresses places, std::span<const MemoryUse> uses,
             std::byte* workspace) const override {
    for (const ProductLayout::Call& call : layout_.calls) {
      ONNXIFI_RETURN_IF_ERROR(host_.Put(queue, kDoing, uses, [&](CUstream stream) {
        return Multiply(call, places, workspace, stream);
      }));
    }
    return base::Ok();
  }

  Status Multiply(const ProductLayout::Call& call, device::Addresses addresses,
                  std::byte* workspace, CUstream stream) const {
    const CublasLt::Functions& functions = library_.functions();
    if (bias_.is_there()) {
      const void* const bias = bias_.In(addresses, layout_.bias_offset);
      ONNXIFI_RETURN_IF_ERROR(CublasLt::ToStatus(
          functions.MatmulDescSetAttribute(product_.get(), lt::kBiasPointer, &bias, sizeof(bias)),
          "take a bias"));
    }
    std::byte* const d = output_.In(addresses, layout_.d.offset + call.d);
    const bool has_addend = addend_.is_there();
    const std::byte* const c =
        has_addend ? addend_.In(addresses, layout_.addend.offset + call.addend) : d;
    const float one = 1, zero = 0;
    const int32_t integer_one = 1, integer_zero = 0;
    const void* const alpha = is_integer_ ? static_cast<const void*>(&integer_one) : &scale_;
    const void* const beta = is_integer_  ? static_cast<const void*>(&integer_zero)
                             : has_addend ? &one
                                          : &zero;
    return CublasLt::ToStatus(
        functions.Matmul(library_.handle(), product_.get(), alpha,
                         first_.In(addresses, layout_.a.offset + call.a), a_layout_.get(),
                         second_.In(addresses, layout_.b.offset + call.b), b_layout_.get(), beta, c,
                         c_layout_.get(), d, d_layout_.get(), &algorithm_, workspace,
                         static_cast<size_t>(workspace_bytes_), stream),
        kDoing);
  }

  const CublasLt& library_;
  ProductLayout layout_;
  bool is_integer_ = false;
  float scale_ = 1;
  Owned<lt::Product> product_{nullptr, nullptr};
  Owned<lt::Layout> a_layout_{nullptr, nullptr}, b_layout_{nullptr, nullptr},
      c_layout_{nullptr, nullptr}, d_layout_{nullptr, nullptr};
  lt::Algorithm algorithm_ = {};
};

class ProductBinder final : public LibraryBinder {
 public:
  ProductBinder(const CublasLt& library, const ContractForm& form, const BindRequest& request)
      : LibraryBinder(Library::kCublasLt, form, request), library_(library) {}

 private:
  Status CheckEpilogue(const ContractEpilogue& epilogue) const override {
    // To a narrower output it rounds before it adds, and its Relu makes zero of NaN, both for some
    // extents alone.
    const bool has_more = epilogue.bias >= 0 || epilogue.addend >= 0 || epilogue.is_rectified;
    return form_.is_narrowed && has_more ? Refuse("The library would round twice.") : base::Ok();
  }

  std::unique_ptr<LibraryCall> NewCall() override {
    auto call = std::make_unique<BoundProduct>(library_, request_.services);
    made_ = call.get();
    made_->is_integer_ = form_.operand == ElementType::kInt8;
    return call;
  }

  Result<ProductExtents> LayOut(const LibraryResults& results) override {
    LibraryResults written = results;
    // As dense as the domain.
    const BoundView sums = Sums();
    if (written.out == nullptr) written.out = &sums;
    ONNXIFI_ASSIGN_OR_RETURN(made_->layout_, LayOutProduct(step_, written));
    const size_t first = made_->layout_.is_a_read_1 ? 1 : 0;
    made_->first_ = Location::Of(step_.reads[first]);
    made_->second_ = Location::Of(step_.reads[1 - first]);
    return made_->layout_.extents;
  }

  BoundView Sums() const override { return SumsOf(step_); }

  // Asks for the best algorithm.
  Status Describe(const LibraryResults& results) override {
    made_->scale_ = results.scale;
    const CublasLt::Functions& functions = library_.functions();
    const bool is_integer = made_->is_integer_;
    const ElementType out_type = results.out == nullptr ? Sums().type : results.out->type;
    lt::Product product = nullptr;
    ONNXIFI_RETURN_IF_ERROR(
        CublasLt::ToStatus(functions.MatmulDescCreate(&product, ComputeOf(form_),
                                                      is_integer ? lt::kInt32 : lt::kFloat32),
                           "describe a product"));
    made_->product_ = {product, functions.MatmulDescDestroy};
    const auto set = [&](auto* function, auto* object, int attribute, const auto& value) {
      return CublasLt::ToStatus(function(object, attribute, &value, sizeof(value)),
                                "describe a product");
    };
    const ProductLayout& layout = made_->layout_;
    const auto describe = [&](int attribute, const auto& value) {
      return set(functions.MatmulDescSetAttribute, product, attribute, value);
    };
    ONNXIFI_RETURN_IF_ERROR(describe(lt::kTransposeA, int32_t{layout.a.is_transposed ? 1 : 0}));
    ONNXIFI_RETURN_IF_ERROR(describe(lt::kTransposeB, int32_t{layout.b.is_transposed ? 1 : 0}));
    const bool has_bias = results.bias != nullptr;
    if (has_bias || results.is_rectified) {
      const uint32_t epilogue = !has_bias              ? lt::kRelu
                                : results.is_rectified ? lt::kReluBias
                                                       : lt::kBias;
      ONNXIFI_RETURN_IF_ERROR(describe(lt::kEpilogue, epilogue));
    }
    if (has_bias) {
      // Algorithms are chosen by its alignment.
      const uint64_t aligned = Alignment({.offset = layout.bias_offset}, nullptr, out_type);
      ONNXIFI_RETURN_IF_ERROR(describe(lt::kBiasPointer, aligned));
    }
    const auto lay_out = [&](Owned<lt::Layout>& owned, const ProductLayout::Matrix& matrix,
                             ElementType type) -> Status {
      lt::Layout made = nullptr;
      ONNXIFI_RETURN_IF_ERROR(CublasLt::ToStatus(
          functions.MatrixLayoutCreate(&made, TypeOf(type), static_cast<uint64_t>(matrix.rows),
                                       static_cast<uint64_t>(matrix.columns), matrix.leading),
          "lay out a matrix"));
      owned = {made, functions.MatrixLayoutDestroy};
      ONNXIFI_RETURN_IF_ERROR(set(functions.MatrixLayoutSetAttribute, made, lt::kBatchCount,
                                  static_cast<int32_t>(layout.batches)));
      return set(functions.MatrixLayoutSetAttribute, made, lt::kBatchStride, matrix.batch_stride);
    };
    if (layout.batches > INT32_MAX) return Refuse("There are too many batches.");
    ONNXIFI_RETURN_IF_ERROR(lay_out(made_->a_layout_, layout.a, form_.operand));
    ONNXIFI_RETURN_IF_ERROR(lay_out(made_->b_layout_, layout.b, form_.operand));
    const bool has_addend = results.addend != nullptr;
    ONNXIFI_RETURN_IF_ERROR(
        lay_out(made_->c_layout_, has_addend ? layout.addend : layout.d, out_type));
    ONNXIFI_RETURN_IF_ERROR(lay_out(made_->d_layout_, layout.d, out_type));

    lt::Preference preference = nullptr;
    ONNXIFI_RETURN_IF_ERROR(
        CublasLt::ToStatus(functions.MatmulPreferenceCreate(&preference), "have a preference"));
    const Owned<lt::Preference> owned_preference(preference, functions.MatmulPreferenceDestroy);
    const auto prefer = [&](int attribute, const auto& value) {
      return set(functions.MatmulPreferenceSetAttribute, preference, attribute, value);
    };
    ONNXIFI_RETURN_IF_ERROR(prefer(lt::kMaxWorkspaceBytes, kMaxWorkspaceBytes));
    // Parts of the depth are never added up in a type narrower than the sum's.
    const uint32_t in_place = tensor::BitWidth(out_type) == 32 ? uint32_t{lt::kInPlace} : 0;
    ONNXIFI_RETURN_IF_ERROR(prefer(lt::kReductionSchemes, in_place | lt::kInComputeType));
    const ProductLayout::Matrix& c = has_addend ? layout.addend : layout.d;
    ONNXIFI_RETURN_IF_ERROR(
        prefer(lt::kMinAlignmentA, Alignment(layout.a, &ProductLayout::Call::a, form_.operand)));
    ONNXIFI_RETURN_IF_ERROR(
        prefer(lt::kMinAlignmentB, Alignment(layout.b, &ProductLayout::Call::b, form_.operand)));
    ONNXIFI_RETURN_IF_ERROR(
        prefer(lt::kMinAlignmentC,
               Alignment(c, has_addend ? &ProductLayout::Call::addend : &ProductLayout::Call::d,
                         out_type)));
    ONNXIFI_RETURN_IF_ERROR(
        prefer(lt::kMinAlignmentD, Alignment(layout.d, &ProductLayout::Call::d, out_type)));

    lt::Candidate best = {};
    int found = 0;
    constexpr const char kAsking[] = "choose an algorithm";
    ONNXIFI_RETURN_IF_ERROR(library_.host().Do(kAsking, [&] {
      return CublasLt::ToStatus(
          functions.MatmulAlgoGetHeuristic(library_.handle(), product, made_->a_layout_.get(),
                                           made_->b_layout_.get(), made_->c_layout_.get(),
                                           made_->d_layout_.get(), preference, 1, &best, &found),
          kAsking);
    }));
    if (found == 0 || best.state != lt::kSuccess) {
      return CublasLt::ToStatus(found == 0 ? lt::kNotSupported : best.state, kAsking);
    }
    made_->algorithm_ = best.algorithm;
    made_->workspace_bytes_ = static_cast<int64_t>(best.workspace_bytes);
    return base::Ok();
  }

  // Of every address that a matrix begins at. Buffers lie at multiples of 16 bytes or more.
  uint32_t Alignment(const ProductLayout::Matrix& matrix, int64_t ProductLayout::Call::*of_call,
                     ElementType type) const {
    uint64_t bits = 16;
    for (const ProductLayout::Call& call : made_->layout_.calls) {
      const int64_t more = of_call == nullptr ? 0 : call.*of_call;
      bits |= static_cast<uint64_t>((matrix.offset + more) * tensor::BitWidth(type) / 8);
    }
    return uint32_t{1} << std::countr_zero(bits);
  }

  const CublasLt& library_;
  BoundProduct* made_ = nullptr;
};

class Product final : public Candidate {
 public:
  Product(const CublasLt& library, const ContractForm& form) : library_(library), form_(form) {}
  std::string_view name() const override { return "cuBLASLt"; }
  std::string version() const override { return std::to_string(library_.version()); }
  Result<std::unique_ptr<device::BoundKernel>> Bind(const BindRequest& request) const override {
    return ProductBinder(library_, form_, request).Bind();
  }

 private:
  const CublasLt& library_;
  const ContractForm form_;
};

}  // namespace

Status CheckProduct(const Contract& contract) {
  if (contract.form == Contract::Form::kMatMul) return base::Ok();
  const auto is = [](const program::Dim& dim, int64_t number) {
    return dim == program::Dim(number);
  };
  if (contract.form != Contract::Form::kConv ||
      !std::ranges::all_of(std::span(contract.inner).subspan(1),
                           [&](const program::Dim& taps) { return is(taps, 1); }) ||
      !std::ranges::all_of(contract.strides, [](int64_t stride) { return stride == 1; }) ||
      !std::ranges::all_of(contract.pads_begin, [&](const auto& pad) { return is(pad, 0); })) {
    return Refuse(
        "cuBLASLt has products and convolutions of 1 tap, stride 1 and no padding alone.");
  }
  return base::Ok();
}

std::unique_ptr<const Candidate> MakeProduct(const CublasLt& library, const ContractForm& form) {
  return std::make_unique<Product>(library, form);
}

}  // namespace onnxifi::cuda
