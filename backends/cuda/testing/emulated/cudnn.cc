// SPDX-License-Identifier: Apache-2.0
//
// An emulated cuDNN: libcudnn.so.9, whose descriptors hold what they are told until they are
// finalized and must then fit, and whose plans compute what was described by plain loops in
// float64, in the emulated driver's streams and captures. Of its engines some round, or take more
// memory, or are never the same; who takes one of those gets other results. What the real one would
// refuse, or take at the caller's peril, is a bad parameter here, with a sentence.

#include <cuda.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/cuda/libraries/cudnn_functions.h"
#include "backends/cuda/testing/emulated/control.h"
#include "backends/cuda/testing/emulated/library.h"

namespace onnxifi::cuda::dnn {

struct HandleObject {
  CUstream stream = nullptr;
};

struct Tensor {
  int type = 0;
  std::vector<int64_t> extents, strides;
  int64_t id = 0, alignment = 0;
  bool is_virtual = false;
  auto operator<=>(const Tensor&) const = default;

  // Elements from the first to the last.
  int64_t Span() const {
    int64_t span = 1;
    for (size_t axis = 0; axis < extents.size(); ++axis)
      span += (extents[axis] - 1) * strides[axis];
    return span;
  }
};

// A graph taken apart; what makes up a launch.
struct Work {
  Tensor image, weights, output, bias, addend;
  std::vector<int64_t> strides, dilations, before;
  bool has_addend = false, has_bias = false, is_rectified = false;
  bool is_unknown = false;  // the library has no engine for it
  int fraction_bits = 23;
  double added = 0;
  uintptr_t image_at = 0, weights_at = 0, output_at = 0, bias_at = 0, addend_at = 0;
  uintptr_t workspace_at = 0;
  int64_t workspace_bytes = 0;
  auto operator<=>(const Work&) const = default;
};

// An engine of the library's, as a plan has it.
struct EngineObject {
  std::vector<int> notes;
  int fraction_bits = 23;  // to which float32 is rounded
  int64_t workspace_bytes = 0;
  double added = 0;  // to every sum
};

struct DescriptorObject {
  int kind = 0;
  bool is_final = false;
  struct Value {
    int type = 0;
    int64_t count = 0;
    std::vector<std::byte> bytes;
  };
  std::map<int, Value> values;
  // Of an engine, its configuration, and a plan.
  EngineObject engine;
  // Of these and of a graph, which may be gone by then.
  Work work;
};

}  // namespace onnxifi::cuda::dnn

namespace {

using namespace onnxifi::cuda;
using dnn::Descriptor;
using dnn::Tensor;
using dnn::Work;

constexpr size_t kVersion = 91900;

LibraryState& S() {
  static auto* const state = new LibraryState("cuDNN", dnn::kBadParameter);
  return *state;
}
int Misuse(std::string sentence) { return S().Misuse(std::move(sentence)); }
bool IsLive(const void* object) { return S().IsLive(object); }

#define EMULATED_CALL(name) \
  if (int failed = 0; S().Fails(name, &failed)) return failed

bool HasContext() {
  CUcontext context = nullptr;
  return cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr;
}

size_t BytesOf(int attribute_type) {
  switch (attribute_type) {
    case dnn::kOfBoolean:
      return sizeof(bool);
    case dnn::kOfInt64:
    case dnn::kOfHandle:
    case dnn::kOfPointer:
    case dnn::kOfDescriptor:
      return 8;
    default:
      return 4;
  }
}

// The attributes that each kind has to be told: their type, and whether one or a list. What else it
// may be told has `is_optional`.
struct Wanted {
  int kind, attribute, type;
  bool is_list = false;
  bool is_optional = false;
};
constexpr Wanted kWanted[] = {
    {dnn::kTensor, dnn::kTensorType, dnn::kOfDataType},
    {dnn::kTensor, dnn::kTensorExtents, dnn::kOfInt64, true},
    {dnn::kTensor, dnn::kTensorStrides, dnn::kOfInt64, true},
    {dnn::kTensor, dnn::kTensorId, dnn::kOfInt64},
    {dnn::kTensor, dnn::kTensorAlignment, dnn::kOfInt64},
    {dnn::kTensor, dnn::kTensorIsVirtual, dnn::kOfBoolean, false, true},
    {dnn::kConvolution, dnn::kConvolutionPrecision, dnn::kOfDataType},
    {dnn::kConvolution, dnn::kConvolutionMode, dnn::kOfConvolutionMode},
    {dnn::kConvolution, dnn::kConvolutionSpatialAxes, dnn::kOfInt64},
    {dnn::kConvolution, dnn::kConvolutionStrides, dnn::kOfInt64, true},
    {dnn::kConvolution, dnn::kConvolutionDilations, dnn::kOfInt64, true},
    {dnn::kConvolution, dnn::kConvolutionPadsBefore, dnn::kOfInt64, true},
    {dnn::kConvolution, dnn::kConvolutionPadsAfter, dnn::kOfInt64, true},
    {dnn::kForward, dnn::kForwardConvolution, dnn::kOfDescriptor},
    {dnn::kForward, dnn::kForwardImage, dnn::kOfDescriptor},
    {dnn::kForward, dnn::kForwardWeights, dnn::kOfDescriptor},
    {dnn::kForward, dnn::kForwardOutput, dnn::kOfDescriptor},
    {dnn::kForward, dnn::kForwardAlpha, dnn::kOfFloat},
    {dnn::kForward, dnn::kForwardBeta, dnn::kOfFloat},
    {dnn::kPointwise, dnn::kPointwiseMode, dnn::kOfPointwiseMode},
    {dnn::kPointwise, dnn::kPointwisePrecision, dnn::kOfDataType},
    {dnn::kPointwise, dnn::kPointwiseNan, dnn::kOfNanPropagation, false, true},
    {dnn::kPointwiseOperation, dnn::kOperationPointwise, dnn::kOfDescriptor},
    {dnn::kPointwiseOperation, dnn::kOperationInput, dnn::kOfDescriptor},
    {dnn::kPointwiseOperation, dnn::kOperationSecondInput, dnn::kOfDescriptor, false, true},
    {dnn::kPointwiseOperation, dnn::kOperationOutput, dnn::kOfDescriptor},
    {dnn::kGraph, dnn::kGraphHandle, dnn::kOfHandle},
    {dnn::kGraph, dnn::kGraphOperations, dnn::kOfDescriptor, true},
    {dnn::kHeuristic, dnn::kHeuristicGraph, dnn::kOfDescriptor},
    {dnn::kHeuristic, dnn::kHeuristicMode, dnn::kOfHeuristicMode},
    {dnn::kPlan, dnn::kPlanHandle, dnn::kOfHandle},
    {dnn::kPlan, dnn::kPlanConfig, dnn::kOfDescriptor},
    {dnn::kVariantPack, dnn::kPackIds, dnn::kOfInt64, true},
    {dnn::kVariantPack, dnn::kPackPointers, dnn::kOfPointer, true},
    {dnn::kVariantPack, dnn::kPackWorkspace, dnn::kOfPointer},
};

template <typename T>
T One(const dnn::DescriptorObject& descriptor, int attribute) {
  T value{};
  const auto found = descriptor.values.find(attribute);
  if (found != descriptor.values.end()) {
    std::memcpy(&value, found->second.bytes.data(), sizeof(value));
  }
  return value;
}

template <typename T>
std::vector<T> List(const dnn::DescriptorObject& descriptor, int attribute) {
  const auto found = descriptor.values.find(attribute);
  if (found == descriptor.values.end()) return {};
  std::vector<T> values(static_cast<size_t>(found->second.count));
  std::memcpy(values.data(), found->second.bytes.data(), found->second.bytes.size());
  return values;
}

Tensor ReadTensor(const dnn::DescriptorObject& descriptor) {
  return {One<int>(descriptor, dnn::kTensorType),
          List<int64_t>(descriptor, dnn::kTensorExtents),
          List<int64_t>(descriptor, dnn::kTensorStrides),
          One<int64_t>(descriptor, dnn::kTensorId),
          One<int64_t>(descriptor, dnn::kTensorAlignment),
          One<bool>(descriptor, dnn::kTensorIsVirtual)};
}

Number TypeOf(int type) {
  switch (type) {
    case dnn::kFloat16:
      return Number::kFloat16;
    case dnn::kBfloat16:
      return Number::kBfloat16;
    default:
      return Number::kFloat32;
  }
}

bool IsPacked(const Tensor& tensor, bool is_channels_last) {
  int64_t stride = 1;
  const auto fits = [&](size_t axis) {
    const bool is_so = tensor.strides[axis] == stride;
    stride *= tensor.extents[axis];
    return is_so;
  };
  if (is_channels_last && !fits(1)) return false;
  for (size_t axis = tensor.extents.size(); axis-- > 0;) {
    if ((axis != 1 || !is_channels_last) && !fits(axis)) return false;
  }
  return true;
}

// Why it is none; empty if it is one.
std::string Read(const dnn::DescriptorObject& graph, Work& work) {
  std::set<int64_t> ids;
  Tensor last;
  bool is_first = true;
  for (const Descriptor operation : List<Descriptor>(graph, dnn::kGraphOperations)) {
    const auto tensor = [&](int attribute) {
      return ReadTensor(*One<Descriptor>(*operation, attribute));
    };
    if (is_first != (operation->kind == dnn::kForward)) return "A graph has not one convolution.";
    Tensor to;
    if (is_first) {
      const Descriptor convolution = One<Descriptor>(*operation, dnn::kForwardConvolution);
      work.image = tensor(dnn::kForwardImage);
      work.weights = tensor(dnn::kForwardWeights);
      to = tensor(dnn::kForwardOutput);
      work.strides = List<int64_t>(*convolution, dnn::kConvolutionStrides);
      work.dilations = List<int64_t>(*convolution, dnn::kConvolutionDilations);
      work.before = List<int64_t>(*convolution, dnn::kConvolutionPadsBefore);
      const auto after = List<int64_t>(*convolution, dnn::kConvolutionPadsAfter);
      const size_t axes = work.strides.size();
      if (One<int>(*convolution, dnn::kConvolutionPrecision) != dnn::kFloat32 ||
          One<int>(*convolution, dnn::kConvolutionMode) != dnn::kCrossCorrelation ||
          One<float>(*operation, dnn::kForwardAlpha) != 1 ||
          One<float>(*operation, dnn::kForwardBeta) != 0) {
        return "A convolution is not computed in float32, or not as it is.";
      }
      if (axes < 2 || axes > 3 || work.image.extents.size() != axes + 2 ||
          One<int64_t>(*convolution, dnn::kConvolutionSpatialAxes) != static_cast<int64_t>(axes)) {
        return "Spatial axes are not 2 or 3.";
      }
      if (work.image.type != work.weights.type) return "The operands have two types.";
      const int64_t channels = work.weights.extents[1];
      const int64_t groups = work.image.extents[1] / std::max<int64_t>(channels, 1);
      if (groups * channels != work.image.extents[1] || to.extents[1] != work.weights.extents[0] ||
          to.extents[1] % groups != 0 || to.extents[0] != work.image.extents[0]) {
        return "The channels do not fit.";
      }
      for (size_t axis = 0; axis < axes; ++axis) {
        const int64_t reach = (work.weights.extents[axis + 2] - 1) * work.dilations[axis] + 1;
        const int64_t room = work.image.extents[axis + 2] + work.before[axis] + after[axis] - reach;
        if (work.before[axis] < 0 || after[axis] < 0 || room < 0 ||
            to.extents[axis + 2] != room / work.strides[axis] + 1) {
          return "The output has other extents.";
        }
      }
    } else {
      const Descriptor pointwise = One<Descriptor>(*operation, dnn::kOperationPointwise);
      if (tensor(dnn::kOperationInput).id != last.id || !last.is_virtual) {
        return "An operation does not follow the one before.";
      }
      if (One<int>(*pointwise, dnn::kPointwisePrecision) != dnn::kFloat32) {
        return "An epilogue is not computed in float32.";
      }
      to = tensor(dnn::kOperationOutput);
      if (to.extents != last.extents || to.strides != last.strides) return "An output changes.";
      switch (One<int>(*pointwise, dnn::kPointwiseMode)) {
        case dnn::kAdd: {
          const Tensor term = tensor(dnn::kOperationSecondInput);
          std::vector<int64_t> extents(to.extents.size(), 1);
          extents[1] = to.extents[1];
          if (work.has_bias || work.is_rectified) return "A term comes too late.";
          if (term.extents == to.extents && !work.has_addend) {
            if (term.strides != to.strides) return "An addend does not lie as the output does.";
            work.addend = term;
            work.has_addend = true;
          } else if (term.extents == extents && term.strides[1] == 1) {
            work.bias = term;
            work.has_bias = true;
          } else {
            return "A term is neither a bias nor an addend.";
          }
          if (!ids.insert(term.id).second) return "An ID is another's.";
          break;
        }
        case dnn::kRelu:
          if (work.is_rectified || One<int>(*pointwise, dnn::kPointwiseNan) != dnn::kPropagateNan) {
            return "Relu is there twice, or makes zeros of NaN.";
          }
          work.is_rectified = true;
          break;
        default:
          return "An operation is not known.";
      }
    }
    if (to.is_virtual && to.type != dnn::kFloat32) return "Sums are narrowed on the way.";
    if (!ids.insert(to.id).second) return "An ID is another's.";
    last = to;
    is_first = false;
  }
  if (is_first || last.is_virtual) return "A graph has no output.";
  work.output = last;
  if (!ids.insert(work.image.id).second || !ids.insert(work.weights.id).second) {
    return "An ID is another's.";
  }
  for (const Tensor* const tensor : {&work.image, &work.weights, &work.output}) {
    if (tensor->extents.size() != work.image.extents.size()) return "Ranks differ.";
    if (IsPacked(*tensor, false) == IsPacked(*tensor, true)) continue;
    for (const Tensor* const other : {&work.image, &work.weights, &work.output}) {
      if (IsPacked(*other, false) != IsPacked(*other, true) &&
          IsPacked(*other, true) != IsPacked(*tensor, true)) {
        return "Tensors have their channels in different places.";
      }
    }
  }
  if (work.output.type != work.image.type && work.output.type != dnn::kFloat32) {
    return "The output has a third type.";
  }
  // So the engines of cuDNN 9.19 are for an H100 that was described to it; none has run there.
  const bool is_widened = work.output.type != work.image.type;
  work.is_unknown = is_widened || (!work.has_bias && (work.has_addend || work.is_rectified));
  return std::string();
}

// In the order of how fast the library thinks them. Of those that follow the first each is wrong to
// take in its own way, but for the last.
std::vector<dnn::EngineObject> EnginesOf(const Work& work, int mode) {
  if (work.is_unknown) return {};
  // Of one channel the table has many, and nothing else works.
  const bool has_one_channel = work.image.extents[1] == 1;
  if (mode == dnn::kFallback) {
    std::vector<dnn::EngineObject> slow = {{.notes = {dnn::kNotDeterministic}, .added = 1}};
    if (!has_one_channel) slow.emplace_back();
    return slow;
  }
  std::vector<dnn::EngineObject> engines = {
      {.notes = {dnn::kNotDeterministic, dnn::kStrictNan}, .added = 1},
      {.notes = {dnn::kWinograd, dnn::kWinogradOf6}, .added = 2},
      {.notes = {dnn::kFft}, .added = 3},
      {.notes = {dnn::kTensorCores, dnn::kNarrowsSums}, .added = 4},
      {.notes = {}, .workspace_bytes = (int64_t{64} << 20) + 1, .added = 5}};
  if (has_one_channel) engines.resize(20, engines.front());
  if (work.image.type == dnn::kFloat32) {
    engines.push_back({.notes = {dnn::kTensorCores, dnn::kNarrowsInputs}, .added = 6});
    engines.push_back({.notes = {dnn::kTensorCores}, .fraction_bits = 10});
  } else {
    engines.push_back({.notes = {dnn::kNarrowsInputs}, .added = 6});
    engines.push_back({.notes = {dnn::kTensorCores}, .workspace_bytes = 1000});
  }
  const int64_t workspace_bytes = work.output.extents[1] % 3 == 0 ? 0 : 1000;
  engines.push_back({.notes = {dnn::kStrictNan}, .workspace_bytes = workspace_bytes});
  return engines;
}

void Convolve(void* data) {
  const Work& work = *static_cast<const Work*>(data);
  // Nothing of anybody's lies there, before the convolution and behind it.
  const auto fill_workspace = [&] {
    std::memset(reinterpret_cast<void*>(work.workspace_at), 0xa5,
                static_cast<size_t>(work.workspace_bytes));
  };
  fill_workspace();
  const auto load = [&](uintptr_t base, const Tensor& tensor, int64_t element) {
    const double value = Load(base, TypeOf(tensor.type), element);
    return work.fraction_bits < 23 ? Rounded(static_cast<float>(value), work.fraction_bits) : value;
  };
  const size_t axes = work.strides.size();
  const auto next = [](std::vector<int64_t>& at, const std::vector<int64_t>& extents) {
    for (size_t axis = at.size(); axis-- > 0;) {
      if (++at[axis] < extents[axis]) return true;
      at[axis] = 0;
    }
    return false;
  };
  const int64_t channels = work.weights.extents[1];
  const int64_t groups = work.image.extents[1] / channels;
  std::vector<int64_t> at(axes + 2, 0);
  do {
    double sum = 0;
    const int64_t group = at[1] / (work.output.extents[1] / groups);
    std::vector<int64_t> tap(work.weights.extents.begin() + 1, work.weights.extents.end());
    const std::vector<int64_t> taps = tap;
    std::fill(tap.begin(), tap.end(), 0);
    do {
      int64_t in_image =
          at[0] * work.image.strides[0] + (group * channels + tap[0]) * work.image.strides[1];
      int64_t in_weights = at[1] * work.weights.strides[0] + tap[0] * work.weights.strides[1];
      bool is_inside = true;
      for (size_t axis = 0; axis < axes; ++axis) {
        const int64_t place = at[axis + 2] * work.strides[axis] - work.before[axis] +
                              tap[axis + 1] * work.dilations[axis];
        is_inside = is_inside && place >= 0 && place < work.image.extents[axis + 2];
        in_image += place * work.image.strides[axis + 2];
        in_weights += tap[axis + 1] * work.weights.strides[axis + 2];
      }
      if (is_inside) {
        sum += load(work.image_at, work.image, in_image) *
               load(work.weights_at, work.weights, in_weights);
      }
    } while (next(tap, taps));
    double value = sum + work.added;
    if (work.has_addend) {
      int64_t in_addend = 0;
      for (size_t axis = 0; axis < at.size(); ++axis)
        in_addend += at[axis] * work.addend.strides[axis];
      value += Load(work.addend_at, TypeOf(work.addend.type), in_addend);
    }
    if (work.has_bias) value += Load(work.bias_at, TypeOf(work.bias.type), at[1]);
    if (work.is_rectified && value < 0) value = 0;
    int64_t in_output = 0;
    for (size_t axis = 0; axis < at.size(); ++axis)
      in_output += at[axis] * work.output.strides[axis];
    Store(work.output_at, TypeOf(work.output.type), in_output, value);
  } while (next(at, work.output.extents));
  fill_workspace();
}

int CheckFinal(Descriptor descriptor) {
  for (const Wanted& wanted : kWanted) {
    if (wanted.kind != descriptor->kind) continue;
    const auto found = descriptor->values.find(wanted.attribute);
    if (found == descriptor->values.end()) {
      if (wanted.is_optional) continue;
      return Misuse("A descriptor was not told attribute " + std::to_string(wanted.attribute) +
                    ".");
    }
    if (wanted.type != dnn::kOfDescriptor) continue;
    for (const Descriptor part : List<Descriptor>(*descriptor, wanted.attribute)) {
      if (!IsLive(part) || !part->is_final) return Misuse("A part of a descriptor is not final.");
    }
  }
  switch (descriptor->kind) {
    case dnn::kTensor: {
      const Tensor tensor = ReadTensor(*descriptor);
      const bool is_known = tensor.extents.size() == tensor.strides.size() &&
                            tensor.extents.size() >= 4 && tensor.extents.size() <= 5 &&
                            std::ranges::all_of(tensor.extents, [](int64_t n) { return n > 0; });
      if (!is_known || (!IsPacked(tensor, false) && !IsPacked(tensor, true))) {
        return Misuse("A tensor has no 2 or 3 spatial axes, or is not packed.");
      }
      return dnn::kSuccess;
    }
    case dnn::kGraph: {
      if (!HasContext()) return dnn::kNotInitialized;
      const std::string fault = Read(*descriptor, descriptor->work);
      if (!fault.empty()) return Misuse(fault);
      return dnn::kSuccess;
    }
    case dnn::kHeuristic:
      descriptor->work = One<Descriptor>(*descriptor, dnn::kHeuristicGraph)->work;
      return dnn::kSuccess;
    case dnn::kPlan: {
      const Descriptor config = One<Descriptor>(*descriptor, dnn::kPlanConfig);
      descriptor->engine = config->engine;
      descriptor->work = config->work;
      return dnn::kSuccess;
    }
    case dnn::kVariantPack:
      if (List<int64_t>(*descriptor, dnn::kPackIds).size() !=
          List<void*>(*descriptor, dnn::kPackPointers).size()) {
        return Misuse("A pack has not as many tensors as pointers.");
      }
      return dnn::kSuccess;
    default:
      return dnn::kSuccess;
  }
}

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return kVersion; }

int cudnnCreate(dnn::Handle* made) {
  EMULATED_CALL("Create");
  if (!HasContext()) return dnn::kNotInitialized;
  return S().Make(made, dnn::HandleObject());
}
int cudnnDestroy(dnn::Handle handle) {
  EMULATED_CALL("Destroy");
  return S().Destroy(handle);
}
int cudnnSetStream(dnn::Handle handle, CUstream stream) {
  EMULATED_CALL("SetStream");
  if (!IsLive(handle)) return Misuse("A handle is none.");
  handle->stream = stream;
  return dnn::kSuccess;
}

int cudnnBackendCreateDescriptor(int kind, Descriptor* made) {
  EMULATED_CALL("BackendCreateDescriptor");
  return S().Make(made, dnn::DescriptorObject{.kind = kind});
}
int cudnnBackendDestroyDescriptor(Descriptor descriptor) {
  EMULATED_CALL("BackendDestroyDescriptor");
  if (IsLive(descriptor) && descriptor->kind == dnn::kPlan && !HasContext()) {
    return Misuse("A plan is destroyed without its context.");
  }
  return S().Destroy(descriptor);
}
int cudnnBackendSetAttribute(Descriptor descriptor, int attribute, int type, int64_t count,
                             const void* elements) {
  EMULATED_CALL("BackendSetAttribute");
  if (!IsLive(descriptor) || descriptor->is_final || elements == nullptr || count < 1) {
    return Misuse("An attribute is set of what is none, or final, or to nothing.");
  }
  const auto* const wanted = std::ranges::find_if(kWanted, [&](const Wanted& of) {
    return of.kind == descriptor->kind && of.attribute == attribute;
  });
  if (wanted == std::end(kWanted) || wanted->type != type || (!wanted->is_list && count != 1)) {
    return Misuse("Attribute " + std::to_string(attribute) + " of descriptor " +
                  std::to_string(descriptor->kind) + " has no such type or count.");
  }
  dnn::DescriptorObject::Value& value = descriptor->values[attribute];
  value = {type, count, {}};
  value.bytes.resize(BytesOf(type) * static_cast<size_t>(count));
  std::memcpy(value.bytes.data(), elements, value.bytes.size());
  return dnn::kSuccess;
}
int cudnnBackendFinalize(Descriptor descriptor) {
  EMULATED_CALL("BackendFinalize");
  if (!IsLive(descriptor) || descriptor->is_final) return Misuse("A descriptor is final already.");
  const int result = CheckFinal(descriptor);
  descriptor->is_final = result == dnn::kSuccess;
  return result;
}
int cudnnBackendGetAttribute(Descriptor descriptor, int attribute, int type, int64_t wanted,
                             int64_t* count, void* elements) {
  EMULATED_CALL("BackendGetAttribute");
  if (!IsLive(descriptor) || !descriptor->is_final || count == nullptr) {
    return Misuse("An attribute is asked of what is not final.");
  }
  const auto give = [&](const auto& values) {
    *count = static_cast<int64_t>(values.size());
    const auto given = static_cast<size_t>(std::min(wanted, *count));
    std::copy_n(values.begin(), given,
                static_cast<std::remove_cvref_t<decltype(values[0])>*>(elements));
    return int{dnn::kSuccess};
  };
  if (descriptor->kind == dnn::kHeuristic && attribute == dnn::kHeuristicResults &&
      type == dnn::kOfDescriptor) {
    const auto engines = EnginesOf(descriptor->work, One<int>(*descriptor, dnn::kHeuristicMode));
    *count = static_cast<int64_t>(engines.size());
    if (wanted == 0) return dnn::kSuccess;
    *count = std::min(*count, wanted);
    for (int64_t k = 0; k < *count; ++k) {
      const Descriptor config = static_cast<Descriptor*>(elements)[k];
      if (!IsLive(config) || config->kind != dnn::kEngineConfig) {
        return Misuse("A result has no place.");
      }
      config->engine = engines[static_cast<size_t>(k)];
      config->work = descriptor->work;
      config->is_final = true;
    }
    return dnn::kSuccess;
  }
  if (descriptor->kind == dnn::kEngineConfig && attribute == dnn::kConfigEngine &&
      type == dnn::kOfDescriptor && wanted == 1) {
    const Descriptor engine = *static_cast<Descriptor*>(elements);
    if (!IsLive(engine) || engine->kind != dnn::kEngine) return Misuse("An engine has no place.");
    engine->engine = descriptor->engine;
    engine->is_final = true;
    *count = 1;
    return dnn::kSuccess;
  }
  if (descriptor->kind == dnn::kEngine && attribute == dnn::kEngineNotes &&
      type == dnn::kOfNumericalNote) {
    return give(descriptor->engine.notes);
  }
  if (descriptor->kind == dnn::kPlan && attribute == dnn::kPlanWorkspaceBytes &&
      type == dnn::kOfInt64) {
    return give(std::array{descriptor->engine.workspace_bytes});
  }
  return Misuse("Attribute " + std::to_string(attribute) + " is not told.");
}

int cudnnBackendExecute(dnn::Handle handle, Descriptor plan, Descriptor pack) {
  EMULATED_CALL("BackendExecute");
  if (!IsLive(handle) || !IsLive(plan) || !IsLive(pack) || plan->kind != dnn::kPlan ||
      pack->kind != dnn::kVariantPack || !plan->is_final || !pack->is_final) {
    return Misuse("A plan or its memory is none.");
  }
  Work work = plan->work;
  work.fraction_bits = plan->engine.fraction_bits;
  work.added = plan->engine.added;
  work.workspace_bytes = plan->engine.workspace_bytes;
  work.workspace_at = reinterpret_cast<uintptr_t>(One<void*>(*pack, dnn::kPackWorkspace));
  const auto ids = List<int64_t>(*pack, dnn::kPackIds);
  const auto pointers = List<void*>(*pack, dnn::kPackPointers);
  size_t taken = 0;
  const auto take = [&](const Tensor& tensor, uintptr_t& at) {
    const auto found = std::ranges::find(ids, tensor.id);
    if (found == ids.end()) return false;
    ++taken;
    at = reinterpret_cast<uintptr_t>(pointers[static_cast<size_t>(found - ids.begin())]);
    const int64_t bytes = tensor.Span() * BytesOf(TypeOf(tensor.type));
    return at % static_cast<uintptr_t>(tensor.alignment) == 0 && IsInside(at, bytes);
  };
  if (!take(work.image, work.image_at) || !take(work.weights, work.weights_at) ||
      !take(work.output, work.output_at) || (work.has_bias && !take(work.bias, work.bias_at)) ||
      (work.has_addend && !take(work.addend, work.addend_at)) || taken != ids.size()) {
    return Misuse("A tensor is not where it was said to be, or reaches beyond its memory.");
  }
  if (work.workspace_bytes > 0 &&
      (work.workspace_at % 256 != 0 || !IsInside(work.workspace_at, work.workspace_bytes))) {
    return Misuse("Working memory is too small, or at no multiple of 256 bytes.");
  }
  const CUresult put = cuLaunchHostFunc(handle->stream, Convolve, S().Hold(work));
  return put == CUDA_SUCCESS ? dnn::kSuccess : dnn::kExecutionFailed;
}

void emulated_cudnn_fail(const char* function, int result, int call, int count) {
  S().Fail(function, result, call, count);
}
int emulated_cudnn_call_count(const char* function) { return S().call_count(function); }
int emulated_cudnn_live(void) { return S().live_count(); }
const char* emulated_cudnn_misuse(void) { return S().misuse(); }

}  // extern "C"
