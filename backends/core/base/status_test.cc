// SPDX-License-Identifier: Apache-2.0
//
// The codes, made from the public list of statuses, and the table of what functions answer.

#include "backends/core/base/status.h"

#include <gtest/gtest.h>

#include <onnxifi/onnxifi.hpp>
#include <set>
#include <string_view>

#include "backends/core/base/function.h"

namespace onnxifi::base {
namespace {

TEST(StatusTest, CodesHaveTheNumbersAndNamesOfTheInterface) {
  EXPECT_EQ(static_cast<onnxStatus>(Code::kOk), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(static_cast<onnxStatus>(Code::kInvalidMemoryLocation), 0x010E);
  EXPECT_EQ(CodeName(Code::kInvalidMemoryLocation), "INVALID_MEMORY_LOCATION");
  EXPECT_EQ(CodeName(Code::kInternalError), "INTERNAL_ERROR");
  EXPECT_EQ(CodeName(static_cast<Code>(0x0777)), "unknown status");
}

TEST(StatusTest, ErrorsTellWhatAStatusMeansWhereThereIsNoSentence) {
  const Error silent{ONNXIFI_STATUS_INVALID_MODEL, {}};
  EXPECT_EQ(silent.Text(), "INVALID_MODEL: The model breaks a rule of ONNX.");
  const Error told{ONNXIFI_STATUS_INVALID_MODEL, "Node 3 has no input."};
  EXPECT_EQ(told.Text(), "INVALID_MODEL: Node 3 has no input.");
  EXPECT_EQ((Error{0x0777, {}}).Text(), "status 1911");
}

TEST(FunctionTest, NamesAreThoseOfTheInterface) {
  EXPECT_EQ(FunctionName(Function::kGetBackendIDs), "onnxGetBackendIDs");
  EXPECT_EQ(FunctionName(Function::kReleaseGraph), "onnxReleaseGraph");
  // The last of the fifteen.
  EXPECT_EQ(static_cast<size_t>(Function::kReleaseGraph) + 1, kStandardFunctionCount);
  const std::set<std::string_view> names(std::begin(kFunctionNames), std::end(kFunctionNames));
  EXPECT_EQ(names.size(), kFunctionCount);
}

TEST(FunctionTest, TableIsThatOfTheInterface) {
  EXPECT_TRUE(MayAnswer(Function::kInitGraph, Code::kInvalidModel));
  EXPECT_FALSE(MayAnswer(Function::kRunGraph, Code::kInvalidModel));
  // Needed, and forgotten by the interface: a weight without a name.
  EXPECT_TRUE(MayAnswer(Function::kInitGraph, Code::kInvalidName));
  EXPECT_FALSE(MayAnswer(Function::kGetBackendInfo, Code::kInternalError));
  EXPECT_TRUE(MayAnswer(Function::kGetGraphPlan, Code::kOk));
  EXPECT_FALSE(MayAnswer(Function::kInitGraph, static_cast<Code>(0x0777)));
}

}  // namespace
}  // namespace onnxifi::base
