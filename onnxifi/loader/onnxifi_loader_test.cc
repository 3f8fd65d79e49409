// SPDX-License-Identifier: Apache-2.0
//
// The loader helper over fake plugins. Built twice: as a caller without and with
// ONNXIFI_ENABLE_EXT.

#include <gtest/gtest.h>
#include <onnx/onnxifi_loader.h>

#include <cstddef>
#include <cstring>
#include <string>

namespace onnxifi::loader {
namespace {

std::string Fake(const std::string& name) { return ONNXIFI_TEST_FAKES "/" + name; }

bool IsZero(const onnxifi_library& library) {
  const onnxifi_library zero = {};
  return std::memcmp(&library, &zero, sizeof(zero)) == 0;
}

// Filled with other bytes, so that zeroing shows.
onnxifi_library Dirty() {
  onnxifi_library library;
  std::memset(&library, 0xAB, sizeof(library));
  return library;
}

TEST(Load, FillsTheTableInTheOrderOfTheNames) {
  onnxifi_library library = Dirty();
  ASSERT_EQ(
      onnxifi_load(0x100 | ONNXIFI_LOADER_FLAG_VERSION_1_0, Fake("alpha.so").c_str(), &library), 1);
  EXPECT_NE(library.handle, nullptr);
  EXPECT_EQ(library.flags, static_cast<uint32_t>(ONNXIFI_LOADER_FLAG_VERSION_1_0));
  EXPECT_EQ(library.functions[0], reinterpret_cast<void*>(library.onnxGetBackendIDs));
  EXPECT_EQ(library.functions[9], reinterpret_cast<void*>(library.onnxWaitEvent));
  EXPECT_EQ(library.functions[14], reinterpret_cast<void*>(library.onnxReleaseGraph));
  size_t count = 0;
  EXPECT_EQ(library.onnxGetBackendIDs(nullptr, &count), ONNXIFI_STATUS_FALLBACK);
  EXPECT_EQ(count, 2u);
  onnxifi_unload(&library);
  EXPECT_TRUE(IsZero(library));
  onnxifi_unload(&library);
  onnxifi_unload(nullptr);
}

TEST(Load, NeedsTheVersionFlag) {
  onnxifi_library library = Dirty();
  EXPECT_EQ(onnxifi_load(0x02, Fake("alpha.so").c_str(), &library), 0);
  EXPECT_TRUE(IsZero(library));
}

TEST(Load, NeedsATable) {
  EXPECT_EQ(onnxifi_load(ONNXIFI_LOADER_FLAG_VERSION_1_0, Fake("alpha.so").c_str(), nullptr), 0);
}

TEST(Load, RefusesWhatIsNotThereOrLacksAFunction) {
  for (const char* name : {"nothing.so", "lacks_wait.so", "not_loadable.so"}) {
    onnxifi_library library = Dirty();
    EXPECT_EQ(onnxifi_load(ONNXIFI_LOADER_FLAG_VERSION_1_0, Fake(name).c_str(), &library), 0)
        << name;
    EXPECT_TRUE(IsZero(library)) << name;
  }
}

TEST(Load, AsksForTheExtensionLookUpOnlyWhereTheCallerWantsIt) {
  onnxifi_library library = Dirty();
  const int loaded =
      onnxifi_load(ONNXIFI_LOADER_FLAG_VERSION_1_0, Fake("plain.so").c_str(), &library);
#ifdef ONNXIFI_ENABLE_EXT
  EXPECT_EQ(loaded, 0);
  ASSERT_EQ(onnxifi_load(ONNXIFI_LOADER_FLAG_VERSION_1_0, Fake("alpha.so").c_str(), &library), 1);
  onnxExtensionFunctionPointer function = nullptr;
  EXPECT_EQ(library.onnxGetExtensionFunctionAddress(nullptr, "onnxGetLastErrorMessage", &function),
            ONNXIFI_STATUS_SUCCESS);
#else
  EXPECT_EQ(loaded, 1);
#endif
  onnxifi_unload(&library);
}

}  // namespace
}  // namespace onnxifi::loader
