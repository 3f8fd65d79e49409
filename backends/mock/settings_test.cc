// SPDX-License-Identifier: Apache-2.0
//
// Settings: what is written is what is read.

#include "backends/mock/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onnxifi::mock {
namespace {

using std::chrono::microseconds;
using testing::HasSubstr;

TEST(MockSettings, ReadsEveryKey) {
  const auto settings = ParseSettings(R"({
    "devices": 3, "type": "npu", "operators": ["Add", "Conv"], "refused": ["Conv"],
    "lies": ["Add"], "emulated": ["Add"], "behind": "opencl", "step_ms": {"Add": 1.5, "*": 0.25}, "launch_ms": 2, "init_ms": 3,
    "gate_opens_at": 5, "memory_bytes": 4096, "misstates": ["run shapes"], "fails_at_run": 7, "vanishes_at_run": 9})");
  ASSERT_TRUE(settings.ok()) << settings.status().Text();
  EXPECT_EQ(settings->device_count, 3);
  EXPECT_EQ(settings->device_type, onnxEnum{ONNXIFI_DEVICE_TYPE_NPU});
  EXPECT_TRUE(settings->Claims("Add"));
  EXPECT_FALSE(settings->Claims("Conv"));
  EXPECT_FALSE(settings->Claims("Mul"));
  EXPECT_TRUE(settings->Claims("Constant"));
  EXPECT_TRUE(settings->lies.contains("Add"));
  EXPECT_TRUE(settings->Emulates("Add"));
  EXPECT_FALSE(settings->Emulates("Mul"));
  EXPECT_EQ(settings->memory_types, uint64_t{ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER});
  EXPECT_EQ(settings->StepTime("Add"), microseconds(1500));
  EXPECT_EQ(settings->StepTime("Mul"), microseconds(250));
  EXPECT_EQ(settings->StepTime("Constant"), microseconds(0));
  EXPECT_EQ(settings->launch_ms, 2);
  EXPECT_EQ(settings->init_ms, 3);
  EXPECT_EQ(settings->gate_opens_at, 5);
  EXPECT_EQ(settings->memory_bytes, 4096);
  EXPECT_TRUE(settings->misstates.contains("run shapes"));
  EXPECT_EQ(settings->fails_at_run, 7);
  EXPECT_EQ(settings->vanishes_at_run, 9);
}

TEST(MockSettings, ClaimEverythingByDefault) {
  const auto settings = ReadSettings("/nonexistent/file.json");
  ASSERT_TRUE(settings.ok());
  EXPECT_TRUE(settings->Claims("Add"));
  EXPECT_EQ(settings->StepTime("Add"), microseconds(0));
}

TEST(MockSettings, RefuseWhatTheyDoNotKnow) {
  const auto refuse = [](const char* text) {
    const auto settings = ParseSettings(text);
    return settings.ok() ? std::string() : settings.status().Text();
  };
  EXPECT_THAT(refuse(R"({"operator": ["Add"]})"), HasSubstr("no key 'operator'"));
  EXPECT_THAT(refuse(R"({"type": "tpu"})"), HasSubstr("'tpu' is none of"));
  EXPECT_THAT(refuse(R"({"behind": "glide"})"), HasSubstr("glide"));
  EXPECT_THAT(refuse(R"({"misstates": ["weather"]})"), HasSubstr("'weather' is nothing"));
  EXPECT_THAT(refuse(R"({"clock": "/nonexistent/clock"})"), HasSubstr("'/nonexistent/clock'"));
  EXPECT_THAT(refuse(R"({"launch_ms": "long"})"), HasSubstr("cannot be used"));
  EXPECT_THAT(refuse(R"({"devices": 0})"), HasSubstr("no device"));
  EXPECT_THAT(refuse("[]"), HasSubstr("no JSON object"));
  EXPECT_THAT(refuse("{"), HasSubstr("cannot be used"));
}

}  // namespace
}  // namespace onnxifi::mock
