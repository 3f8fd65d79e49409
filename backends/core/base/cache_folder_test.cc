// SPDX-License-Identifier: Apache-2.0
//
// Which variable wins, and what an empty one means.

#include "backends/core/base/cache_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

namespace onnxifi::base {
namespace {

// Sets variables for its life.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::optional<std::string>>& variables) {
    for (const auto& [name, value] : variables) {
      const char* before = std::getenv(name.c_str());
      before_[name] = before == nullptr ? std::nullopt : std::optional<std::string>(before);
      Set(name, value);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : before_) Set(name, value);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static void Set(const std::string& name, const std::optional<std::string>& value) {
    if (value) {
      setenv(name.c_str(), value->c_str(), /*overwrite=*/1);
    } else {
      unsetenv(name.c_str());
    }
  }
  std::map<std::string, std::optional<std::string>> before_;
};

TEST(CacheFolderTest, OwnVariableWins) {
  const Environment environment({{"ONNXIFI_CACHE_DIR", "/own"},
                                 {"ONNXIFI_CACHE_HOME", "/tools"},
                                 {"XDG_CACHE_HOME", "/shared"},
                                 {"HOME", "/home/a"}});
  EXPECT_EQ(CacheFolder(), "/own");
  EXPECT_EQ(ToolCacheFolder(), "/tools");
}

TEST(CacheFolderTest, SharedCacheIsNext) {
  const Environment environment({{"ONNXIFI_CACHE_DIR", {}},
                                 {"ONNXIFI_CACHE_HOME", ""},
                                 {"XDG_CACHE_HOME", "/shared"},
                                 {"HOME", "/home/a"}});
  EXPECT_EQ(CacheFolder(), "/shared/onnxifi");
  EXPECT_EQ(ToolCacheFolder(), "/shared/onnxifi-build");
}

TEST(CacheFolderTest, HomeIsLastAndThereMayBeNone) {
  {
    const Environment environment({{"ONNXIFI_CACHE_DIR", {}},
                                   {"ONNXIFI_CACHE_HOME", {}},
                                   {"XDG_CACHE_HOME", ""},
                                   {"HOME", "/home/a"}});
    EXPECT_EQ(CacheFolder(), "/home/a/.cache/onnxifi");
    EXPECT_EQ(ToolCacheFolder(), "/home/a/.cache/onnxifi-build");
  }
  const Environment environment({{"ONNXIFI_CACHE_DIR", {}},
                                 {"ONNXIFI_CACHE_HOME", {}},
                                 {"XDG_CACHE_HOME", {}},
                                 {"HOME", {}}});
  EXPECT_EQ(CacheFolder(), "");
  EXPECT_EQ(ToolCacheFolder(), "");
}

TEST(CacheFolderTest, VariableThatIsSetToNothingSwitchesTheCacheOff) {
  const Environment environment({{"ONNXIFI_CACHE_DIR", ""}, {"HOME", "/home/a"}});
  EXPECT_EQ(CacheFolder(), "");
}

}  // namespace
}  // namespace onnxifi::base
