// SPDX-License-Identifier: Apache-2.0
//
// What a device says of a model, and that initialisation says the same.

#include <fmt/format.h>
#include <onnx/onnxifi.h>

#include <string>

#include "conformance/suites/interface/case_groups.h"
#include "conformance/suites/interface/check.h"
#include "conformance/suites/interface/scene.h"
#include "conformance/suites/interface/small_models.h"

namespace onnxifi::suites {
namespace {

constexpr ElementType kFloat = ElementType::kFloat32;

const std::vector<Dimension>& Matrix() {
  static const std::vector<Dimension> matrix = {kRows, kColumns};
  return matrix;
}

onnxStatus Claim(Check& check, const std::string& model) {
  return check.library().onnxGetBackendCompatibility(check.id(), model.size(), model.data());
}

// Initialises the model on a fresh backend and releases what comes of it.
onnxStatus Initialise(Check& check, const std::string& model) {
  Scene scene(check);
  onnxGraph graph = reinterpret_cast<onnxGraph>(&scene);
  const onnxStatus status = check.library().onnxInitGraph(scene.backend(), nullptr, model.size(),
                                                          model.data(), 0, nullptr, &graph);
  if (client::IsAcceptance(status)) {
    scene.ReleaseGraphNow(graph);
  } else {
    check.Expect(graph == nullptr, "onnxInitGraph fails and leaves *graph other than NULL.");
  }
  return status;
}

// Both functions give one of the expected answers, and the same.
void ExpectBoth(Check& check, std::initializer_list<onnxStatus> expected, const std::string& model,
                std::string_view what) {
  const onnxStatus claim = Claim(check, model);
  check.ExpectOneOf(expected, claim, fmt::format("onnxGetBackendCompatibility for {}", what));
  const onnxStatus initialised = Initialise(check, model);
  check.ExpectStatus(claim, initialised,
                     fmt::format("onnxInitGraph for {}, which compatibility answered {},", what,
                                 client::StatusName(claim)));
}

void LegalModelIsAccepted(Check& check) {
  const std::string model = MakeAddModel();
  const onnxStatus claim = Claim(check, model);
  if (client::IsRefusal(claim)) return check.SetNotSupported(claim, check.library().LastError());
  ExpectBoth(check, {ONNXIFI_STATUS_SUCCESS, ONNXIFI_STATUS_FALLBACK}, model, "an addition");
}

void ArgumentsAreChecked(Check& check) {
  const std::string model = MakeAddModel();
  int local = 0;
  const client::Library& library = check.library();
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_ID,
                     library.onnxGetBackendCompatibility(nullptr, model.size(), model.data()),
                     "onnxGetBackendCompatibility with a NULL ID");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_ID,
                     library.onnxGetBackendCompatibility(&local, 0, nullptr),
                     "onnxGetBackendCompatibility with a foreign ID and no model");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     library.onnxGetBackendCompatibility(check.id(), 0, nullptr),
                     "onnxGetBackendCompatibility with a NULL model of size 0");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_SIZE,
                     library.onnxGetBackendCompatibility(check.id(), 0, model.data()),
                     "onnxGetBackendCompatibility with size 0");
}

void UnknownOperatorIsUnsupported(Check& check) {
  const auto make = [](std::string_view op_type, std::string_view domain) {
    return ModelWriter()
        .Input("x", kFloat, Matrix())
        .Node(op_type, {"x"}, {"y"}, {}, domain)
        .Output("y", kFloat, Matrix())
        .Build();
  };
  ExpectBoth(check, {ONNXIFI_STATUS_UNSUPPORTED_OPERATOR}, make("NoSuchOperator", ""),
             "an operator that ONNX does not have");
}

void OneUnsupportedNodeRefusesTheWholeModel(Check& check) {
  const std::string model = ModelWriter()
                                .Input("x", kFloat, Matrix())
                                .Node("Relu", {"x"}, {"a"})
                                .Node("NoSuchOperator", {"a"}, {"b"})
                                .Node("Relu", {"b"}, {"y"})
                                .Output("y", kFloat, Matrix())
                                .Build();
  ExpectBoth(check, {ONNXIFI_STATUS_UNSUPPORTED_OPERATOR}, model,
             "a model with one unknown operator");
}

void VersionsBeyondTheDeviceAreUnsupported(Check& check) {
  const auto make = [](int64_t ir_version, int64_t opset) {
    return ModelWriter(ir_version, opset)
        .Input("x", kFloat, Matrix())
        .Node("Relu", {"x"}, {"y"})
        .Output("y", kFloat, Matrix())
        .Build();
  };
  ExpectBoth(check, {ONNXIFI_STATUS_UNSUPPORTED_VERSION}, make(9999, 17), "IR version 9999");
  ExpectBoth(check, {ONNXIFI_STATUS_UNSUPPORTED_VERSION}, make(8, 9999), "operator set 9999");
}

void OldVersionsAreAccepted(Check& check) {
  // All operator sets up to the highest listed; Relu exists since the first.
  for (const int64_t opset : {7, 11, 13, 17}) {
    const std::string model = ModelWriter(/*ir_version=*/3, opset)
                                  .Input("x", kFloat, Matrix())
                                  .Node("Relu", {"x"}, {"y"})
                                  .Output("y", kFloat, Matrix())
                                  .Build();
    check.ExpectOneOf(
        {ONNXIFI_STATUS_SUCCESS, ONNXIFI_STATUS_FALLBACK}, Claim(check, model),
        fmt::format("onnxGetBackendCompatibility for Relu of operator set {}", opset));
  }
}

void StringsAreRefused(Check& check) {
  const std::string model = ModelWriter()
                                .Input("x", ElementType::kString, {kColumns})
                                .Node("Identity", {"x"}, {"y"})
                                .Output("y", ElementType::kString, {kColumns})
                                .Build();
  ExpectBoth(check, {ONNXIFI_STATUS_UNSUPPORTED_DATATYPE}, model, "an input of strings");
}

void DeclaredShapeMustFollowFromTheInputs(Check& check) {
  const std::string output = ModelWriter()
                                 .Input("x", kFloat, Matrix())
                                 .Node("Relu", {"x"}, {"y"})
                                 .Output("y", kFloat, {kRows, int64_t{4}})
                                 .Build();
  ExpectBoth(check, {ONNXIFI_STATUS_MISMATCHING_SHAPE}, output,
             "an output that is declared with a shape it cannot have");
  const std::string intermediate = ModelWriter()
                                       .Input("x", kFloat, Matrix())
                                       .Node("Relu", {"x"}, {"v"})
                                       .Intermediate("v", kFloat, {kRows})
                                       .Node("Relu", {"v"}, {"y"})
                                       .Output("y", kFloat, Matrix())
                                       .Build();
  ExpectBoth(check, {ONNXIFI_STATUS_MISMATCHING_SHAPE}, intermediate,
             "an intermediate value that is declared with a rank it cannot have");
}

void DeclaredTypeMustFollowFromTheInputs(Check& check) {
  const std::string model = ModelWriter()
                                .Input("x", kFloat, Matrix())
                                .Node("Relu", {"x"}, {"y"})
                                .Output("y", ElementType::kInt32, Matrix())
                                .Build();
  ExpectBoth(check, {ONNXIFI_STATUS_MISMATCHING_DATATYPE}, model,
             "an output that is declared with a type it cannot have");
}

void ImpossibleShapesAreRefused(Check& check) {
  // 2^93 elements; no machine holds them and no 64-bit size counts them.
  const std::vector<Dimension> vast = {int64_t{1} << 31, int64_t{1} << 31, int64_t{1} << 31};
  const std::string model = ModelWriter()
                                .Input("x", kFloat, vast)
                                .Node("Relu", {"x"}, {"y"})
                                .Output("y", kFloat, vast)
                                .Build();
  ExpectBoth(check, {ONNXIFI_STATUS_UNSUPPORTED_SHAPE}, model, "a tensor of 2^93 elements");
}

// One-node models of operators with values of attributes that few devices take. None needs be
// refused.
void RefusedAttributesAreSaid(Check& check) {
  const std::vector<Dimension> image = {int64_t{1}, int64_t{2}, int64_t{8}, int64_t{8}};
  const std::vector<Dimension> open = {"", "", "", ""};
  const std::vector<std::string> models = {
      ModelWriter(8, 19)
          .Input("x", kFloat, image)
          .Node("AveragePool", {"x"}, {"y"},
                {onnx_file::MakeIntsAttribute("kernel_shape", {2, 2}),
                 onnx_file::MakeIntsAttribute("dilations", {3, 3})})
          .Output("y", kFloat, open)
          .Build(),
      ModelWriter()
          .Input("x", kFloat, image)
          .Node("MaxPool", {"x"}, {"y", "indices"},
                {onnx_file::MakeIntsAttribute("kernel_shape", {2, 2}),
                 onnx_file::MakeIntAttribute("storage_order", 1)})
          .Output("y", kFloat, open)
          .Output("indices", ElementType::kInt64, open)
          .Build(),
      ModelWriter()
          .Input("x", kFloat, {int64_t{2}, int64_t{3}, int64_t{4}})
          .Input("w", kFloat, {int64_t{1}, int64_t{20}, int64_t{4}})
          .Input("r", kFloat, {int64_t{1}, int64_t{20}, int64_t{5}})
          .Node("LSTM", {"x", "w", "r"}, {"y"},
                {onnx_file::MakeIntAttribute("hidden_size", 5),
                 onnx_file::MakeIntAttribute("layout", 1)})
          .Output("y", kFloat, open)
          .Build(),
      ModelWriter()
          .Input("x", kFloat, image)
          .Node("Cast", {"x"}, {"y"}, {onnx_file::MakeIntAttribute("to", 8)})
          .Node("Cast", {"y"}, {"z"}, {onnx_file::MakeIntAttribute("to", 1)})
          .Output("z", kFloat, image)
          .Build(),
  };
  for (const std::string& model : models) {
    const onnxStatus claim = Claim(check, model);
    if (client::IsAcceptance(claim)) continue;
    ExpectBoth(check,
               {ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR,
                ONNXIFI_STATUS_UNSUPPORTED_DATATYPE},
               model, "an unusual attribute");
  }
}

void AnswerDoesNotDependOnWeights(Check& check) {
  const onnxStatus without = Claim(check, MakeWeightModel());
  const onnxStatus with = Claim(check, MakeInitializerModel());
  check.Expect(without == with,
               fmt::format("The answer is {} without the weight's values and {} with them.",
                           client::StatusName(without), client::StatusName(with)));
}

void LenientAboutOneNodeModels(Check& check) {
  // What frameworks send: no output declared, no types, the same thing many times.
  const std::string model = ModelWriter(/*ir_version=*/3, /*opset=*/7)
                                .Input("x", kFloat, Matrix())
                                .Node("Relu", {"x"}, {"y"})
                                .Build();
  for (int time = 0; time < 50; ++time) {
    if (!check.ExpectOneOf(
            {ONNXIFI_STATUS_SUCCESS, ONNXIFI_STATUS_FALLBACK}, Claim(check, model),
            "onnxGetBackendCompatibility for a node without declared output (R20)")) {
      return;
    }
  }
}

void DisagreeingUnknownInputsAreTolerated(Check& check) {
  const std::string model = ModelWriter(/*ir_version=*/3, /*opset=*/7)
                                .Input("x", kFloat, Matrix())
                                .Node("Add", {"x", "undeclared"}, {"y"})
                                .Build();
  const onnxStatus claim = Claim(check, model);
  check.Expect(client::IsAcceptance(claim) || client::IsRefusal(claim),
               fmt::format("An input that is declared nowhere makes the answer {} instead of a yes "
                           "or an UNSUPPORTED code (R20).",
                           client::StatusName(claim)));
}

constexpr InterfaceCase kCases[] = {
    {"claims", "legal_model_is_accepted", LegalModelIsAccepted},
    {"claims", "compatibility_checks_its_arguments_in_order", ArgumentsAreChecked},
    {"claims", "unknown_operator_is_unsupported", UnknownOperatorIsUnsupported},
    {"claims", "one_unsupported_node_refuses_the_model", OneUnsupportedNodeRefusesTheWholeModel},
    {"claims", "versions_beyond_the_device_are_unsupported", VersionsBeyondTheDeviceAreUnsupported},
    {"claims", "old_versions_are_accepted", OldVersionsAreAccepted},
    {"claims", "strings_are_refused", StringsAreRefused},
    {"claims", "declared_shape_follows_from_the_inputs", DeclaredShapeMustFollowFromTheInputs},
    {"claims", "declared_type_follows_from_the_inputs", DeclaredTypeMustFollowFromTheInputs},
    {"claims", "impossible_shapes_are_refused", ImpossibleShapesAreRefused},
    {"claims", "refused_attributes_are_refused_twice_alike", RefusedAttributesAreSaid},
    {"claims", "answer_does_not_depend_on_weights", AnswerDoesNotDependOnWeights},
    {"claims", "node_without_declared_output_is_checked", LenientAboutOneNodeModels},
    {"claims", "undeclared_input_is_no_error", DisagreeingUnknownInputsAreTolerated},
};

}  // namespace

std::span<const InterfaceCase> ClaimCases() { return kCases; }

}  // namespace onnxifi::suites
