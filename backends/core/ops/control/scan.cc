// SPDX-License-Identifier: Apache-2.0
//
// Scan: the body runs once per slice of the scanned inputs and its scanned outputs are stacked. In
// opset 8 this is done for each entry of a batch, and the entries' results are stacked.

#include "backends/core/ops/control/bodies.h"
#include "backends/core/ops/control/scan_batches.h"
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

// What is scanned: by a node of opset 9 what its attributes say, by one of opset 8 its batches.
struct ScanForm {
  GraphAttribute body;
  int first_input = 0;  // of the node
  int carried = 0;
  int scanned = 0;
  bool has_attributes = true;  // of axes and directions; otherwise all are 0
};

Result<ScanForm> ReadForm(const Lowering& lowering) {
  const GraphAttribute* attribute = lowering.node().FindAttribute<GraphAttribute>("body");
  if (attribute == nullptr) return lowering.InvalidModel("The attribute body is missing.");
  const bool is_batch = lowering.version() < 9;
  const int given = lowering.input_count() - (is_batch ? 1 : 0);
  const int64_t scanned = lowering.Int("num_scan_inputs", 0);
  if (scanned < 1 || scanned > given) {
    return lowering.InvalidModel("Attribute num_scan_inputs is " + std::to_string(scanned) +
                                 " for " + std::to_string(given) + " inputs.");
  }
  ScanForm form;
  form.scanned = static_cast<int>(scanned);
  form.carried = given - form.scanned;
  form.first_input = is_batch ? 1 : 0;
  ONNXIFI_RETURN_IF_ERROR(CheckBodyArity(lowering, **attribute, static_cast<size_t>(given),
                                         static_cast<size_t>(lowering.output_count())));
  if (lowering.output_count() < form.carried) {
    return lowering.InvalidModel("It has " + std::to_string(lowering.output_count()) +
                                 " outputs for " + std::to_string(form.carried) +
                                 " carried values.");
  }
  form.body = *attribute;
  if (!is_batch) return form;
  const bool has_lengths = lowering.Has(0);
  if (has_lengths && lowering.In(0).type() != ElementType::kInt64) {
    return lowering.UnsupportedType(0);
  }
  form.body = MakeScanOfEntry(lowering.node(), **attribute, has_lengths, form.scanned);
  form.first_input = has_lengths ? 0 : 1;
  form.scanned = lowering.input_count() - form.first_input;
  form.carried = 0;
  form.has_attributes = false;
  return form;
}

Status LowerScan(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const ScanForm form, ReadForm(lowering));
  const int carried = form.carried;
  const int scanned = form.scanned;
  const int stacked = lowering.output_count() - carried;
  const auto entry = [&](std::string_view name, int k, int count) -> Result<int64_t> {
    if (!form.has_attributes) return int64_t{0};
    return Entry(lowering, name, k, count);
  };
  for (int k = 0; k < carried + scanned; ++k) {
    const int input = form.first_input + k;
    if (!(k < carried ? lowering.HasAny(input) : lowering.Has(input))) {
      return lowering.InvalidModel(
          "Input " + std::to_string(input) +
          (k < carried ? " is missing." : " is no tensor; what is scanned must be one."));
    }
  }

  ControlBuilder builder(lowering, program::Control::Kind::kScan);
  builder.control().carried = carried;
  std::vector<BodyLowering::Input> inputs;
  for (int k = 0; k < carried; ++k) {
    inputs.push_back(InputOfBody(lowering, form.first_input + k));
  }
  Dim length;
  for (int k = 0; k < scanned; ++k) {
    const Operand& input = lowering.In(form.first_input + carried + k);
    ONNXIFI_ASSIGN_OR_RETURN(int64_t given, entry("scan_input_axes", k, scanned));
    ONNXIFI_ASSIGN_OR_RETURN(int axis, lowering.Axis(given, input.rank()));
    ONNXIFI_ASSIGN_OR_RETURN(int64_t direction, entry("scan_input_directions", k, scanned));
    builder.control().scanned.push_back({axis, direction == 1});
    if (k == 0) length = input.shape[axis];
    ONNXIFI_RETURN_IF_ERROR(
        lowering.RequireEqual(input.shape[axis], length, "Lengths of the scanned inputs"));
    Shape slice = input.shape;
    slice.erase(slice.begin() + axis);
    inputs.push_back({input.type(), {slice.begin(), slice.end()}});
  }
  ONNXIFI_ASSIGN_OR_RETURN(BodyLowering::Body lowered,
                           LowerCarryingBody(lowering, *form.body, inputs, /*first_input=*/0,
                                             /*first_output=*/0, carried));

  for (int k = 0; k < carried + scanned; ++k) {
    ONNXIFI_RETURN_IF_ERROR(builder.AddInput(form.first_input + k, inputs[k]));
  }
  std::vector<BodyLowering::Input> results(inputs.begin(), inputs.begin() + carried);
  for (int k = 0; k < stacked; ++k) {
    const size_t output = static_cast<size_t>(carried) + static_cast<size_t>(k);
    BodyLowering::Input& stack = results.emplace_back(OutputOfBody(lowered, output));
    ONNXIFI_RETURN_IF_ERROR(NeedTensor(lowering, stack, output));
    ONNXIFI_ASSIGN_OR_RETURN(int64_t given, entry("scan_output_axes", k, stacked));
    ONNXIFI_ASSIGN_OR_RETURN(int axis,
                             lowering.Axis(given, static_cast<int>(stack.extents.size()) + 1));
    ONNXIFI_ASSIGN_OR_RETURN(int64_t direction, entry("scan_output_directions", k, stacked));
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
