// SPDX-License-Identifier: Apache-2.0
//
// BinaryCache: what is stored is found by another one of the same folder, and nothing else is.

#include "backends/core/codegen/binary_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace onnxifi::codegen {
namespace {

namespace fs = std::filesystem;

class BinaryCacheTest : public testing::Test {
 public:
  BinaryCacheTest() {
    std::string name = (fs::temp_directory_path() / "binary_cache.XXXXXX").string();
    folder_ = fs::path(mkdtemp(name.data())) / "made" / "when" / "needed";
  }
  ~BinaryCacheTest() override { fs::remove_all(folder_.parent_path().parent_path().parent_path()); }

 protected:
  static std::vector<std::byte> Bytes(size_t count, int first) {
    std::vector<std::byte> bytes(count);
    for (size_t k = 0; k < count; ++k) bytes[k] = static_cast<std::byte>(first + 7 * k);
    return bytes;
  }
  fs::path OnlyFile() const {
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      files.push_back(entry.path());
    }
    EXPECT_EQ(files.size(), 1u);
    return files.empty() ? fs::path() : files.front();
  }

  fs::path folder_;
};

TEST_F(BinaryCacheTest, FindsWhatAnotherStored) {
  const std::vector<std::byte> binary = Bytes(1000, 3);
  EXPECT_FALSE(BinaryCache(folder_, 10000).Find("key"));
  BinaryCache(folder_, 10000).Store("key", binary);
  EXPECT_EQ(BinaryCache(folder_, 10000).Find("key"), binary);
  EXPECT_FALSE(BinaryCache(folder_, 10000).Find("kez"));
  BinaryCache(folder_, 10000).Store("key", Bytes(10, 9));
  EXPECT_EQ(BinaryCache(folder_, 10000).Find("key"), Bytes(10, 9));
  BinaryCache(folder_, 10000).Remove("key");
  EXPECT_FALSE(BinaryCache(folder_, 10000).Find("key"));
}

TEST_F(BinaryCacheTest, EveryDamagedByteAndEveryCutIsNoticed) {
  const BinaryCache cache(folder_, 10000);
  cache.Store("a key", Bytes(40, 1));
  const fs::path path = OnlyFile();
  std::string whole;
  {
    std::ifstream file(path, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(file), {});
  }
  const auto write = [&path](const std::string& content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  };
  for (size_t k = 0; k < whole.size(); ++k) {
    std::string damaged = whole;
    damaged[k] = static_cast<char>(damaged[k] ^ 0x20);
    write(damaged);
    EXPECT_FALSE(cache.Find("a key")) << "byte " << k;
    write(whole.substr(0, k));
    EXPECT_FALSE(cache.Find("a key")) << "cut at " << k;
  }
  write(whole + "x");
  EXPECT_FALSE(cache.Find("a key"));
  write(whole);
  EXPECT_EQ(cache.Find("a key"), Bytes(40, 1));
}

TEST_F(BinaryCacheTest, WhatIsLargerThanTheWholeCacheIsNotRead) {
  BinaryCache(folder_, 10000).Store("a key", Bytes(4000, 1));
  EXPECT_TRUE(BinaryCache(folder_, 5000).Find("a key"));
  EXPECT_FALSE(BinaryCache(folder_, 3000).Find("a key"));
}

TEST_F(BinaryCacheTest, TheLeastRecentlyUsedGoFirst) {
  const BinaryCache cache(folder_, 3500);
  const auto age = [&](int hours) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      fs::last_write_time(entry.path(), entry.last_write_time() - std::chrono::hours(hours));
    }
  };
  cache.Store("first", Bytes(1000, 1));
  age(1);
  cache.Store("second", Bytes(1000, 2));
  age(1);
  cache.Store("third", Bytes(1000, 3));
  age(1);
  EXPECT_TRUE(cache.Find("first"));  // young again
  cache.Store("fourth", Bytes(1000, 4));
  EXPECT_TRUE(cache.Find("first"));
  EXPECT_FALSE(cache.Find("second"));
  EXPECT_TRUE(cache.Find("third"));
  EXPECT_TRUE(cache.Find("fourth"));
  cache.Store("too large", Bytes(4000, 5));
  EXPECT_FALSE(cache.Find("too large"));
  EXPECT_TRUE(cache.Find("fourth"));
}

TEST_F(BinaryCacheTest, AFolderThatCannotBeMadeIsNoFault) {
  fs::create_directories(folder_.parent_path());
  std::ofstream(folder_.string()) << "a file in the folder's place";
  const BinaryCache blocked(folder_, 10000);
  blocked.Store("key", Bytes(10, 1));
  EXPECT_FALSE(blocked.Find("key"));
  const BinaryCache none({}, 10000);
  none.Store("key", Bytes(10, 1));
  EXPECT_FALSE(none.Find("key"));
}

}  // namespace
}  // namespace onnxifi::codegen
