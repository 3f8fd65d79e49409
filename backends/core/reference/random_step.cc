// SPDX-License-Identifier: Apache-2.0
//
// RandomStep: a step from the maker of its family, run on a device, and its results compared.

#include "backends/core/reference/random_step.h"

#include <onnxifi/sdk.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/core/device/transfer.h"
#include "backends/core/reference/random_step/family.h"

namespace onnxifi::reference {
namespace {

using tensor::ElementType;

// One rounding of a value of the type, relative.
double RoundingOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat64:
      return 0x1p-50;
    case ElementType::kFloat32:
      return 0x1p-21;
    case ElementType::kFloat16:
      return 0x1p-10;
    case ElementType::kBfloat16:
      return 0x1p-7;
    default:
      return tensor::IsFloat(type) ? 0x1p-2 : 0;
  }
}

bool IsClose(double expected, double actual, double rounding, double tolerance) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
  if (expected == actual) return true;
  return std::fabs(expected - actual) <= tolerance + rounding * std::fabs(expected);
}

}  // namespace

std::string_view Name(Family family) {
  switch (family) {
    case Family::kMap:
      return ONNXIFI_SDK_FAMILY_MAP;
    case Family::kReduce:
      return ONNXIFI_SDK_FAMILY_REDUCE;
    case Family::kRow:
      return ONNXIFI_SDK_FAMILY_ROW;
    case Family::kScan:
      return ONNXIFI_SDK_FAMILY_SCAN;
    case Family::kContract:
      return ONNXIFI_SDK_FAMILY_CONTRACT;
    case Family::kWindow:
      return ONNXIFI_SDK_FAMILY_WINDOW;
    case Family::kIndex:
      return ONNXIFI_SDK_FAMILY_INDEX;
    case Family::kAttention:
      return ONNXIFI_SDK_FAMILY_ATTENTION;
    case Family::kRecurrent:
      return ONNXIFI_SDK_FAMILY_RECURRENT;
  }
  return "";
}

RandomStep MakeRandomStep(Family family, uint64_t seed, uint64_t variation) {
  // The families draw from unrelated sequences.
  StepMaker make(seed * 0x9e3779b97f4a7c15ULL + static_cast<uint64_t>(family) + 1, variation);
  switch (family) {
    case Family::kMap:
      MakeMap(make);
      break;
    case Family::kReduce:
      MakeReduce(make);
      break;
    case Family::kRow:
      MakeRow(make);
      break;
    case Family::kScan:
      MakeScan(make);
      break;
    case Family::kContract:
      MakeContract(make);
      break;
    case Family::kWindow:
      MakeWindow(make);
      break;
    case Family::kIndex:
      MakeIndex(make);
      break;
    case Family::kAttention:
      MakeAttention(make);
      break;
    case Family::kRecurrent:
      MakeRecurrent(make);
      break;
  }
  RandomStep made{std::move(make.program), std::move(make.buffers), std::move(make.symbols)};
  made.tolerance = make.tolerance;
  made.roundings = make.roundings;
  made.program.steps.push_back(std::move(make.step));
  const tensor::DimTable& dims = *made.program.dims;
  made.dims.resize(static_cast<size_t>(dims.node_count()));
  dims.Evaluate(made.symbols, 0, dims.symbol_count(), made.dims);
  return made;
}

base::Result<std::vector<tensor::Tensor>> RunStep(device::Device& device, const RandomStep& step) {
  const program::Step& body = step.program.steps[0];
  ONNXIFI_ASSIGN_OR_RETURN(device::Selection selection, device.Select({step.program, body}));
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Queue> queue, device.NewQueue());
  std::vector<std::unique_ptr<device::Allocation>> allocations;
  std::vector<std::byte*> addresses;
  for (const tensor::Tensor& buffer : step.buffers) {
    // A buffer without bytes has an address too, which nothing may be read from.
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Allocation> allocation,
                             device.memory().Allocate(std::max<int64_t>(1, buffer.size_bytes())));
    addresses.push_back(allocation->data());
    allocations.push_back(std::move(allocation));
    ONNXIFI_RETURN_IF_ERROR(
        device::Upload(queue.get(), buffer.data(), addresses.back(), buffer.size_bytes()));
  }
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> kernel, device.Build(*selection.recipe));
  std::vector<std::byte*> constants(addresses.size(), nullptr);
  for (size_t k = 0; k < constants.size(); ++k) {
    if (step.program.buffers[k].kind == program::Buffer::Kind::kConstant) {
      constants[k] = addresses[k];
    }
  }
  const device::BoundStep bound_step = device::Bind(step.program, body, step.dims);
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::BoundKernel> bound,
                           kernel->Bind(bound_step, constants));
  ONNXIFI_RETURN_IF_ERROR(queue == nullptr ? bound->Run(addresses)
                                           : bound->Enqueue(*queue, addresses));
  std::vector<tensor::Tensor> results;
  for (size_t k = 0; k < addresses.size(); ++k) {
    const tensor::Tensor& buffer = step.buffers[k];
    ONNXIFI_ASSIGN_OR_RETURN(tensor::Tensor result,
                             tensor::Tensor::Allocate(buffer.type(), buffer.extents()));
    ONNXIFI_RETURN_IF_ERROR(
        device::Read(queue.get(), addresses[k], result.mutable_data(), buffer.size_bytes()));
    results.push_back(std::move(result));
  }
  return results;
}

std::optional<std::string> FindDifference(const RandomStep& step,
                                          std::span<const tensor::Tensor> expected,
                                          std::span<const tensor::Tensor> actual,
                                          const RoundingSpread* spread) {
  for (size_t b = 0; b < expected.size(); ++b) {
    const ElementType type = expected[b].type();
    if (tensor::IsComplex(type) || tensor::IsInteger(type) || tensor::IsBool(type)) {
      const std::span<const std::byte> x = expected[b].bytes();
      const std::span<const std::byte> y = actual[b].bytes();
      if (std::equal(x.begin(), x.end(), y.begin(), y.end())) continue;
    }
    for (int64_t k = 0; k < expected[b].element_count(); ++k) {
      if (tensor::IsComplex(type)) return "Buffer " + std::to_string(b) + " differs.";
      const double room = spread == nullptr ? 0 : (*spread)[b][static_cast<size_t>(k)];
      const bool is_close =
          tensor::IsFloat(type)
              ? std::isinf(room) ||
                    IsClose(expected[b].AsDouble(k), actual[b].AsDouble(k),
                            step.roundings * RoundingOf(type), step.tolerance + room)
              : expected[b].AsInt(k) == actual[b].AsInt(k) || room > 0;
      if (is_close) continue;
      return "Buffer " + std::to_string(b) + " (" + std::string(tensor::Name(type)) +
             "), element " + std::to_string(k) + ": " + std::to_string(actual[b].AsDouble(k)) +
             " instead of " + std::to_string(expected[b].AsDouble(k)) + ", tolerance " +
             std::to_string(step.tolerance) + ".";
    }
  }
  return std::nullopt;
}

}  // namespace onnxifi::reference
