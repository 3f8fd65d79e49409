// SPDX-License-Identifier: Apache-2.0
//
// Scan (opset 9 and later): the body runs once per slice of the scanned inputs and its scanned
// outputs are stacked.

#include "backends/core/ops/control/bodies.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using GraphAttribute = std::shared_ptr<const graph::Graph>;
using ScanAxis = program::Control::ScanInput;

// Entry k of an attribute that has one number per scanned input or output, or is absent.
Result<int64_t> Entry(const Lowering& lowering, std::string_view name, int k, int count) {
  const std::vector<int64_t>* values = lowering.Ints(name);
  if (values == nullptr) return int64_t{0};
  if (static_cast<int>(values->size()) != count) {
    return lowering.InvalidModel("Attribute " + std::string(name) + " has " +
                                 std::to_string(values->size()) + " entries where " +
                                 std::to_string(count) + " are required.");
  }
  return (*values)[k];
}

Status LowerScan(Lowering& lowering) {
  if (lowering.version() < 9) {
    return Status(Code::kUnsupportedVersion,
                  "Scan: Version 8 with its batch axis is older than the oldest supported (9).");
  }
  const GraphAttribute* attribute = lowering.node().FindAttribute<GraphAttribute>("body");
  if (attribute == nullptr) return lowering.InvalidModel("The attribute body is missing.");
  int64_t scanned64 = lowering.Int("num_scan_inputs", 0);
  if (scanned64 < 1 || scanned64 > lowering.input_count()) {
    return lowering.InvalidModel("Attribute num_scan_inputs is " + std::to_string(scanned64) +
                                 " for " + std::to_string(lowering.input_count()) + " inputs.");
  }
  int scanned = static_cast<int>(scanned64);
  int carried = lowering.input_count() - scanned;
  int stacked = lowering.output_count() - carried;
  if (stacked < 0) {
    return lowering.InvalidModel("It has " + std::to_string(lowering.output_count()) +
                                 " outputs for " + std::to_string(carried) + " carried values.");
  }
  for (int k = 0; k < lowering.input_count(); ++k) {
    if (!(k < carried ? lowering.HasAny(k) : lowering.Has(k))) {
      return lowering.InvalidModel(
          "Input " + std::to_string(k) +
          (k < carried ? " is missing." : " is no tensor; what is scanned must be one."));
    }
  }
  ONNXIFI_RETURN_IF_ERROR(CheckBodyArity(lowering, **attribute,
                                         static_cast<size_t>(lowering.input_count()),
                                         static_cast<size_t>(lowering.output_count())));

  ControlBuilder builder(lowering, program::Control::Kind::kScan);
  builder.control().carried = carried;
  std::vector<BodyLowering::Input> inputs;
  for (int k = 0; k < carried; ++k) {
    inputs.push_back(InputOfBody(lowering, k));
  }
  Dim length;
  for (int k = 0; k < scanned; ++k) {
    const Operand& input = lowering.In(carried + k);
    ONNXIFI_ASSIGN_OR_RETURN(int64_t given, Entry(lowering, "scan_input_axes", k, scanned));
    ONNXIFI_ASSIGN_OR_RETURN(int axis, lowering.Axis(given, input.rank()));
    ONNXIFI_ASSIGN_OR_RETURN(int64_t direction,
                             Entry(lowering, "scan_input_directions", k, scanned));
    builder.control().scanned.push_back({axis, direction == 1});
    if (k == 0) length = input.shape[axis];
    ONNXIFI_RETURN_IF_ERROR(
        lowering.RequireEqual(input.shape[axis], length, "Lengths of the scanned inputs"));
    Shape slice = input.shape;
    slice.erase(slice.begin() + axis);
    inputs.push_back({input.type(), {slice.begin(), slice.end()}});
  }
  ONNXIFI_ASSIGN_OR_RETURN(BodyLowering::Body lowered,
                           LowerCarryingBody(lowering, **attribute, inputs, /*first_input=*/0,
                                             /*first_output=*/0, carried));

  for (int k = 0; k < lowering.input_count(); ++k) {
    ONNXIFI_RETURN_IF_ERROR(builder.AddInput(k, inputs[k]));
  }
  std::vector<BodyLowering::Input> results(inputs.begin(), inputs.begin() + carried);
  for (int k = 0; k < stacked; ++k) {
    const size_t output = static_cast<size_t>(carried) + static_cast<size_t>(k);
    BodyLowering::Input& stack = results.emplace_back(OutputOfBody(lowered, output));
    ONNXIFI_RETURN_IF_ERROR(NeedTensor(lowering, stack, output));
    ONNXIFI_ASSIGN_OR_RETURN(int64_t given, Entry(lowering, "scan_output_axes", k, stacked));
    ONNXIFI_ASSIGN_OR_RETURN(int axis,
                             lowering.Axis(given, static_cast<int>(stack.extents.size()) + 1));
    ONNXIFI_ASSIGN_OR_RETURN(int64_t direction,
                             Entry(lowering, "scan_output_directions", k, stacked));
    builder.control().stacked.push_back({axis, direction == 1});
    stack.extents.insert(stack.extents.begin() + axis, length);
  }
  builder.AddBody(std::move(lowered));
  for (const BodyLowering::Input& result : results) builder.AddOutput(result);
  builder.Emit();
  return base::Ok();
}

constexpr Operator kOperators[] = {{"Scan", 25, LowerScan, "", InputKinds::kValues}};

}  // namespace

std::span<const Operator> ScanOperators() { return kOperators; }

}  // namespace onnxifi::ops
