// SPDX-License-Identifier: Apache-2.0
//
// Linked into the tests of the CPU plugin: ONNXIFI_TEST_CACHES=large|medium|small runs all of them
// as on a processor with such caches. None may depend on it.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <optional>
#include <string_view>

#include "backends/cpu/processor/testing/stated_caches.h"

namespace onnxifi::processor {
namespace {

class TestCaches : public testing::Environment {
 public:
  void SetUp() override {
    const char* const told = getenv("ONNXIFI_TEST_CACHES");
    if (told == nullptr) return;
    const std::string_view name = told;
    if (name == "large") {
      stated_.emplace(kLargeCaches);
    } else if (name == "medium") {
      stated_.emplace(kMediumCaches);
    } else if (name == "small") {
      stated_.emplace(kSmallCaches);
    } else {
      FAIL() << "ONNXIFI_TEST_CACHES is '" << name << "', not large, medium or small.";
    }
  }
  void TearDown() override { stated_.reset(); }

 private:
  std::optional<StatedCaches> stated_;
};

const testing::Environment* const kTestCaches = testing::AddGlobalTestEnvironment(new TestCaches());

}  // namespace
}  // namespace onnxifi::processor
