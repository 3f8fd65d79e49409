// SPDX-License-Identifier: Apache-2.0
//
// Plugins that throw, or say numbers that nobody can believe: each is set aside by name, and the
// others stay. Short stories over one fake plugin, whose file's name says what is wrong with it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxifi/sdk.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "onnxifi/testing/plugin_sandbox.h"

namespace onnxifi::dispatch {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::span<const std::byte> Bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// A plugin with the fault, and behind it one that is sound.
class Quarantine : public testing::Test {
 protected:
  Library Open(const std::string& fault) {
    file_ = "libonnxifi-" + fault + ".so";
    stage_.Add("faulty.so", file_).Add("alpha.so", "libonnxifi-zeta.so");
    return stage_.Open();
  }

  void ExpectQuarantined(const Library& library, const std::string& sentence,
                         uint32_t device_count) {
    const DiscoveryRecord record = PluginSandbox::RecordOf(library, file_);
    EXPECT_EQ(record.verdict, static_cast<uint32_t>(ONNXIFI_SDK_VERDICT_QUARANTINED));
    EXPECT_THAT(record.sentence, HasSubstr(sentence));
    EXPECT_EQ(record.device_count, device_count);
    EXPECT_EQ(PluginSandbox::RecordOf(library, "libonnxifi-zeta.so").verdict,
              static_cast<uint32_t>(ONNXIFI_SDK_VERDICT_LOADED));
    for (const char* key : {"auto", "zeta:0"}) {
      const auto device = library.FindDevice(key);
      ASSERT_TRUE(device.ok()) << key;
      EXPECT_TRUE(device->TextInfo(ONNXIFI_BACKEND_OPSET_VERSION).ok()) << key;
      EXPECT_TRUE(device->CheckCompatibility(Bytes("double"))) << key;
      const auto backend = device->InitBackend();
      ASSERT_TRUE(backend.ok()) << key;
      EXPECT_TRUE(backend->InitGraph(Bytes("double")).ok()) << key;
    }
  }

  // What the plugin tells of the outputs of a run.
  static Result<std::vector<Value>> AskValues(const Library& library, const std::string& key) {
    const Device device = *library.FindDevice(key);
    const Backend backend = *device.InitBackend();
    Graph graph = *backend.InitGraph(Bytes("double"));
    std::vector<float> source(4), target(4);
    const Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {4}, source.data()};
    const Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {4}, target.data()};
    EXPECT_TRUE(graph.SetIO({&x, 1}, {&y, 1}));
    const Event input = *backend.NewEvent();
    EXPECT_TRUE(input.Signal());
    const Event output = *graph.Run(input);
    EXPECT_TRUE(output.Wait());
    return output.Values();
  }

  // The plugin's devices are not listed.
  void ExpectUnlisted(const std::string& fault, const std::string& sentence) {
    const Library library = Open(fault);
    EXPECT_EQ(PluginSandbox::Keys(library), "auto zeta:0 zeta:1");
    ExpectQuarantined(library, sentence, /*device_count=*/0);
  }

 private:
  PluginSandbox stage_;
  std::string file_;
};

TEST_F(Quarantine, OfAPluginThatThrowsWhenAskedForItsDevices) {
  ExpectUnlisted("throws-listing",
                 "Function onnxGetBackendIDs of the plugin throws an exception: the driver is "
                 "upset.");
}

TEST_F(Quarantine, OfAPluginThatAnnouncesMoreDevicesThanAMachineHas) {
  ExpectUnlisted("endless-listing",
                 "Function onnxGetBackendIDs of the plugin announces 18446744073709551615 devices; "
                 "the limit is 1024.");
}

TEST_F(Quarantine, OfAPluginThatGivesNoIdForADevice) {
  ExpectUnlisted("null-listing", "gives NULL for device 0 of 1.");
}

TEST_F(Quarantine, OfAPluginThatGivesMoreDevicesThanThereIsRoomFor) {
  ExpectUnlisted("overfull-listing", "gives 2 devices where there is room for 1.");
}

TEST_F(Quarantine, OfAPluginThatThrowsWhenAskedForAnExtension) {
  ExpectUnlisted(
      "throws-lookup",
      "Function onnxGetExtensionFunctionAddress of the plugin throws an exception: there "
      "is no table.");
}

TEST_F(Quarantine, OfAPluginThatThrowsSomethingElseThanAnExceptionInAQuery) {
  ExpectUnlisted("throws-query", "Function onnxGetBackendInfo of the plugin throws an exception");
}

// What a caller asks later is found out later: the device keeps its ID and is not there.
class LateQuarantine : public Quarantine {
 protected:
  // `ask` provokes the fault; its answer has to name the plugin and the reason.
  template <typename Ask>
  void ExpectGoneAfter(const std::string& fault, const std::string& sentence, Ask&& ask) {
    const Library library = Open(fault);
    const std::string key = fault + ":0";
    EXPECT_EQ(PluginSandbox::Keys(library), "auto " + key + " zeta:0 zeta:1");
    const Device device = *library.FindDevice(key);
    const auto expect_gone = [&](const auto& answer) {
      ASSERT_FALSE(answer.ok());
      EXPECT_EQ(answer.error().status, ONNXIFI_STATUS_BACKEND_UNAVAILABLE);
      EXPECT_THAT(answer.error().Text(),
                  AllOf(HasSubstr("Plugin '" + fault + "' is quarantined."), HasSubstr(sentence)));
    };
    expect_gone(ask(device));
    expect_gone(device.NumberInfo(ONNXIFI_BACKEND_DEVICE_TYPE));
    expect_gone(device.CheckCompatibility(Bytes("double")));
    expect_gone(device.InitBackend());
    ExpectQuarantined(library, sentence, /*device_count=*/1);
    EXPECT_EQ(PluginSandbox::Keys(library), "auto " + key + " zeta:0 zeta:1");
  }

  static auto AskName(const Device& device) { return device.TextInfo(ONNXIFI_BACKEND_NAME); }
  static auto Claim(const Device& device) { return device.CheckCompatibility(Bytes("double")); }
  static auto Init(const Device& device) { return device.InitBackend(); }
};

TEST_F(LateQuarantine, OfAPluginThatThrowsInAQuery) {
  ExpectGoneAfter(
      "throws-name",
      "Function onnxGetBackendInfo of the plugin throws an exception: the name is lost.", AskName);
}

TEST_F(LateQuarantine, OfAPluginThatAsksForATebibyte) {
  ExpectGoneAfter(
      "tebibyte-name",
      "Function onnxGetBackendInfo of the plugin announces 1099511627776 bytes of text; "
      "the limit is 1048576.",
      AskName);
}

TEST_F(LateQuarantine, OfAPluginWhoseTextGrowsWithEveryCall) {
  ExpectGoneAfter("growing-name", "announces more bytes of text than before at each of 8 calls.",
                  AskName);
}

TEST_F(LateQuarantine, OfAPluginThatThrowsInAClaim) {
  ExpectGoneAfter("throws-claim",
                  "Function onnxGetBackendCompatibility of the plugin throws an exception: the "
                  "compiler gives up.",
                  Claim);
}

TEST_F(LateQuarantine, OfAPluginThatThrowsInInitialisation) {
  ExpectGoneAfter("throws-initialisation",
                  "Function onnxInitBackend of the plugin throws an exception: the device is gone.",
                  Init);
}

TEST_F(LateQuarantine, OfAPluginThatGivesNoBackend) {
  ExpectGoneAfter("null-backend",
                  "Function onnxInitBackend of the plugin gives NULL for a backend.", Init);
}

TEST_F(LateQuarantine, OfAPluginThatGivesNoGraph) {
  ExpectGoneAfter(
      "null-graph", "Function onnxInitGraph of the plugin gives NULL for a graph.",
      [](const Device& device) { return device.InitBackend()->InitGraph(Bytes("double")); });
}

TEST_F(LateQuarantine, OfAPluginThatGivesNoEvent) {
  ExpectGoneAfter("null-event", "Function onnxInitEvent of the plugin gives NULL for an event.",
                  [](const Device& device) { return device.InitBackend()->NewEvent(); });
}

// Nobody could tell when the outputs are there.
TEST_F(LateQuarantine, OfAPluginThatGivesARunNoEvent) {
  ExpectGoneAfter(
      "null-run",
      "Function onnxRunGraph of the plugin gives NULL for the event of the output fence.",
      [](const Device& device) {
        const Backend backend = *device.InitBackend();
        Graph graph = *backend.InitGraph(Bytes("double"));
        std::vector<float> source(4), target(4);
        const Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {4}, source.data()};
        const Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {4}, target.data()};
        EXPECT_TRUE(graph.SetIO({&x, 1}, {&y, 1}));
        const Event input = *backend.NewEvent();
        EXPECT_TRUE(input.Signal());
        return graph.Run(input);
      });
}

TEST_F(Quarantine, OfAPluginThatExplainsWithoutARecord) {
  const Library library = Open("null-explanation");
  const auto explanation = library.FindDevice("null-explanation")->Explain(Bytes("double"));
  ASSERT_TRUE(explanation.ok());
  EXPECT_THAT(explanation->sentence,
              HasSubstr("Function onnxExplainModel of the plugin gives NULL for a record."));
  ExpectQuarantined(library, "gives NULL for a record.", /*device_count=*/1);
}

TEST_F(Quarantine, OfAPluginThatTellsAnOutputWithoutARecord) {
  const Library library = Open("null-value");
  const auto values = AskValues(library, "null-value");
  ASSERT_FALSE(values.ok());
  EXPECT_EQ(values.error().status, ONNXIFI_STATUS_BACKEND_UNAVAILABLE);
  EXPECT_THAT(values.error().Text(),
              HasSubstr("Function onnxGetRunValues of the plugin gives NULL for a record."));
  ExpectQuarantined(library, "gives NULL for a record.", /*device_count=*/1);
}

// What a record says is checked before it is believed.
TEST_F(Quarantine, AStructureTooShortReachesNobody) {
  const auto values = AskValues(Open("short-value"), "short-value");
  ASSERT_FALSE(values.ok());
  EXPECT_EQ(values.error().status, ONNXIFI_STATUS_BACKEND_UNAVAILABLE);
  EXPECT_THAT(values.error().Text(),
              HasSubstr("Output '' has a structure of 8 bytes; its kind alone ends after"));
}

TEST_F(Quarantine, ElementsThatHaveNoBytesReachNobody) {
  const auto values = AskValues(Open("huge-value"), "huge-value");
  ASSERT_FALSE(values.ok());
  EXPECT_EQ(values.error().status, ONNXIFI_STATUS_BACKEND_UNAVAILABLE);
  EXPECT_THAT(values.error().Text(),
              HasSubstr("Output 'y' has 4 bytes of data; 1099511627776 elements of float have"));
}

// What auto finds out when it has given the model to the plugin.
class AutoQuarantine : public Quarantine {
 protected:
  void ExpectGraphOfAnother(const std::string& fault, const std::string& sentence) {
    const Library library = Open(fault);
    const auto backend = library.FindDevice("auto")->InitBackend();
    ASSERT_TRUE(backend.ok());
    const auto graph = backend->InitGraph(Bytes("double"));
    ASSERT_TRUE(graph.ok()) << graph.error().Text();
    EXPECT_EQ(graph->Plan()->islands.front().device_key, "zeta:0");
    ExpectQuarantined(library, sentence, /*device_count=*/1);
  }
};

TEST_F(AutoQuarantine, LetsAnotherHaveWhatAPluginThrowsAt) {
  ExpectGraphOfAnother("throws-initialisation", "the device is gone.");
}

TEST_F(AutoQuarantine, LetsAnotherHaveWhatAPluginGivesNoGraphFor) {
  ExpectGraphOfAnother("null-graph", "gives NULL for a graph.");
}

// The first device of auto's list is asked first; its fault is nobody's but its own.
TEST_F(Quarantine, LeavesTheAutoDeviceToTheOthers) {
  const Library library = Open("throws-claim");
  const auto backend = library.FindDevice("auto")->InitBackend();
  ASSERT_TRUE(backend.ok());
  EXPECT_TRUE(backend->InitGraph(Bytes("double")).ok());
  ExpectQuarantined(library, "the compiler gives up.", /*device_count=*/1);
}

}  // namespace
}  // namespace onnxifi::dispatch
