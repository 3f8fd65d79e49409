// SPDX-License-Identifier: Apache-2.0
//
// CostStore: what is kept is what is found; what cannot be trusted is not there.

#include "onnxifi/cost/cost_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <string>

namespace onnxifi::cost {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::Pair;

split::Digest Digest(uint64_t number) { return split::Digester().Add(number).Get(); }

DeviceTable SomeTable() {
  DeviceTable table;
  table.edges = {.launch_ns = 7, .enter = {1, 20}, .leave = {300, 4}};
  table.node_ns = {{Digest(1), 100}, {Digest(2), 0}, {Digest(3), INT64_MAX}};
  table.run_ns = {{Digest(4), 12345}};
  return table;
}

class Store : public testing::Test {
 public:
  Store() {
    std::string pattern = (fs::temp_directory_path() / "onnxifi-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Store() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

 protected:
  std::vector<fs::path> Files() const {
    return {fs::directory_iterator(folder_), fs::directory_iterator()};
  }
  static std::string Read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
};

TEST_F(Store, FindsWhatWasKept) {
  CostStore(folder_ / "made").Add("a device", SomeTable());
  const DeviceTable found = CostStore(folder_ / "made").Read("a device");
  ASSERT_TRUE(found.edges);
  EXPECT_EQ(found.edges->launch_ns, 7);
  EXPECT_EQ(found.edges->enter.picoseconds_per_byte, 20);
  EXPECT_EQ(found.edges->leave.latency_ns, 300);
  EXPECT_EQ(found.edges->leave.picoseconds_per_byte, 4);
  EXPECT_EQ(found.node_ns, SomeTable().node_ns);
  EXPECT_EQ(found.run_ns, SomeTable().run_ns);
  EXPECT_TRUE(CostStore(folder_ / "made").Read("another device").empty());
  EXPECT_TRUE(CostStore({}).Read("a device").empty());
}

TEST_F(Store, AddsToWhatIsThere) {
  const CostStore store(folder_);
  store.Add("a device", SomeTable());
  DeviceTable newer;
  newer.node_ns = {{Digest(2), 50}, {Digest(9), 60}};
  store.Add("a device", newer);
  const DeviceTable found = store.Read("a device");
  EXPECT_TRUE(found.edges);
  EXPECT_EQ(found.node_ns.size(), 4U);
  EXPECT_EQ(found.node_ns.at(Digest(2)), 50);
  EXPECT_THAT(found.run_ns, ElementsAre(Pair(Digest(4), 12345)));
  // Nothing else is left behind.
  EXPECT_EQ(Files().size(), 1U);
}

TEST_F(Store, TakesADamagedFileForNone) {
  const CostStore store(folder_);
  store.Add("a device", SomeTable());
  const fs::path file = Files().at(0);
  const std::string whole = Read(file);
  // Every byte changed in turn, every length cut.
  for (size_t position = 0; position < whole.size(); ++position) {
    std::string damaged = whole;
    damaged[position] = static_cast<char>(damaged[position] ^ 1);
    std::ofstream(file, std::ios::binary | std::ios::trunc) << damaged;
    ASSERT_TRUE(store.Read("a device").empty()) << "at " << position;
    std::ofstream(file, std::ios::binary | std::ios::trunc) << whole.substr(0, position);
    ASSERT_TRUE(store.Read("a device").empty()) << "to " << position;
  }
  // And writes a good one in its place.
  store.Add("a device", SomeTable());
  EXPECT_EQ(Read(file), whole);
}

TEST_F(Store, TakesAFileOfAnotherDeviceForNone) {
  const CostStore store(folder_);
  store.Add("a device", SomeTable());
  const fs::path file = Files().at(0);
  const std::string of_one = Read(file);
  store.Add("another device", SomeTable());
  for (const fs::path& path : Files()) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << of_one;
  }
  EXPECT_FALSE(store.Read("a device").empty());
  EXPECT_TRUE(store.Read("another device").empty());
}

TEST_F(Store, LivesWithAFolderThatCannotBeMade) {
  std::ofstream(folder_ / "file") << "in the way";
  const CostStore store(folder_ / "file" / "below");
  store.Add("a device", SomeTable());
  EXPECT_TRUE(store.Read("a device").empty());
}

}  // namespace
}  // namespace onnxifi::cost
