// SPDX-License-Identifier: Apache-2.0
//
// The pool against a worker whose cases break down in every way.

#include "conformance/process/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onnxifi::process {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kTimeLimit(1500);

std::vector<CaseEnding> RunAll(const std::vector<std::string>& ids, int jobs = 1,
                               int batch_size = 32, int* finished_count = nullptr,
                               std::chrono::milliseconds time_limit = kTimeLimit) {
  PoolOptions options;
  options.command = {ONNXIFI_FAKE_WORKER};
  options.jobs = jobs;
  options.batch_size = batch_size;
  options.time_limit = time_limit;
  int count = 0;
  base::Result<std::vector<CaseEnding>> endings = RunCases(options, ids, [&count] { ++count; });
  EXPECT_TRUE(endings.ok());
  if (finished_count != nullptr) *finished_count = count;
  return endings.ok() ? *std::move(endings) : std::vector<CaseEnding>();
}

void ExpectRan(const CaseEnding& ending, const std::string& id) {
  EXPECT_EQ(ending.ending, Ending::kFinished) << id << ": " << ending.sentence;
  EXPECT_EQ(ending.report, "ran " + id);
}

TEST(PoolTest, ReportsComeBackInTheOrderOfTheCases) {
  std::vector<std::string> ids;
  for (int index = 0; index < 100; ++index) ids.push_back("case-" + std::to_string(index));
  int finished_count = 0;
  const std::vector<CaseEnding> endings =
      RunAll(ids, /*jobs=*/3, /*batch_size=*/7, &finished_count);
  ASSERT_EQ(endings.size(), ids.size());
  for (size_t index = 0; index < ids.size(); ++index) ExpectRan(endings[index], ids[index]);
  EXPECT_EQ(finished_count, 100);
}

TEST(PoolTest, ACrashIsARowAndTheRestOfTheBatchRuns) {
  const std::vector<CaseEnding> endings = RunAll({"a", "crash", "b", "c"});
  ASSERT_EQ(endings.size(), 4u);
  ExpectRan(endings[0], "a");
  EXPECT_EQ(endings[1].ending, Ending::kCrashed);
  EXPECT_THAT(endings[1].sentence, HasSubstr("killed by signal 11"));
  EXPECT_THAT(endings[1].printed, HasSubstr("about to crash"));
  ExpectRan(endings[2], "b");
  ExpectRan(endings[3], "c");
}

TEST(PoolTest, AHangIsARowAndTheRestOfTheBatchRuns) {
  const std::vector<CaseEnding> endings = RunAll({"a", "hang", "b"});
  ASSERT_EQ(endings.size(), 3u);
  ExpectRan(endings[0], "a");
  EXPECT_EQ(endings[1].ending, Ending::kHung);
  EXPECT_THAT(endings[1].sentence, HasSubstr("did not finish within 1.5 s"));
  ExpectRan(endings[2], "b");
}

TEST(PoolTest, ACaseThatComputesWithoutAnEndIsOneThatHangs) {
  const std::vector<CaseEnding> endings = RunAll({"spin", "a"});
  ASSERT_EQ(endings.size(), 2u);
  EXPECT_EQ(endings[0].ending, Ending::kHung);
  ExpectRan(endings[1], "a");
}

// A second and more, of which it computes for a tenth.
TEST(PoolTest, WhoGetsNoProcessorDoesNotHang) {
  const std::vector<CaseEnding> endings =
      RunAll({"starve", "a"}, /*jobs=*/1, /*batch_size=*/32, /*finished_count=*/nullptr,
             std::chrono::milliseconds(500));
  ASSERT_EQ(endings.size(), 2u);
  ExpectRan(endings[0], "starve");
  ExpectRan(endings[1], "a");
}

TEST(PoolTest, ACaseThatEndsTheProcessIsACrash) {
  const std::vector<CaseEnding> endings = RunAll({"leave", "a"});
  ASSERT_EQ(endings.size(), 2u);
  EXPECT_EQ(endings[0].ending, Ending::kCrashed);
  EXPECT_THAT(endings[0].sentence, HasSubstr("exit status 7"));
  ExpectRan(endings[1], "a");
}

TEST(PoolTest, TheCaseThatPoisonsALaterOneIsToBlame) {
  const std::vector<CaseEnding> endings = RunAll({"a", "b", "poison", "c", "d", "victim", "e"});
  ASSERT_EQ(endings.size(), 7u);
  EXPECT_EQ(endings[2].ending, Ending::kCrashed);
  EXPECT_THAT(endings[2].sentence, HasSubstr("in a later case, 'victim'"));
  for (const size_t index : {0, 1, 3, 4, 5, 6}) {
    EXPECT_EQ(endings[index].ending, Ending::kFinished) << index;
  }
}

TEST(PoolTest, TheCaseThatBreaksTheExitIsToBlame) {
  const std::vector<CaseEnding> endings = RunAll({"a", "b", "exit", "c", "d"});
  ASSERT_EQ(endings.size(), 5u);
  EXPECT_EQ(endings[2].ending, Ending::kCrashed);
  EXPECT_THAT(endings[2].sentence, HasSubstr("exit status 9 at its exit"));
  for (const size_t index : {0, 1, 3, 4}) {
    EXPECT_EQ(endings[index].ending, Ending::kFinished) << index;
  }
}

TEST(PoolTest, EveryCaseOfABatchMayBreakDown) {
  const std::vector<CaseEnding> endings = RunAll({"crash-1", "crash-2", "leave", "crash-3"});
  ASSERT_EQ(endings.size(), 4u);
  for (const CaseEnding& ending : endings) EXPECT_EQ(ending.ending, Ending::kCrashed);
}

TEST(PoolTest, AMissingProgramIsAnError) {
  PoolOptions options;
  options.command = {"/nonexistent/worker"};
  const std::vector<std::string> ids = {"a"};
  const auto endings = RunCases(options, ids, [] {});
  ASSERT_FALSE(endings.ok());
  EXPECT_EQ(endings.status().code(), base::Code::kNoSystemResources);
}

}  // namespace
}  // namespace onnxifi::process
