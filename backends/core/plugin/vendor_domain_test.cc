// SPDX-License-Identifier: Apache-2.0
//
// A vendor's domain, from the hardware that brings it to results: what samples/vendor_plugin shows.
// One operator is defined as a function of ONNX's, and one is lowered by the plugin.

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <memory>
#include <string>

#include "backends/core/execution/testing/run_program.h"
#include "backends/core/model/definition.h"
#include "backends/core/model/import.h"
#include "backends/core/ops/lowering.h"
#include "backends/core/plugin/hardware.h"
#include "backends/core/plugin/operator_source.h"
#include "backends/core/plugin/pipeline.h"
#include "backends/core/reference/device.h"

namespace onnxifi::plugin {
namespace {

using base::Code;
using base::Status;
using tensor::ElementType;
using tensor::Tensor;

// y = x * factor + shift, as a function.
Status DefineScaleShift(model::Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 2));
  const auto scaled = d.Mul(d.In(0), d.Scalar(d.Float("factor"), d.Type(0)));
  d.Return(0, d.Has(1) ? d.Add(scaled, d.In(1)) : scaled);
  return base::Ok();
}

// y = x * x, as a step of the plugin's own making.
Status LowerSquare(ops::Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const ops::Operand& x = lowering.In(0);
  ops::StepBuilder map(lowering, x.shape);
  const ops::Expr value = map.ReadArithmetic(x);
  lowering.Set(0, map.WriteMap(value * value, x.type()));
  return base::Ok();
}

constexpr model::DomainOperator kDeclarations[] = {
    {R"(ScaleShift(X: T, shift?: T) -> (Y: T)
        factor: float = 2
        T = float | float16)",
     DefineScaleShift},
    {R"(Square(X: T) -> (Y: T)
        T = float)"},
};
constexpr model::Domain kDomain = {"com.example", 1, kDeclarations};
constexpr ops::Operator kEntries[] = {{"Square", 1, LowerSquare, "com.example"}};
constexpr VendorDomain kVendor[] = {{&kDomain, kEntries}};

class ExampleHardware : public Hardware {
 public:
  std::string plugin_name() const override { return "example"; }
  std::vector<DeviceDescription> Enumerate() override { return {{.name = "Example"}}; }
  const device::Selector& selector(int /*index*/) const override { return selector_; }
  base::Result<std::unique_ptr<device::Device>> Open(
      int /*index*/, const abi::BackendProperties& /*properties*/) override {
    return std::unique_ptr<device::Device>(std::make_unique<reference::Device>());
  }
  std::span<const VendorDomain> domains() const override { return kVendor; }

 private:
  const reference::Device selector_;
};

constexpr int64_t kNotImported = 0;

// input -> ScaleShift (factor 3) -> Square -> output, [rows, 2].
std::string MakeModel(const std::string& second_operator = "Square", int64_t version = 1) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(21);
  if (version != kNotImported) {
    onnx::OperatorSetIdProto& opset = *model.add_opset_import();
    opset.set_domain("com.example");
    opset.set_version(version);
  }
  onnx::GraphProto& graph = *model.mutable_graph();
  for (onnx::ValueInfoProto* value : {graph.add_input(), graph.add_output()}) {
    auto& type = *value->mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_param("rows");
    type.mutable_shape()->add_dim()->set_dim_value(2);
  }
  graph.mutable_input(0)->set_name("input");
  graph.mutable_output(0)->set_name("output");
  onnx::NodeProto& first = *graph.add_node();
  first.set_op_type("ScaleShift");
  first.add_input("input");
  first.add_output("scaled");
  onnx::AttributeProto& factor = *first.add_attribute();
  factor.set_name("factor");
  factor.set_type(onnx::AttributeProto::FLOAT);
  factor.set_f(3);
  onnx::NodeProto& second = *graph.add_node();
  second.set_op_type(second_operator);
  second.add_input("scaled");
  second.add_output("output");
  for (onnx::NodeProto& node : *graph.mutable_node()) node.set_domain("com.example");
  return model.SerializeAsString();
}

std::span<const std::byte> Bytes(const std::string& model) {
  return std::as_bytes(std::span(model));
}

TEST(VendorDomain, RunsByDefinitionAndByEntry) {
  const OperatorSource operators(kVendor);
  ASSERT_TRUE(operators.domains().CheckDeclarations().ok());
  const std::string model = MakeModel();
  auto graph = model::Import(Bytes(model), {.domains = &operators.domains()});
  ASSERT_TRUE(graph.ok()) << graph.status().Text();
  reference::Device device;
  LoadTimes times;
  const auto program = Compile(*std::move(graph), device, base::Log(), times,
                               /*permissions=*/{}, operators);
  ASSERT_TRUE(program.ok()) << program.status().Text();
  const float values[] = {1, -2, 0.5F, 3};
  const auto results = execution::RunProgram(
      **program, {Tensor::FromValues<float>(ElementType::kFloat32, {2, 2}, values)});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  const std::span<const float> y = (*results)[0].values<float>();
  EXPECT_EQ(std::vector<float>(y.begin(), y.end()), (std::vector<float>{9, 36, 2.25F, 81}));
}

TEST(VendorDomain, IsClaimedAndTold) {
  const auto provider = MakeProvider(std::make_unique<ExampleHardware>());
  const auto ids = provider->EnumerateBackendIds();
  ASSERT_TRUE(ids.ok());
  ASSERT_EQ(ids->size(), 1U);
  const abi::BackendId& id = *ids->front();
  const auto opsets = id.Info(ONNXIFI_BACKEND_OPSET_VERSION);
  ASSERT_TRUE(opsets.ok());
  const std::string text = std::get<std::string>(*opsets);
  EXPECT_NE(text.find("com.example:1"), std::string::npos) << text;
  EXPECT_NE(text.find("com.microsoft:1"), std::string::npos) << text;
  // Runs it: the reference, whose kernels are no device's own, computes every node.
  EXPECT_EQ(id.CheckCompatibility(Bytes(MakeModel())).code(), Code::kFallback);
  EXPECT_EQ(id.CheckCompatibility(Bytes(MakeModel("Cube"))).code(), Code::kUnsupportedOperator);
  EXPECT_EQ(id.CheckCompatibility(Bytes(MakeModel("Square", 2))).code(), Code::kUnsupportedVersion);
}

TEST(VendorDomain, IsOfItsNewestVersionWhereAModelImportsNone) {
  const auto provider = MakeProvider(std::make_unique<ExampleHardware>());
  const auto ids = provider->EnumerateBackendIds();
  ASSERT_TRUE(ids.ok());
  for (const int64_t version : {int64_t{1}, kNotImported}) {
    const auto explanation = ids->front()->Explain(Bytes(MakeModel("Square", version)));
    ASSERT_TRUE(explanation.ok()) << explanation.status().Text();
    ASSERT_EQ(explanation->nodes.size(), 2U) << explanation->verdict.Text();
    for (const abi::NodeVerdict& verdict : explanation->nodes) {
      EXPECT_EQ(verdict.code, Code::kFallback) << verdict.sentence;
      EXPECT_EQ(verdict.opset_version, 1);
    }
  }
}

TEST(VendorDomain, IsUnknownToPluginsWithoutIt) {
  const OperatorSource operators;
  const std::string model = MakeModel();
  const auto graph = model::Import(Bytes(model), {.domains = &operators.domains()});
  EXPECT_EQ(graph.status().code(), Code::kUnsupportedOperator);
  EXPECT_NE(graph.status().Text().find("com.example"), std::string::npos) << graph.status().Text();
}

}  // namespace
}  // namespace onnxifi::plugin
