// SPDX-License-Identifier: Apache-2.0
//
// OperatorSetsOf: both spellings of the default domain, and models from before imports.

#include "backends/core/model/operator_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

namespace onnxifi::model {
namespace {

using testing::ElementsAre;
using testing::Pair;

base::Result<std::map<std::string, int64_t>> Read(const onnx::ModelProto& model) {
  const std::string bytes = model.SerializeAsString();
  return OperatorSetsOf({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
}

onnx::ModelProto MakeModel(int64_t ir_version,
                           const std::vector<std::pair<std::string, int64_t>>& imports) {
  onnx::ModelProto model;
  model.set_ir_version(ir_version);
  for (const auto& [domain, version] : imports) {
    model.add_opset_import()->set_domain(domain);
    model.mutable_opset_import()->rbegin()->set_version(version);
  }
  return model;
}

TEST(OperatorSetsOf, GivesEachDomainOnce) {
  EXPECT_THAT(*Read(MakeModel(8, {{"ai.onnx", 13}, {"own", 2}, {"", 13}})),
              ElementsAre(Pair("", 13), Pair("own", 2)));
}

TEST(OperatorSetsOf, KnowsModelsFromBeforeImports) {
  EXPECT_THAT(*Read(MakeModel(2, {})), ElementsAre(Pair("", 1)));
}

TEST(OperatorSetsOf, RefusesWhatCannotBe) {
  EXPECT_EQ(Read(MakeModel(8, {})).status().code(), base::Code::kInvalidModel);
  EXPECT_EQ(Read(MakeModel(8, {{"", 1000}})).status().code(), base::Code::kUnsupportedVersion);
  const std::byte broken[] = {std::byte{0x3a}, std::byte{0x05}};
  EXPECT_EQ(OperatorSetsOf(broken).status().code(), base::Code::kInvalidProtobuf);
}

}  // namespace
}  // namespace onnxifi::model
