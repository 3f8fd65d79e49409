// SPDX-License-Identifier: Apache-2.0
//
// WriteOutput: what standard output does not take is an error with a reason, no exception, and
// nothing that is lost at the end of the program.

#include "client/standard_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace onnxifi::client {
namespace {

// Standard output of this process, in other hands for a while.
class OutputTo {
 public:
  explicit OutputTo(const char* path) : kept_(dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    dup2(file, STDOUT_FILENO);
    close(file);
  }
  OutputTo(const OutputTo&) = delete;
  OutputTo& operator=(const OutputTo&) = delete;
  ~OutputTo() {
    dup2(kept_, STDOUT_FILENO);
    close(kept_);
    std::clearerr(stdout);
  }

 private:
  const int kept_;
};

TEST(WriteOutput, SaysWhatADiskWithoutRoomDoesNotTake) {
  std::string few;
  std::string many;
  {
    const OutputTo full("/dev/full");
    // Less than a buffer of stdio, and more.
    few = WriteOutput("a line\n").Text();
    many = WriteOutput(std::string(1 << 20, 'x')).Text();
  }
  EXPECT_EQ(few, "Standard output cannot be written: No space left on device.");
  EXPECT_EQ(many, few);
}

TEST(WriteOutput, TakesTheRest) {
  const OutputTo nowhere("/dev/null");
  EXPECT_TRUE(WriteOutput("a line\n").ok());
  EXPECT_TRUE(WriteOutput("").ok());
}

}  // namespace
}  // namespace onnxifi::client
