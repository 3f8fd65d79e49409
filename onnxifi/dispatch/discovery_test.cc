// SPDX-License-Identifier: Apache-2.0
//
// Which plugins libonnxifi lists, in which order, and what it says of the others: short stories
// over fake plugins. The faults of the wrapper published with ONNX are here by their numbers.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxifi/sdk.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "onnxifi/testing/plugin_sandbox.h"

namespace onnxifi::dispatch {
namespace {

using testing::HasSubstr;

TEST(Discovery, ListsAutoAndThenTheDevicesBesideTheLibrary) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so").Add("gpu.so", "libonnxifi-gpu.so");
  EXPECT_EQ(PluginSandbox::Keys(sandbox.Open()), "auto alpha:0 alpha:1 gpu:0");
}

TEST(Discovery, OfAnEmptyFolderListsNothing) {
  PluginSandbox sandbox;
  const Library library = sandbox.Open();
  EXPECT_EQ(PluginSandbox::Keys(library), "");
  EXPECT_TRUE(library.DiscoveryReport()->empty());
}

// Fault 1: the published wrapper opens the bare file name that it found.
TEST(Discovery, Fault1OpensTheFileThatItFound) {
  PluginSandbox sandbox;
  sandbox.Add("plain.so", "elsewhere/real.so");
  std::filesystem::create_symlink("elsewhere/real.so", sandbox.folder() / "libonnxifi-plain.so");
  const Library library = sandbox.Open();
  EXPECT_EQ(PluginSandbox::Keys(library), "auto real:0");
  EXPECT_EQ(PluginSandbox::RecordOf(library, "real.so").path,
            std::filesystem::canonical(sandbox.folder() / "elsewhere/real.so"));
}

// Fault 2: one plugin that fails makes the whole enumeration fail.
TEST(Discovery, Fault2SetsAsideWhatFailsAndSaysWhy) {
  PluginSandbox sandbox;
  sandbox.Add("fails_enumeration.so", "libonnxifi-a.so")
      .Add("lacks_wait.so", "libonnxifi-b.so")
      .Add("not_loadable.so", "libonnxifi-c.so")
      .Write("libonnxifi-d.so", "no library at all")
      .Add("no_device.so", "libonnxifi-e.so")
      .Add("alpha.so", "libonnxifi-z.so");
  const Library library = sandbox.Open();
  EXPECT_EQ(PluginSandbox::Keys(library), "auto z:0 z:1");

  DiscoveryRecord record = PluginSandbox::RecordOf(library, "libonnxifi-a.so");
  EXPECT_EQ(record.verdict, static_cast<uint32_t>(ONNXIFI_SDK_VERDICT_NOT_ENUMERABLE));
  EXPECT_THAT(record.sentence, HasSubstr("INTERNAL_ERROR"));
  record = PluginSandbox::RecordOf(library, "libonnxifi-b.so");
  EXPECT_EQ(record.verdict, static_cast<uint32_t>(ONNXIFI_SDK_VERDICT_MISSING_FUNCTION));
  EXPECT_THAT(record.sentence, HasSubstr("onnxWaitEvent"));
  record = PluginSandbox::RecordOf(library, "libonnxifi-c.so");
  EXPECT_EQ(record.verdict, static_cast<uint32_t>(ONNXIFI_SDK_VERDICT_NOT_LOADABLE));
  EXPECT_THAT(record.detail, HasSubstr("onnxifi_test_function_that_nobody_defines"));
  record = PluginSandbox::RecordOf(library, "libonnxifi-d.so");
  EXPECT_EQ(record.verdict, static_cast<uint32_t>(ONNXIFI_SDK_VERDICT_NOT_LOADABLE));
  EXPECT_FALSE(record.detail.empty());
  record = PluginSandbox::RecordOf(library, "libonnxifi-e.so");
  EXPECT_EQ(record.verdict, static_cast<uint32_t>(ONNXIFI_SDK_VERDICT_LOADED));
  EXPECT_EQ(record.device_count, 0u);
  record = PluginSandbox::RecordOf(library, "libonnxifi-z.so");
  EXPECT_EQ(record.device_count, 2u);
  EXPECT_EQ(record.rule, "beside libonnxifi");
}

// Fault 3: IDs change at every enumeration. Those of the plain plugin do; ours do not.
TEST(Discovery, Fault3KeepsIdsForTheLifeOfTheProcess) {
  PluginSandbox sandbox;
  sandbox.Add("plain.so", "libonnxifi-plain.so");
  const Library library = sandbox.Open();
  const auto ids = [&] {
    const auto devices = library.Devices();
    std::vector<onnxBackendID> values;
    for (const Device& device : *devices) values.push_back(device.id());
    return values;
  };
  const std::vector<onnxBackendID> first = ids();
  EXPECT_EQ(first.size(), 2u);
  EXPECT_EQ(ids(), first);
}

// Fault 4: no override, order, filter or manifest.
TEST(Discovery, Fault4BackendsReplacesTheSearch) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so")
      .Add("gpu.so", "other/libonnxifi-gpu.so")
      .Add("plain.so", "more/anything.so");
  const std::string list = (sandbox.folder() / "other").string() +
                           "::" + (sandbox.folder() / "more/anything.so").string();
  setenv("ONNXIFI_BACKENDS", list.c_str(), 1);
  const Library library = sandbox.Open();
  EXPECT_EQ(PluginSandbox::Keys(library), "auto gpu:0 anything:0");
  EXPECT_EQ(PluginSandbox::RecordOf(library, "anything.so").rule, "ONNXIFI_BACKENDS");
}

TEST(Discovery, Fault4AddBackendsComesInFront) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so")
      .Add("gpu.so", "other/libonnxifi-gpu.so")
      .Add("plain.so", "other/libonnxifi-alpha.so");
  setenv("ONNXIFI_ADD_BACKENDS", (sandbox.folder() / "other").c_str(), 1);
  const Library library = sandbox.Open();
  // The plain plugin took the name alpha first.
  EXPECT_EQ(PluginSandbox::Keys(library), "auto alpha:0 gpu:0");
}

TEST(Discovery, Fault4OpensNothingThatIsDisabled) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so")
      .Add("gpu.so", "libonnxifi-gpu.so")
      .Add("plain.so", "libonnxifi-plain.so");
  const std::string list = "GP*:" + (sandbox.folder() / "libonnxifi-plain.so").string();
  setenv("ONNXIFI_DISABLE", list.c_str(), 1);
  const Library library = sandbox.Open();
  EXPECT_EQ(PluginSandbox::Keys(library), "auto alpha:0 alpha:1");
  for (const char* file : {"libonnxifi-gpu.so", "libonnxifi-plain.so"}) {
    const DiscoveryRecord record = PluginSandbox::RecordOf(library, file);
    EXPECT_EQ(record.verdict, static_cast<uint32_t>(ONNXIFI_SDK_VERDICT_DISABLED));
    EXPECT_EQ(record.sentence, "Variable ONNXIFI_DISABLE names the plugin.");
  }
}

TEST(Discovery, Fault4NamesAFileThatDoesNotExist) {
  PluginSandbox sandbox;
  setenv("ONNXIFI_BACKENDS", (sandbox.folder() / "nothing.so").c_str(), 1);
  const DiscoveryRecord record = PluginSandbox::RecordOf(sandbox.Open(), "nothing.so");
  EXPECT_EQ(record.verdict, static_cast<uint32_t>(ONNXIFI_SDK_VERDICT_NOT_FOUND));
  EXPECT_THAT(record.sentence, HasSubstr("No such file"));
}

TEST(Discovery, Fault4SortsByThePriorityOfManifests) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-a.so")
      .Add("gpu.so", "libonnxifi-b.so")
      .Write("libonnxifi-b.json", R"({"format_version": 1, "name": "first", "priority": -5})");
  EXPECT_EQ(PluginSandbox::Keys(sandbox.Open()), "auto first:0 a:0 a:1");
}

TEST(Discovery, RefusesManifestsThatItDoesNotUnderstand) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-a.so")
      .Write("libonnxifi-a.json", "{")
      .Add("gpu.so", "libonnxifi-b.so")
      .Write("libonnxifi-b.json", R"({"format_version": 1, "dialect": "foxi"})");
  const Library library = sandbox.Open();
  EXPECT_EQ(PluginSandbox::Keys(library), "");
  EXPECT_EQ(PluginSandbox::RecordOf(library, "libonnxifi-a.so").verdict,
            static_cast<uint32_t>(ONNXIFI_SDK_VERDICT_BAD_MANIFEST));
  EXPECT_EQ(PluginSandbox::RecordOf(library, "libonnxifi-b.so").verdict,
            static_cast<uint32_t>(ONNXIFI_SDK_VERDICT_WRONG_INTERFACE));
}

// Fault 5: no extension function is forwarded, and callers that want them cannot load the wrapper.
TEST(Discovery, Fault5LoadsForCallersWithExtensions) {
  PluginSandbox sandbox;
  sandbox.Add("plain.so", "libonnxifi-plain.so");
  void* handle = dlopen((sandbox.folder() / "libonnxifi.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr);
  EXPECT_NE(dlsym(handle, "onnxGetExtensionFunctionAddress"), nullptr);
  dlclose(handle);
  const auto device = sandbox.Open().FindDevice("plain");
  ASSERT_TRUE(device.ok());
  // Offered for the plain plugin too, which has none.
  EXPECT_NE(device->FindFunction<onnxSetIOAndRunGraphFunction>("onnxSetIOAndRunGraphFunction"),
            nullptr);
  EXPECT_NE(device->FindFunction<onnxWaitEventForFunction>("onnxWaitEventFor"), nullptr);
}

// Fault 6: dlsym on a plugin that links libonnxifi finds the loader's own function.
TEST(Discovery, Fault6RefusesFunctionsOfAnotherLibrary) {
  PluginSandbox sandbox;
  sandbox.Add("borrows_wait.so", "libonnxifi-borrower.so");
  const DiscoveryRecord record = PluginSandbox::RecordOf(sandbox.Open(), "libonnxifi-borrower.so");
  EXPECT_EQ(record.verdict, static_cast<uint32_t>(ONNXIFI_SDK_VERDICT_FOREIGN_FUNCTION));
  EXPECT_THAT(record.sentence, HasSubstr("Function onnxWaitEvent of the library lies in another"));
}

// Fault 7: a plugin's call to its own function may bind to the loader's copy, where the loader's
// symbols are global. The address that the kit's own code sees tells to whom it is bound.
TEST(Discovery, Fault7BindsAPluginOfTheKitToItself) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so");
  void* global = dlopen((sandbox.folder() / "libonnxifi.so").c_str(), RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(global, nullptr);
  void* plugin = dlopen((sandbox.folder() / "libonnxifi-alpha.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(plugin, nullptr) << dlerror();
  const auto look_up = reinterpret_cast<onnxGetExtensionFunctionAddressFunction>(
      dlsym(plugin, "onnxGetExtensionFunctionAddress"));
  onnxExtensionFunctionPointer seen_from_inside = nullptr;
  ASSERT_EQ(look_up(nullptr, "onnxGetExtensionFunctionAddress", &seen_from_inside),
            ONNXIFI_STATUS_SUCCESS);
  Dl_info info = {};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(seen_from_inside), &info), 0);
  EXPECT_EQ(std::filesystem::path(info.dli_fname).filename(), "libonnxifi-alpha.so");
}

TEST(Discovery, NeverTakesAnEntryLibraryForAPlugin) {
  PluginSandbox sandbox;
  std::filesystem::copy_file(ONNXIFI_TEST_LIBRARY, sandbox.folder() / "libonnxifi-copy.so");
  std::filesystem::create_symlink("libonnxifi.so", sandbox.folder() / "libonnxifi-self.so");
  std::filesystem::create_directory(sandbox.folder() / "old");
  std::filesystem::copy_file(ONNXIFI_TEST_LIBRARY, sandbox.folder() / "old/libonnxifi.so");
  setenv("ONNXIFI_ADD_BACKENDS", (sandbox.folder() / "old/libonnxifi.so").c_str(), 1);
  const Library library = sandbox.Open();
  EXPECT_EQ(PluginSandbox::Keys(library), "");
  const auto report = library.DiscoveryReport();
  EXPECT_EQ(report->size(), 3u);
  for (const DiscoveryRecord& record : *report) {
    EXPECT_EQ(record.verdict, static_cast<uint32_t>(ONNXIFI_SDK_VERDICT_IS_LOADER)) << record.path;
  }
}

TEST(Discovery, TriesAFileOnce) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so");
  setenv("ONNXIFI_ADD_BACKENDS", sandbox.folder().c_str(), 1);
  const Library library = sandbox.Open();
  EXPECT_EQ(PluginSandbox::Keys(library), "auto alpha:0 alpha:1");
  const auto report = library.DiscoveryReport();
  ASSERT_EQ(report->size(), 2u);
  EXPECT_EQ((*report)[1].verdict, static_cast<uint32_t>(ONNXIFI_SDK_VERDICT_DUPLICATE));
}

TEST(Discovery, IgnoresNamesThatAreNoPlugins) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi_dummy.so")
      .Add("alpha.so", "libonnxifi-.so")
      .Add("alpha.so", "libonnxifi-x.so.1")
      .Add("alpha.so", "onnxifi-x.so");
  EXPECT_EQ(PluginSandbox::Keys(sandbox.Open()), "");
}

TEST(Discovery, ListsNoAutoForTheReferencePluginAlone) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-null.so");
  EXPECT_EQ(PluginSandbox::Keys(sandbox.Open()), "null:0 null:1");
}

TEST(Exports, AreTheStandardNamesAlone) {
  void* handle = dlopen(ONNXIFI_TEST_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr);
  for (const char* name :
       {"onnxGetBackendIDs", "onnxReleaseBackendID", "onnxGetBackendInfo",
        "onnxGetBackendCompatibility", "onnxInitBackend", "onnxReleaseBackend", "onnxInitEvent",
        "onnxSignalEvent", "onnxGetEventState", "onnxWaitEvent", "onnxReleaseEvent",
        "onnxInitGraph", "onnxSetGraphIO", "onnxRunGraph", "onnxReleaseGraph",
        "onnxGetExtensionFunctionAddress", "onnxSetIOAndRunGraph"}) {
    EXPECT_NE(dlsym(handle, name), nullptr) << name;
  }
  dlclose(handle);
}

}  // namespace
}  // namespace onnxifi::dispatch
