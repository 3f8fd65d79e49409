// SPDX-License-Identifier: Apache-2.0
//
// The command line of onnxifi_run: what it refuses before it reads a model, and what names of
// devices mean.

#include "apps/onnxifi_run/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <initializer_list>

namespace onnxifi::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class OptionsTest : public ::testing::Test {
 protected:
  std::optional<int> Parse(std::initializer_list<const char*> arguments) {
    std::vector<std::string> texts = {"onnxifi_run", "model.onnx"};
    texts.insert(texts.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    options_ = {};
    return ParseOptions(static_cast<int>(pointers.size()), pointers.data(), options_);
  }

  // What is printed about a command line that is wrong.
  std::string Refusal(std::initializer_list<const char*> arguments) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(Parse(arguments), 2);
    return testing::internal::GetCapturedStderr();
  }

  Options options_;
};

TEST_F(OptionsTest, TellTheVersion) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(Parse({"--version"}), 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "onnxifi_run 1.2.3\n");
}

// As a shell's variable that is not set gives it. An --expect of nothing would compare nothing.
TEST_F(OptionsTest, RefuseAPathOfNoCharacters) {
  for (const char* option : {"--library", "--output", "--expect", "--replay-plan"}) {
    EXPECT_THAT(Refusal({option, ""}), HasSubstr(std::string(option) + ": names no file"));
  }
  EXPECT_THAT(Refusal({"--profile", "--trace", ""}), HasSubstr("--trace: names no file"));
}

// After the model has run there would be no file.
TEST_F(OptionsTest, RefuseAPlanThatIsNotWritten) {
  EXPECT_THAT(Refusal({"--plan", "plan.txt"}),
              HasSubstr("'plan.txt' ends in none of .json, .dot and .svg"));
  for (const char* file : {"plan.json", "plan.dot", "plan.svg"}) {
    EXPECT_EQ(Parse({"--plan", file}), std::nullopt);
    EXPECT_EQ(options_.plan, file);
  }
}

TEST_F(OptionsTest, TakeAPluginForItsFirstDevice) {
  EXPECT_EQ(Parse({"--pin", "a=cpu", "--pin", "b:c=opencl:1", "--placement", "prefer:null,cpu:0"}),
            std::nullopt);
  EXPECT_THAT(options_.pins, ElementsAre(Pair("a", "cpu:0"), Pair("b:c", "opencl:1")));
  EXPECT_THAT(options_.placement_keys, ElementsAre("null:0", "cpu:0"));
}

}  // namespace
}  // namespace onnxifi::run
