// SPDX-License-Identifier: Apache-2.0
//
// SignalKeeper: what a library brings that came later is put back, what the program sets stays.

#include "backends/opencl/signal_keeper.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace onnxifi::opencl {
namespace {

void HandlerOfTheProgram(int) {}

// Puts the handler of a signal back at the end of a test.
class SignalKeeperTest : public testing::Test {
 protected:
  void SetUp() override { sigaction(SIGUSR2, nullptr, &before_); }
  void TearDown() override { sigaction(SIGUSR2, &before_, nullptr); }

  static void Set(void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    sigaction(SIGUSR2, &action, nullptr);
  }
  static void (*Get())(int) {
    struct sigaction action {};
    sigaction(SIGUSR2, nullptr, &action);
    return action.sa_handler;
  }

  struct sigaction before_ {};
};

TEST_F(SignalKeeperTest, KeepsWhatTheProgramSetsMeanwhile) {
  Set(SIG_DFL);
  {
    const SignalKeeper keeper;
    Set(HandlerOfTheProgram);
  }
  EXPECT_EQ(Get(), HandlerOfTheProgram);
  {
    const SignalKeeper keeper;
    Set(SIG_IGN);
  }
  EXPECT_EQ(Get(), SIG_IGN);
}

TEST_F(SignalKeeperTest, PutsBackWhatALaterLibrarySets) {
  SignalKeeper::RememberLibraries();
  // Any library that this program is not linked with; the function is never called.
  void* const later = dlopen(ONNXIFI_TEST_LATER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(later, nullptr) << dlerror();
  const auto foreign = reinterpret_cast<void (*)(int)>(dlsym(later, "onnxGetBackendIDs"));
  ASSERT_NE(foreign, nullptr);
  Set(HandlerOfTheProgram);
  {
    const SignalKeeper keeper;
    Set(foreign);
    EXPECT_EQ(Get(), foreign);
  }
  EXPECT_EQ(Get(), HandlerOfTheProgram);
  dlclose(later);
}

}  // namespace
}  // namespace onnxifi::opencl
