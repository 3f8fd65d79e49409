// SPDX-License-Identifier: Apache-2.0
//
// CandidateSearch over a private folder.

#include "discovery/search/candidate_search.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace onnxifi::search {
namespace {

namespace fs = std::filesystem;

class CandidateSearch : public testing::Test {
 public:
  CandidateSearch() {
    std::string pattern = (fs::temp_directory_path() / "onnxifi-XXXXXX").string();
    folder_ = fs::canonical(mkdtemp(pattern.data()));
  }
  ~CandidateSearch() override { fs::remove_all(folder_); }

 protected:
  void Touch(const fs::path& file) {
    fs::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file).put('x');
  }
  // "rule path-below-the-folder" of each, "!" in front of what cannot be a plugin.
  std::vector<std::string> Find(const Environment& environment) {
    std::vector<std::string> found;
    for (const Candidate& candidate : FindCandidates(environment, folder_)) {
      found.push_back((candidate.status.ok() ? "" : "!") + candidate.rule + " " +
                      candidate.path.lexically_relative(folder_).string());
    }
    return found;
  }
  std::string Path(const std::string& name) { return (folder_ / name).string(); }

  fs::path folder_;
};

using Strings = std::vector<std::string>;

TEST_F(CandidateSearch, TakesPluginNamesOfTheOwnFolderInOrder) {
  for (const char* name : {"libonnxifi-b.so", "libonnxifi-a.so", "libonnxifi.so", "libonnxifi-.so",
                           "libonnxifi-a.so.1", "libonnxifi-a.json", "sub/libonnxifi-c.so"}) {
    Touch(name);
  }
  EXPECT_EQ(Find({}),
            (Strings{"beside libonnxifi libonnxifi-a.so", "beside libonnxifi libonnxifi-b.so"}));
}

TEST_F(CandidateSearch, ListsReplaceOrPrecedeTheOwnFolder) {
  Touch("libonnxifi-a.so");
  Touch("x/libonnxifi-c.so");
  Touch("y/any.so");
  Environment environment;
  environment.add_backends = Path("y/any.so") + "::";
  EXPECT_EQ(Find(environment),
            (Strings{"ONNXIFI_ADD_BACKENDS y/any.so", "beside libonnxifi libonnxifi-a.so"}));
  environment.backends = Path("x");
  EXPECT_EQ(Find(environment),
            (Strings{"ONNXIFI_ADD_BACKENDS y/any.so", "ONNXIFI_BACKENDS x/libonnxifi-c.so"}));
  environment.backends = "";
  environment.add_backends.reset();
  EXPECT_EQ(Find(environment), Strings());
}

TEST_F(CandidateSearch, KeepsWhatDoesNotExistWithAReason) {
  Environment environment;
  environment.backends = Path("nothing.so");
  EXPECT_EQ(Find(environment), (Strings{"!ONNXIFI_BACKENDS nothing.so"}));
}

TEST_F(CandidateSearch, ResolvesLinks) {
  Touch("real/plugin.so");
  fs::create_symlink("real/plugin.so", folder_ / "libonnxifi-link.so");
  EXPECT_EQ(Find({}), (Strings{"beside libonnxifi real/plugin.so"}));
}

TEST(PluginName, IsThePartBetweenPrefixAndEnding) {
  EXPECT_EQ(PluginName("/a/libonnxifi-cpu.so"), "cpu");
  EXPECT_EQ(PluginName("/a/vendor.so"), "vendor");
}

}  // namespace
}  // namespace onnxifi::search
