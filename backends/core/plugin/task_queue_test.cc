// SPDX-License-Identifier: Apache-2.0
//
// Worker: carries out all tasks, in order, before it ends. That waiting threads help is tested with
// the runs they wait for (run_queue_test.cc).

#include "backends/core/plugin/task_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace onnxifi::plugin {
namespace {

class AppendTask final : public TaskQueue::Task {
 public:
  AppendTask(std::vector<int>& order, int number) : order_(order), number_(number) {}
  void Carry() noexcept override { order_.push_back(number_); }

 private:
  std::vector<int>& order_;
  const int number_;
};

TEST(WorkerTest, CarriesOutWhatWasSubmittedBeforeItEnds) {
  std::vector<int> order;
  {
    Worker worker;
    EXPECT_TRUE(worker.Start().ok());
    EXPECT_TRUE(worker.Start().ok()) << "a second start does nothing";
    for (int k = 0; k < 50; ++k) worker.tasks()->Submit(std::make_shared<AppendTask>(order, k));
  }
  ASSERT_EQ(order.size(), 50u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(WorkerTest, EndsWithoutHavingStarted) { Worker worker; }

}  // namespace
}  // namespace onnxifi::plugin
