// SPDX-License-Identifier: Apache-2.0
//
// Import: what becomes of names, versions, weights, subgraphs and functions, and with which status
// each broken model is refused.

#include "backends/core/model/import.h"

#include <gtest/gtest.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "backends/core/graph/dump.h"
#include "backends/core/graph/verify.h"
#include "backends/core/model/testing/model_mutator.h"
#include "backends/core/model/testing/seed_models.h"
#include "backends/core/model/versions.h"

namespace onnxifi::model {
namespace {

using base::Code;
using graph::Graph;
using graph::kNoValue;
using graph::Value;
using onnx::AttributeProto;
using onnx::ModelProto;
using onnx::TensorProto;
using testing::AddAttribute;
using testing::AddFloat;
using testing::AddFloatInitializer;
using testing::AddNode;
using testing::MakeModel;

base::Result<Graph> ImportText(const std::string& bytes, const ImportOptions& options = {}) {
  return Import(std::as_bytes(std::span(bytes)), options);
}

base::Result<Graph> ImportProto(const ModelProto& model, const ImportOptions& options = {}) {
  return ImportText(model.SerializeAsString(), options);
}

Graph MustImport(const ModelProto& model, const ImportOptions& options = {}) {
  auto graph = ImportProto(model, options);
  EXPECT_TRUE(graph.ok()) << graph.status().Text();
  if (!graph.ok()) return {};
  EXPECT_TRUE(graph::Verify(*graph).ok()) << graph::DumpText(*graph);
  return *std::move(graph);
}

void ExpectRefused(const ModelProto& model, Code code, std::string_view text,
                   const ImportOptions& options = {}) {
  const auto graph = ImportProto(model, options);
  ASSERT_FALSE(graph.ok()) << text;
  EXPECT_EQ(base::CodeName(graph.status().code()), base::CodeName(code)) << graph.status().Text();
  EXPECT_NE(graph.status().Text().find(text), std::string::npos) << graph.status().Text();
}

const Value& Find(const Graph& graph, std::string_view name) {
  for (const Value& value : graph.values) {
    if (value.name == name) return value;
  }
  ADD_FAILURE() << "no value " << name;
  return graph.values.at(0);
}

ModelProto FindSeed(std::string_view wanted) {
  ModelProto model;
  for (const auto& [name, bytes] : testing::MakeSeedModels()) {
    if (name == wanted) {
      EXPECT_TRUE(model.ParseFromString(bytes));
    }
  }
  return model;
}

// x -> Relu -> y.
ModelProto MakeRelu(int64_t opset = 17, int64_t ir_version = 8) {
  ModelProto model = MakeModel(opset, ir_version);
  AddFloat(*model.mutable_graph()->mutable_input(), "x", {2});
  AddNode(*model.mutable_graph(), "Relu", {"x"}, {"y"});
  AddFloat(*model.mutable_graph()->mutable_output(), "y", {2});
  return model;
}

TEST(ImportTest, AllSeedsImportAndAreSound) {
  for (const auto& [name, bytes] : testing::MakeSeedModels()) {
    for (const bool lift_values : {true, false}) {
      ImportOptions options;
      options.lift_values = lift_values;
      const auto graph = ImportText(bytes, options);
      ASSERT_TRUE(graph.ok()) << name << ": " << graph.status().Text();
      EXPECT_TRUE(graph::Verify(*graph).ok()) << name;
    }
  }
}

TEST(ImportTest, ConvolutionBecomesNodesValuesAndAWeight) {
  const Graph graph = MustImport(FindSeed("convolution"));
  EXPECT_EQ(graph.name, "main");
  ASSERT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(graph::Describe(graph.nodes[0]), "node 0 'conv1' (Conv)");
  EXPECT_EQ(graph.nodes[0].since_version, 11);
  EXPECT_EQ(graph.nodes[1].since_version, 14);
  EXPECT_EQ(*graph.nodes[0].FindAttribute<std::vector<int64_t>>("pads"),
            (std::vector<int64_t>{1, 1, 1, 1}));
  ASSERT_EQ(graph.inputs.size(), 1u);
  EXPECT_EQ(graph::ToString(Find(graph, "x").type), "float[1, 2, 5, 5]");
  EXPECT_EQ(graph::ToString(Find(graph, "y").type), "float[1, 4, 5, 5]");
  const Value& weight = Find(graph, "w");
  ASSERT_TRUE(weight.constant);
  EXPECT_TRUE(weight.is_weight);
  EXPECT_EQ(weight.constant->extents(), (tensor::Extents{4, 2, 3, 3}));
  for (int64_t index = 0; index < 72; ++index) {
    EXPECT_EQ(weight.constant->AsDouble(index), static_cast<double>(index));
  }
}

TEST(ImportTest, InitializersAmongTheInputsAreConstants) {
  const Graph graph = MustImport(FindSeed("old_style"));
  ASSERT_EQ(graph.inputs.size(), 1u);
  EXPECT_EQ(graph.values[static_cast<size_t>(graph.inputs[0])].name, "x");
  EXPECT_TRUE(Find(graph, "w").constant);
  EXPECT_FALSE(Find(graph, "w").is_weight) << "twelve elements are structural";
}

TEST(ImportTest, SubgraphsCaptureByName) {
  const Graph graph = MustImport(FindSeed("control_flow"));
  const auto& outer_else =
      **graph.nodes[0].FindAttribute<std::shared_ptr<const Graph>>("else_branch");
  const auto& inner_then =
      **outer_else.nodes[0].FindAttribute<std::shared_ptr<const Graph>>("then_branch");
  const Value& deep = Find(inner_then, "x");
  ASSERT_NE(deep.outer, kNoValue);
  const Value& middle = outer_else.values[static_cast<size_t>(deep.outer)];
  EXPECT_EQ(middle.name, "x");
  ASSERT_NE(middle.outer, kNoValue);
  EXPECT_EQ(graph.values[static_cast<size_t>(middle.outer)].name, "x");
  EXPECT_EQ(graph::ToString(deep.type), "float[3]");
}

TEST(ImportTest, FunctionsAreInlinedWithTheirAttributes) {
  const Graph graph = MustImport(FindSeed("functions"));
  ASSERT_EQ(graph.nodes.size(), 4u) << graph::DumpText(graph);
  EXPECT_EQ(graph.nodes[0].op_type, "Constant");
  EXPECT_EQ(*graph.nodes[0].FindAttribute<float>("value_float"), 2.f);
  EXPECT_EQ(graph.nodes[1].op_type, "Mul");
  EXPECT_TRUE(graph.nodes[1].name.starts_with("first/"));
  EXPECT_EQ(graph.nodes[1].index, 0);
  EXPECT_EQ(graph.nodes[3].index, 1);
  EXPECT_EQ(graph.nodes[1].outputs, graph::ValueIds{graph.nodes[3].inputs[0]});
  EXPECT_EQ(graph.values[static_cast<size_t>(graph.outputs[0])].name, "z");
  EXPECT_EQ(graph::ToString(graph.values[static_cast<size_t>(graph.outputs[0])].type), "float[3]");
}

TEST(ImportTest, FunctionsThatHandTheirInputThroughKeepTheOutputName) {
  ModelProto model = FindSeed("functions");
  onnx::FunctionProto& same = *model.add_functions();
  same.set_name("Same");
  same.set_domain("local");
  same.add_opset_import()->set_version(17);
  same.add_input("value");
  same.add_output("value");
  onnx::NodeProto& call = AddNode(*model.mutable_graph(), "Same", {"z"}, {"last"});
  call.set_domain("local");
  model.mutable_graph()->add_output()->set_name("last");
  const Graph graph = MustImport(model);
  EXPECT_EQ(graph.nodes.back().op_type, "Identity");
  EXPECT_EQ(graph.values[static_cast<size_t>(graph.outputs[1])].name, "last");
}

TEST(ImportTest, RefusesFunctionsThatCallThemselvesOrExplode) {
  ModelProto model = FindSeed("functions");
  onnx::NodeProto& recursion = *model.mutable_functions(0)->add_node();
  recursion.set_op_type("Twice");
  recursion.set_domain("local");
  recursion.add_input("value");
  *model.mutable_functions(0)->add_opset_import() = model.opset_import(1);
  ExpectRefused(model, Code::kInvalidModel, "Function 'Twice' calls itself");

  ModelProto bomb = MakeRelu();
  bomb.add_opset_import()->set_domain("local");
  bomb.mutable_opset_import(1)->set_version(1);
  constexpr int kLevels = 40;
  for (int level = 0; level < kLevels; ++level) {
    onnx::FunctionProto& function = *bomb.add_functions();
    function.set_name("F" + std::to_string(level));
    function.set_domain("local");
    function.add_opset_import()->set_version(17);
    *function.add_opset_import() = bomb.opset_import(1);
    function.add_input("a");
    function.add_output("c");
    for (const auto& [input, output] : {std::pair("a", "b"), std::pair("b", "c")}) {
      onnx::NodeProto& node = *function.add_node();
      const bool is_leaf = level + 1 == kLevels;
      node.set_op_type(is_leaf ? "Relu" : "F" + std::to_string(level + 1));
      if (!is_leaf) node.set_domain("local");
      node.add_input(input);
      node.add_output(output);
    }
  }
  AddNode(*bomb.mutable_graph(), "F0", {"x"}, {"z"}).set_domain("local");
  ExpectRefused(bomb, Code::kUnsupportedOperator, "expand to more than");
}

// Exporters of functions write weights into their nodes: a large network is no bomb, and one whose
// weights a few calls multiply is.
TEST(ImportTest, WeightsInFunctionsCountFromTheirSecondExpansion) {
  ModelProto model = MakeRelu();
  model.add_opset_import()->set_domain("local");
  model.mutable_opset_import(1)->set_version(1);
  onnx::FunctionProto& function = *model.add_functions();
  function.set_name("Biased");
  function.set_domain("local");
  function.add_opset_import()->set_version(17);
  function.add_input("a");
  function.add_output("b");
  onnx::NodeProto& weight = *function.add_node();
  weight.set_op_type("Constant");
  weight.add_output("w");
  onnx::AttributeProto& value = *weight.add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  TensorProto& tensor = *value.mutable_t();
  tensor.set_data_type(TensorProto::UINT8);
  tensor.add_dims(int64_t{150} << 20);
  tensor.mutable_raw_data()->resize(size_t{150} << 20);
  onnx::NodeProto& last = *function.add_node();
  last.set_op_type("Identity");
  last.add_input("a");
  last.add_output("b");
  const auto call = [&](const char* output) {
    AddNode(*model.mutable_graph(), "Biased", {"x"}, {output}).set_domain("local");
  };
  call("first");
  call("second");
  MustImport(model);
  call("third");
  ExpectRefused(model, Code::kUnsupportedOperator, "expand to more than");
}

// Names in subgraphs are copied each time, whoever has them.
TEST(ImportTest, NamesInSubgraphsOfFunctionsCountEachTime) {
  ModelProto model = MakeRelu();
  model.add_opset_import()->set_domain("local");
  model.mutable_opset_import(1)->set_version(1);
  onnx::FunctionProto& function = *model.add_functions();
  function.set_name("Chosen");
  function.set_domain("local");
  function.add_opset_import()->set_version(17);
  function.add_input("a");
  function.add_output("b");
  onnx::NodeProto& condition = *function.add_node();
  condition.set_op_type("Constant");
  condition.add_output("c");
  onnx::AttributeProto& value = *condition.add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(TensorProto::BOOL);
  value.mutable_t()->set_raw_data(std::string(1, '\1'));
  onnx::NodeProto& choice = *function.add_node();
  choice.set_op_type("If");
  choice.add_input("c");
  choice.add_output("b");
  for (const char* branch : {"then_branch", "else_branch"}) {
    onnx::AttributeProto& attribute = *choice.add_attribute();
    attribute.set_name(branch);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    onnx::GraphProto& graph = *attribute.mutable_g();
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Identity");
    node.add_input("a");
    node.add_output("r");
    graph.add_output()->set_name("r");
    TensorProto& unused = *graph.add_initializer();
    unused.set_name(std::string(size_t{1} << 20, 'n'));
    unused.set_data_type(TensorProto::FLOAT);
    unused.add_float_data(1);
  }
  const auto call = [&](int number) {
    const std::string output = "y" + std::to_string(number);
    AddNode(*model.mutable_graph(), "Chosen", {"x"}, {output.c_str()}).set_domain("local");
  };
  call(0);
  MustImport(model);
  for (int number = 1; number < 100; ++number) call(number);
  ExpectRefused(model, Code::kUnsupportedOperator, "expand to more than");
}

TEST(ImportTest, TensorsOfEveryStorageForm) {
  const Graph graph = MustImport(FindSeed("tensors"));
  const tensor::Tensor& packed = *Find(graph, "packed").constant;
  EXPECT_EQ(packed.AsInt(0), 1);
  EXPECT_EQ(packed.AsInt(1), 2);
  EXPECT_EQ(packed.AsInt(2), -1);
  EXPECT_EQ(Find(graph, "strings").constant->strings(), (std::vector<std::string>{"a", "bc"}));
  EXPECT_EQ(Find(graph, "raw").constant->AsInt(0), 7);
  const tensor::Tensor& sparse = *Find(graph, "sparse").constant;
  EXPECT_EQ(sparse.extents(), (tensor::Extents{3, 2}));
  const std::array<float, 6> dense = {0, 5, 0, 0, 6, 0};
  EXPECT_TRUE(std::ranges::equal(sparse.values<float>(), dense));
  const auto* value = graph.nodes[0].FindAttribute<tensor::Tensor>("value");
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(value->AsDouble(0), 1.0);
  EXPECT_EQ(value->AsDouble(1), -2.0);
}

// Every element type: numbers given in the typed field ONNX lays down for it, against the same
// tensor in raw_data.
TEST(ImportTest, TypedFieldsAndRawDataAgreeForEveryElementType) {
  for (int number = 1; number < tensor::kElementTypeCount; ++number) {
    const auto type = static_cast<tensor::ElementType>(number);
    if (type == tensor::ElementType::kString) continue;
    constexpr int64_t kCount = 5;
    const int64_t size_bytes = tensor::SizeBytes(type, kCount);
    std::string raw;
    for (int64_t at = 0; at < size_bytes; ++at) {
      raw += static_cast<char>(tensor::IsBool(type) ? at % 2 : 17 * at + 3);
    }
    ModelProto model = MakeModel(/*opset=*/25, /*ir_version=*/13);
    for (const char* name : {"typed", "raw"}) {
      TensorProto& tensor = *model.mutable_graph()->add_initializer();
      tensor.set_name(name);
      tensor.set_data_type(number);
      tensor.add_dims(kCount);
    }
    model.mutable_graph()->mutable_initializer(1)->set_raw_data(raw);
    TensorProto& typed = *model.mutable_graph()->mutable_initializer(0);
    const auto number_at = [&raw](int64_t at, size_t width) {
      uint64_t bits = 0;
      std::memcpy(&bits, raw.data() + static_cast<size_t>(at) * width, width);
      return bits;
    };
    const auto width = static_cast<size_t>(std::max(1, tensor::BitWidth(type) / 8));
    using enum tensor::ElementType;
    if (type == kFloat32 || type == kComplex64) {
      for (int64_t at = 0; at < size_bytes / 4; ++at) {
        typed.add_float_data(std::bit_cast<float>(static_cast<uint32_t>(number_at(at, 4))));
      }
    } else if (type == kFloat64 || type == kComplex128) {
      for (int64_t at = 0; at < size_bytes / 8; ++at) {
        typed.add_double_data(std::bit_cast<double>(number_at(at, 8)));
      }
    } else if (type == kInt64) {
      for (int64_t at = 0; at < kCount; ++at) {
        typed.add_int64_data(static_cast<int64_t>(number_at(at, 8)));
      }
    } else if (type == kUint64 || type == kUint32) {
      for (int64_t at = 0; at < kCount; ++at) typed.add_uint64_data(number_at(at, width));
    } else if (type == kFloat6E2M3 || type == kFloat6E3M2) {
      // One element each; the first begins in the low bits.
      uint64_t codes = number_at(0, static_cast<size_t>(size_bytes));
      for (int64_t at = 0; at < kCount; ++at, codes >>= 6) {
        typed.add_int32_data(static_cast<int32_t>(codes & 0x3f));
      }
    } else {
      const int64_t numbers = tensor::IsPacked(type) ? size_bytes : kCount;
      for (int64_t at = 0; at < numbers; ++at) {
        int64_t value = static_cast<int64_t>(number_at(at, width));
        if (type == kInt8) value = int64_t{static_cast<int8_t>(value)};
        if (type == kInt16) value = static_cast<int16_t>(value);
        typed.add_int32_data(static_cast<int32_t>(value));
      }
    }
    const Graph graph = MustImport(model);
    const tensor::Tensor& from_typed = *Find(graph, "typed").constant;
    const tensor::Tensor& from_raw = *Find(graph, "raw").constant;
    EXPECT_TRUE(std::ranges::equal(from_typed.bytes(), from_raw.bytes())) << tensor::Name(type);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(from_raw.data()) % 64, 0u);
  }
}

TEST(ImportTest, RefusesTensorsWhoseDataDoNotFit) {
  const auto with = [](auto change) {
    ModelProto model = MakeRelu();
    TensorProto& tensor = AddFloatInitializer(*model.mutable_graph(), "w", {2, 3});
    change(tensor);
    return model;
  };
  ExpectRefused(with([](TensorProto& t) { t.add_float_data(1); }), Code::kInvalidModel,
                "has 7 numbers in float_data, which do not make float[2, 3]");
  ExpectRefused(with([](TensorProto& t) { t.set_raw_data("123"); }), Code::kInvalidModel,
                "has 3 bytes of raw_data, where float[2, 3] needs 24");
  ExpectRefused(with([](TensorProto& t) { t.set_dims(0, -2); }), Code::kInvalidModel,
                "extent -2, below the smallest allowed (0)");
  ExpectRefused(with([](TensorProto& t) {
                  t.set_dims(0, INT64_MAX);
                  t.set_dims(1, INT64_MAX);
                }),
                Code::kInvalidModel, "more than 2^63 bytes");
  ExpectRefused(with([](TensorProto& t) { t.set_dims(0, int64_t{1} << 58); }), Code::kInvalidModel,
                "which do not make");
  ExpectRefused(with([](TensorProto& t) { t.set_data_type(99); }), Code::kInvalidModel,
                "element type 99, which ONNX does not define");
  ExpectRefused(with([](TensorProto& t) { t.mutable_segment(); }), Code::kUnsupportedDatatype,
                "segments");
  ExpectRefused(with([](TensorProto& t) { t.clear_name(); }), Code::kInvalidModel, "no name");
  ExpectRefused(with([](TensorProto& t) {
                  for (int axis = 0; axis < 70; ++axis) t.add_dims(1);
                }),
                Code::kUnsupportedShape, "rank 72, beyond the highest supported (64)");
}

// Five elements of 6 bits, in 30 bits or in five numbers.
TEST(ImportTest, RefusesElementsOfSixBitsThatDoNotFit) {
  const auto with = [](auto change) {
    ModelProto model = MakeModel(/*opset=*/28, /*ir_version=*/14);
    TensorProto& tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name("w");
    tensor.set_data_type(TensorProto::FLOAT6E3M2);
    tensor.add_dims(5);
    change(tensor);
    return model;
  };
  const auto numbers = [](std::initializer_list<int32_t> values) {
    return [values](TensorProto& t) {
      for (const int32_t value : values) t.add_int32_data(value);
    };
  };
  MustImport(with(numbers({0, 1, 63, 32, 5})));
  ExpectRefused(with(numbers({0, 1, 64, 32, 5})), Code::kInvalidModel,
                "'w' has 64 in int32_data, which is outside [0, 63] of 6 bits");
  ExpectRefused(with(numbers({0, 1, 2, 3, -1})), Code::kInvalidModel, "has -1 in int32_data");
  ExpectRefused(with(numbers({0, 1, 2, 3})), Code::kInvalidModel,
                "has 4 numbers in int32_data, which do not make float6e3m2[5]");
  ExpectRefused(with([](TensorProto& t) { t.set_raw_data("12345"); }), Code::kInvalidModel,
                "has 5 bytes of raw_data, where float6e3m2[5] needs 4");
}

TEST(ImportTest, RefusesSparseTensorsThatExplodeOrPointOutside) {
  ModelProto model = FindSeed("tensors");
  model.mutable_graph()->mutable_sparse_initializer(0)->set_dims(0, int64_t{1} << 40);
  ExpectRefused(model, Code::kUnsupportedShape, "268435456");
  model = FindSeed("tensors");
  model.mutable_graph()->mutable_sparse_initializer(0)->mutable_indices()->set_int64_data(1, 2);
  ExpectRefused(model, Code::kInvalidModel, "index 2 outside extent 2 of axis 1");
  model = FindSeed("tensors");
  model.mutable_graph()->mutable_sparse_initializer(0)->clear_indices();
  ExpectRefused(model, Code::kInvalidModel, "lacks its values or its indices");
}

TEST(ImportTest, VersionsBeyondTheNewestAreUnsupported) {
  ExpectRefused(MakeRelu(17, NewestIrVersion() + 1), Code::kUnsupportedVersion,
                "IR version (" + std::to_string(NewestIrVersion() + 1) + ")");
  ExpectRefused(MakeRelu(29, 8), Code::kUnsupportedVersion,
                "(29) exceeds the newest supported (28)");
  ExpectRefused(MakeRelu(17, 0), Code::kInvalidModel, "IR version (0)");
  ExpectRefused(MakeRelu(0, 8), Code::kInvalidModel, "is below the first (1)");
  ModelProto model = MakeRelu();
  model.clear_opset_import();
  ExpectRefused(model, Code::kInvalidModel, "imports no operator set");
  model.set_ir_version(2);
  AddAttribute(*model.mutable_graph()->mutable_node(0), "consumed_inputs", AttributeProto::INTS)
      .add_ints(0);
  EXPECT_EQ(MustImport(model).nodes[0].since_version, 1);
}

TEST(ImportTest, OperatorVersionsFollowTheOperatorSet) {
  for (const auto& [opset, since] : {std::pair(5, 1), std::pair(6, 6), std::pair(12, 6),
                                     std::pair(13, 13), std::pair(14, 14), std::pair(28, 14)}) {
    const Graph graph = MustImport(MakeRelu(opset, 8));
    EXPECT_EQ(graph.nodes[0].since_version, since) << opset;
  }
}

TEST(ImportTest, TheVersionTableIsTheLibrarys) {
  for (const auto& [domain, range] :
       onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map()) {
    EXPECT_EQ(NewestOpset(domain), range.second) << domain;
  }
  EXPECT_TRUE(SupportedOpsets().starts_with("ai.onnx:28 ai.onnx.ml:5"));
  EXPECT_TRUE(SupportedIrVersions().starts_with("1 2 3 4"));
}

TEST(ImportTest, DomainsAreResolved) {
  ModelProto model = MakeRelu();
  model.mutable_opset_import(0)->set_domain("ai.onnx");
  EXPECT_EQ(MustImport(model).nodes[0].domain, "");
  model.mutable_graph()->mutable_node(0)->set_domain("ai.onnx");
  EXPECT_EQ(MustImport(model).nodes[0].domain, "");
  model.mutable_graph()->mutable_node(0)->set_domain("ai.onnx.ml");
  ExpectRefused(model, Code::kUnsupportedOperator, "Operator 'Relu' of domain 'ai.onnx.ml'");
  model.mutable_graph()->mutable_node(0)->set_domain("com.example");
  ExpectRefused(model, Code::kInvalidModel, "Operator set 'com.example'");
  onnx::OperatorSetIdProto& other = *model.add_opset_import();
  other.set_domain("com.example");
  other.set_version(99);
  ExpectRefused(model, Code::kUnsupportedOperator, "while importing node 0 (com.example.Relu)");
  model = MakeRelu();
  model.mutable_graph()->mutable_node(0)->set_op_type("Rely");
  ExpectRefused(model, Code::kUnsupportedOperator, "'Rely'");
  model = MakeRelu(6);
  model.mutable_graph()->mutable_node(0)->set_op_type("Mish");
  ExpectRefused(model, Code::kUnsupportedOperator, "does not exist yet in operator set 6");
  model = MakeRelu(10);
  model.mutable_graph()->mutable_node(0)->set_op_type("Upsample");
  ExpectRefused(model, Code::kInvalidModel, "deprecated since operator set 10");
}

// As float16 converters write them: casts are appended, their readers stand before them.
TEST(ImportTest, SortsNodesAndKeepsTheirNumbers) {
  ModelProto model = MakeRelu();
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.mutable_node(0)->set_input(0, "cast");
  AddNode(graph, "Neg", {"x"}, {"cast"});
  for (const bool lifts_values : {true, false}) {
    ImportOptions options;
    options.lift_values = lifts_values;
    const auto imported = ImportText(model.SerializeAsString(), options);
    ASSERT_TRUE(imported.ok()) << imported.status().Text();
    ASSERT_EQ(imported->nodes.size(), 2u);
    EXPECT_EQ(imported->nodes[0].op_type, "Neg");
    EXPECT_EQ(imported->nodes[0].index, 1);
    EXPECT_EQ(imported->nodes[1].index, 0);
    EXPECT_EQ(imported->inputs.size(), 1u);
  }
}

// Clients number their nodes with an attribute that no operator has.
TEST(ImportTest, IgnoresAndNotesAttributesOfNoOperator) {
  ModelProto model = MakeRelu();
  onnx::GraphProto& graph = *model.mutable_graph();
  AddNode(graph, "Neg", {"y"}, {"z"});
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    AddAttribute(node, "net_pos", AttributeProto::INT).set_i(3);
  }
  const auto imported = ImportText(model.SerializeAsString(), {});
  ASSERT_TRUE(imported.ok()) << imported.status().Text();
  EXPECT_TRUE(imported->nodes[0].attributes.empty());
  ASSERT_EQ(imported->notes.size(), 1u) << "once for the model";
  EXPECT_NE(imported->notes[0].find("Attribute 'net_pos' is ignored"), std::string::npos);
}

// What a definition says of a node, as that its product may be rounded, no file can say.
TEST(ImportTest, KeepsAttributesOfThisProjectInDefinitionsAlone) {
  ModelProto model = MakeRelu();
  onnx::NodeProto& node = *model.mutable_graph()->mutable_node(0);
  AddAttribute(node, "__may_round_to_bytes", AttributeProto::INT).set_i(1);
  AddAttribute(node, "net_pos", AttributeProto::INT).set_i(1);
  for (const bool is_definition : {false, true}) {
    ImportOptions options;
    options.is_definition = is_definition;
    const auto imported = ImportText(model.SerializeAsString(), options);
    ASSERT_TRUE(imported.ok()) << imported.status().Text();
    EXPECT_EQ(imported->nodes[0].attributes.contains("__may_round_to_bytes"), is_definition);
    EXPECT_FALSE(imported->nodes[0].attributes.contains("net_pos"));
    EXPECT_EQ(imported->notes.size(), 1u);
  }
}

TEST(ImportTest, TakesAnInputThatIsListedTwiceOnce) {
  ModelProto model = MakeRelu();
  *model.mutable_graph()->add_input() = model.graph().input(0);
  const auto imported = ImportText(model.SerializeAsString(), {});
  ASSERT_TRUE(imported.ok()) << imported.status().Text();
  EXPECT_EQ(imported->inputs.size(), 1u);
}

TEST(ImportTest, TakesAnOutputThatIsListedTwiceOnce) {
  ModelProto model = MakeRelu();
  AddFloat(*model.mutable_graph()->mutable_output(), "y", {2});
  const auto imported = ImportText(model.SerializeAsString(), {});
  ASSERT_TRUE(imported.ok()) << imported.status().Text();
  EXPECT_EQ(imported->outputs.size(), 1u);
}

TEST(ImportTest, NodesAreCheckedAgainstTheirSchema) {
  const auto with = [](auto change) {
    ModelProto model = MakeRelu();
    change(*model.mutable_graph()->mutable_node(0));
    return model;
  };
  using Node = onnx::NodeProto;
  ExpectRefused(with([](Node& n) { n.add_input("x"); }), Code::kInvalidModel,
                "number of inputs (2) is outside the operator's range [1, 1]");
  ExpectRefused(with([](Node& n) { n.clear_output(); }), Code::kInvalidModel,
                "number of outputs (0)");
  ExpectRefused(with([](Node& n) { n.set_input(0, ""); }), Code::kInvalidModel,
                "input 0 ('X') is omitted");
  // Relu-1 has it, Relu-14 does not.
  ExpectRefused(with([](Node& n) { AddAttribute(n, "consumed_inputs", AttributeProto::INTS); }),
                Code::kInvalidModel, "Attribute 'consumed_inputs' is not one of the operator's");
  ExpectRefused(with([](Node& n) { n.clear_op_type(); }), Code::kInvalidModel, "no operator");
  ExpectRefused(with([](Node& n) {
                  n.set_op_type("LeakyRelu");
                  AddAttribute(n, "alpha", AttributeProto::INT).set_i(1);
                }),
                Code::kInvalidModel,
                "Attribute 'alpha' is an integer, but the operator's is a float");
  ExpectRefused(with([](Node& n) {
                  n.set_op_type("LeakyRelu");
                  AddAttribute(n, "alpha", AttributeProto::FLOAT).set_f(1);
                  AddAttribute(n, "alpha", AttributeProto::FLOAT).set_f(2);
                }),
                Code::kInvalidModel, "Attribute 'alpha' is given twice");
  ExpectRefused(with([](Node& n) {
                  n.set_op_type("LeakyRelu");
                  AddAttribute(n, "alpha", AttributeProto::FLOAT).set_ref_attr_name("a");
                }),
                Code::kInvalidModel, "but is in none");
  ExpectRefused(with([](Node& n) { n.set_op_type("Cast"); }), Code::kInvalidModel,
                "Attribute 'to' is missing");
  ExpectRefused(with([](Node& n) {
                  n.set_op_type("ConstantOfShape");
                  AddAttribute(n, "value", AttributeProto::TENSOR);
                }),
                Code::kInvalidModel, "holds none");
}

TEST(ImportTest, AttributesWithoutTypeAreReadByTheFieldTheyFill) {
  ModelProto model = MakeRelu();
  onnx::NodeProto& node = *model.mutable_graph()->mutable_node(0);
  node.set_op_type("LeakyRelu");
  AttributeProto& alpha = *node.add_attribute();
  alpha.set_name("alpha");
  alpha.set_f(0.5f);
  EXPECT_EQ(*MustImport(model).nodes[0].FindAttribute<float>("alpha"), 0.5f);
}

TEST(ImportTest, NamesMustBeDefinedOnceAndBeforeTheyAreRead) {
  ModelProto model = MakeRelu();
  AddNode(*model.mutable_graph(), "Neg", {"x"}, {"y"});
  ExpectRefused(model, Code::kInvalidModel, "'y' is defined twice");
  model = MakeRelu();
  AddFloat(*model.mutable_graph()->mutable_input(), "x", {2});
  EXPECT_EQ(MustImport(model).inputs.size(), 1u);
  AddFloat(*model.mutable_graph()->mutable_input(), "x", {3});
  ExpectRefused(model, Code::kInvalidModel, "Graph input 'x' is declared twice, with two types");
  model = MakeRelu();
  AddFloatInitializer(*model.mutable_graph(), "w", {1});
  AddFloatInitializer(*model.mutable_graph(), "w", {1});
  ExpectRefused(model, Code::kInvalidModel, "'w' is defined twice");
  model = MakeRelu();
  AddNode(*model.mutable_graph(), "Neg", {"nothing"}, {"z"});
  ExpectRefused(model, Code::kInvalidModel, "Input 'nothing' is defined by nothing");
  ImportOptions claim;
  claim.lift_values = false;
  model = MakeRelu();
  AddNode(*model.mutable_graph(), "Neg", {"turned"}, {"z"});
  AddNode(*model.mutable_graph(), "Neg", {"z"}, {"turned"});
  ExpectRefused(model, Code::kInvalidModel, "The graph has a cycle of 2 nodes");
  ExpectRefused(model, Code::kInvalidModel, "The graph has a cycle of 2 nodes", claim);
  model = MakeRelu();
  model.mutable_graph()->mutable_output(0)->set_name("nowhere");
  ExpectRefused(model, Code::kInvalidModel, "'nowhere' is computed by no node");
  ExpectRefused(model, Code::kInvalidModel, "'nowhere' is computed by no node", claim);
  model = MakeRelu();
  model.mutable_graph()->mutable_input(0)->clear_name();
  ExpectRefused(model, Code::kInvalidModel, "no name");
  model = MakeRelu();
  model.clear_graph();
  ExpectRefused(model, Code::kInvalidModel, "no graph");
}

TEST(ImportTest, MissingOutputDeclarationsMeanWhatNothingReads) {
  ModelProto model = MakeRelu();
  AddNode(*model.mutable_graph(), "Neg", {"y"}, {"z"});
  model.mutable_graph()->clear_output();
  const Graph graph = MustImport(model);
  ASSERT_EQ(graph.outputs.size(), 1u);
  EXPECT_EQ(graph.values[static_cast<size_t>(graph.outputs[0])].name, "z");
}

TEST(ImportTest, UndeclaredInputsAreUnknownInSupportQuestionsOnly) {
  ModelProto model = MakeRelu();
  model.mutable_graph()->clear_input();
  ExpectRefused(model, Code::kInvalidModel, "Input 'x' is defined by nothing");
  ImportOptions claim;
  claim.lift_values = false;
  const Graph graph = MustImport(model, claim);
  ASSERT_EQ(graph.inputs.size(), 1u);
  EXPECT_EQ(Find(graph, "x").type.kind, graph::Type::Kind::kUnknown);
}

TEST(ImportTest, SupportQuestionsKeepSmallValuesAndLeaveLargeOnesOut) {
  ModelProto model = MakeRelu();
  AddFloatInitializer(*model.mutable_graph(), "small", {64});
  AddFloatInitializer(*model.mutable_graph(), "large", {65});
  TensorProto& empty = AddFloatInitializer(*model.mutable_graph(), "empty", {0});
  EXPECT_EQ(empty.float_data_size(), 0);
  AddFloatInitializer(*model.mutable_graph(), "valueless", {3}).clear_float_data();
  ImportOptions claim;
  claim.lift_values = false;
  const Graph graph = MustImport(model, claim);
  EXPECT_TRUE(Find(graph, "small").constant);
  EXPECT_FALSE(Find(graph, "small").is_weight);
  EXPECT_FALSE(Find(graph, "large").constant);
  EXPECT_TRUE(Find(graph, "large").is_weight);
  EXPECT_EQ(graph::ToString(Find(graph, "large").type), "float[65]");
  EXPECT_TRUE(Find(graph, "empty").constant);
  EXPECT_TRUE(Find(graph, "valueless").is_weight);
  ExpectRefused(model, Code::kInvalidModel, "has 0 numbers in float_data");
}

// Weights of a model x * w, given as int64 by descriptor.
class WeightsTest : public ::testing::Test {
 protected:
  static ModelProto MakeProduct(bool declares_weight) {
    ModelProto model = MakeModel(7, 3);
    AddFloat(*model.mutable_graph()->mutable_input(), "x", {2});
    if (declares_weight) AddFloat(*model.mutable_graph()->mutable_input(), "w", {2});
    AddNode(*model.mutable_graph(), "Mul", {"x", "w"}, {"y"});
    AddFloat(*model.mutable_graph()->mutable_output(), "y", {2});
    return model;
  }

  ImportOptions Give(const std::string& name, std::vector<int64_t> extents = {2}) {
    ImportOptions options;
    options.weights.push_back({name, tensor::ElementType::kInt64, std::move(extents),
                               reinterpret_cast<const std::byte*>(values_.data())});
    return options;
  }

  std::array<int64_t, 2> values_ = {5, 6};
};

TEST_F(WeightsTest, AreCopiedAndTheirTypeWins) {
  for (const bool declares_weight : {true, false}) {
    values_ = {5, 6};
    const Graph graph = MustImport(MakeProduct(declares_weight), Give("w"));
    values_ = {0, 0};
    const Value& weight = Find(graph, "w");
    ASSERT_TRUE(weight.constant);
    EXPECT_EQ(weight.constant->type(), tensor::ElementType::kInt64);
    EXPECT_EQ(weight.constant->AsInt(1), 6);
    ASSERT_EQ(graph.inputs.size(), 1u);
    EXPECT_EQ(graph.values[static_cast<size_t>(graph.inputs[0])].name, "x");
  }
}

TEST_F(WeightsTest, WinOverInitializers) {
  ModelProto model = MakeProduct(true);
  AddFloatInitializer(*model.mutable_graph(), "w", {2});
  EXPECT_EQ(MustImport(model, Give("w")).inputs.size(), 1u);
  EXPECT_EQ(Find(MustImport(model, Give("w")), "w").constant->AsInt(0), 5);
}

TEST_F(WeightsTest, AreRefusedWhereTheyDoNotBelong) {
  ExpectRefused(MakeProduct(true), Code::kInvalidName, "Weight 'v' is neither", Give("v"));
  ExpectRefused(MakeProduct(true), Code::kInvalidName, "a value that the model computes",
                Give("y"));
  ImportOptions twice = Give("w");
  twice.weights.push_back(twice.weights[0]);
  ExpectRefused(MakeProduct(true), Code::kInvalidName, "given twice", twice);
  ExpectRefused(MakeProduct(true), Code::kMismatchingShape, "has rank 2 but is declared with 1",
                Give("w", {1, 2}));
  ExpectRefused(MakeProduct(true), Code::kMismatchingShape,
                "has extent 1 on axis 0 but is declared with 2", Give("w", {1}));
  ExpectRefused(MakeProduct(true), Code::kInvalidShape,
                "has extent 0 on axis 0 but is declared with 2", Give("w", {0}));
  ImportOptions null = Give("w");
  null.weights[0].data = nullptr;
  ExpectRefused(MakeProduct(true), Code::kInvalidMemoryLocation, "has no data", null);
  ExpectRefused(MakeProduct(false), Code::kInvalidShape, "above the largest possible",
                Give("w", {-1}));
  ExpectRefused(MakeProduct(false), Code::kNoSystemMemory, "",
                Give("w", {int64_t{1} << 40, int64_t{1} << 40}));
}

TEST(ImportTest, DeclaredTypesOfEveryKind) {
  const Graph graph = MustImport(FindSeed("sequences"));
  EXPECT_EQ(graph::ToString(Find(graph, "sequence").type), "optional(sequence(float[N, ?]))");
  ModelProto model = MakeRelu();
  model.mutable_graph()->mutable_input(0)->clear_type();
  EXPECT_EQ(Find(MustImport(model), "x").type.kind, graph::Type::Kind::kUnknown);
  auto* dim = [&model] {
    model = MakeRelu();
    return model.mutable_graph()
        ->mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0);
  }();
  dim->set_dim_value(-1);
  EXPECT_EQ(graph::ToString(Find(MustImport(model), "x").type), "float[?]");
  dim->set_dim_value(-2);
  ExpectRefused(model, Code::kInvalidModel, "extent (-2)");
  model = MakeRelu();
  model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_opaque_type();
  ExpectRefused(model, Code::kUnsupportedDatatype, "Opaque");
}

TEST(ImportTest, EveryTruncationIsRefusedWithASentenceOrSound) {
  for (const auto& [name, bytes] : testing::MakeSeedModels()) {
    for (size_t length = 0; length < bytes.size(); ++length) {
      const auto graph = ImportText(bytes.substr(0, length));
      if (graph.ok()) {
        EXPECT_TRUE(graph::Verify(*graph).ok()) << name << " cut at " << length;
      } else {
        EXPECT_TRUE(graph.status().sentence().ends_with(".")) << graph.status().Text();
      }
    }
  }
}

TEST(ImportTest, MutatedModelsAreRefusedWithASentenceOrSound) {
  std::vector<std::string> seeds;
  for (auto& [name, bytes] : testing::MakeSeedModels()) seeds.push_back(std::move(bytes));
  testing::ModelMutator mutator(std::move(seeds), /*seed=*/42);
  int refused = 0;
  constexpr int kModels = 5000;
  for (int index = 0; index < kModels; ++index) {
    const std::string bytes = mutator.Next();
    for (const bool lift_values : {true, false}) {
      ImportOptions options;
      options.lift_values = lift_values;
      const auto graph = ImportText(bytes, options);
      if (graph.ok()) {
        ASSERT_TRUE(graph::Verify(*graph).ok()) << "model " << index;
        continue;
      }
      ++refused;
      ASSERT_TRUE(graph.status().sentence().ends_with(".")) << graph.status().Text();
      const Code code = graph.status().code();
      ASSERT_TRUE(code == Code::kInvalidProtobuf || code == Code::kInvalidModel ||
                  code == Code::kUnsupportedVersion || code == Code::kUnsupportedOperator ||
                  code == Code::kUnsupportedAttribute || code == Code::kUnsupportedDatatype ||
                  code == Code::kUnsupportedShape || code == Code::kMismatchingShape ||
                  code == Code::kMismatchingDatatype || code == Code::kNoSystemMemory)
          << graph.status().Text();
    }
  }
  EXPECT_GT(refused, kModels / 2);
  EXPECT_LT(refused, 2 * kModels) << "no mutation kept a model whole";
}

}  // namespace
}  // namespace onnxifi::model
