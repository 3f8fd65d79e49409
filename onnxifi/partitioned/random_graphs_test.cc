// SPDX-License-Identifier: Apache-2.0
//
// Random graphs on random sets of mock devices give the same bits as on one device that runs them
// whole. ONNXIFI_TEST_GRAPHS sets how many (default 100), ONNXIFI_TEST_SEED the first seed of a
// set of devices.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "onnxifi/testing/planned_sandbox.h"
#include "onnxifi/testing/random_model.h"

namespace onnxifi::partitioned {
namespace {

uint32_t FromEnvironment(const char* name, uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

// Settings of mocks that together claim every operator, none of them all; some lie.
std::vector<std::string> RandomDevices(std::mt19937& random) {
  const size_t count = 2 + random() % 3;
  std::vector<std::set<std::string>> claims(count);
  std::vector<std::set<std::string>> lies(count);
  for (const std::string& name : RandomOperators()) {
    // The one that keeps its word.
    const size_t owner = random() % count;
    claims[owner].insert(name);
    for (size_t device = 0; device < count; ++device) {
      if (device == owner || random() % 3 != 0) continue;
      claims[device].insert(name);
      if (random() % 8 == 0) lies[device].insert(name);
    }
  }
  const auto list = [](const std::set<std::string>& names) {
    std::string text = "[";
    for (const std::string& name : names) text += (text.size() > 1 ? ", \"" : "\"") + name + "\"";
    return text + "]";
  };
  std::vector<std::string> settings;
  for (size_t device = 0; device < count; ++device) {
    settings.push_back("{\"operators\": " + list(claims[device]) +
                       ", \"lies\": " + list(lies[device]) + "}");
  }
  return settings;
}

// Settings of mocks of which any two of three claim an operator, and the last one the anchor alone;
// one of the three vanishes in some run.
std::vector<std::string> RandomDevicesOfWhichOneVanishes(std::mt19937& random) {
  constexpr size_t kCount = 3;
  std::vector<std::string> claims(kCount);
  for (const std::string& name : RandomOperators()) {
    const size_t without = random() % kCount;
    for (size_t device = 0; device < kCount; ++device) {
      if (device != without)
        claims[device] += (claims[device].empty() ? "\"" : ", \"") + name + "\"";
    }
  }
  std::vector<std::string> settings;
  const size_t vanishing = random() % kCount;
  for (size_t device = 0; device < kCount; ++device) {
    settings.push_back("{\"operators\": [" + claims[device] + "]" +
                       (device == vanishing
                            ? ", \"vanishes_at_run\": " + std::to_string(1 + random() % 25)
                            : std::string()) +
                       "}");
  }
  settings.push_back(std::string("{\"operators\": [\"") + kAnchorOperator + "\"]}");
  return settings;
}

struct Run {
  std::string error;  // empty: none
  std::vector<std::vector<float>> outputs;
};

// Twice with the same memory, other numbers the second time.
Run RunOn(const Device& device, const RandomModel& model, uint64_t rows) {
  Run run;
  const auto fail = [&run](const Error& error) {
    run.error = std::to_string(error.status) + ": " + error.Text();
    return run;
  };
  const auto backend = device.InitBackend();
  if (!backend.ok()) return fail(backend.error());
  const auto graph = backend->InitGraph(ParseModel(model.Text()));
  if (!graph.ok()) return fail(graph.error());
  std::vector<float> x(rows * 4);
  std::vector<float> z(rows * 4);
  std::vector<Tensor> inputs;
  // What no node reads is an input all the same.
  inputs.push_back({"x", ONNXIFI_DATATYPE_FLOAT32, {rows, 4}, x.data()});
  inputs.push_back({"z", ONNXIFI_DATATYPE_FLOAT32, {rows, 4}, z.data()});
  std::vector<std::vector<float>> data(model.outputs.size(), std::vector<float>(rows * 4, -99));
  std::vector<std::string> names;
  for (const int output : model.outputs) names.push_back("v" + std::to_string(output));
  if (model.has_anchor) {
    names.emplace_back("anchor");
    data.emplace_back(rows * 4, -99);
  }
  std::vector<Tensor> outputs;
  for (size_t k = 0; k < data.size(); ++k) {
    outputs.push_back({names[k].c_str(), ONNXIFI_DATATYPE_FLOAT32, {rows, 4}, data[k].data()});
  }
  if (const Outcome bound = graph->SetIO(inputs, outputs); !bound) return fail(bound.error());
  for (int round = 0; round < 2; ++round) {
    for (size_t k = 0; k < x.size(); ++k) {
      x[k] = static_cast<float>(static_cast<int>(k * 7 + 3 + round) % 19 - 9);
      z[k] = static_cast<float>(static_cast<int>(k * 5 + 1 + round * 4) % 13 - 6);
    }
    if (const Outcome ran = graph->RunAndWait(); !ran) return fail(ran.error());
    run.outputs.insert(run.outputs.end(), data.begin(), data.end());
  }
  return run;
}

// Devices that share the work, and one that does it all.
class Rig {
 public:
  explicit Rig(const std::vector<std::string>& settings)
      : parts_(AddAll(parts_stage_, settings).Open()),
        whole_(whole_stage_.AddMock("whole", "{}").Open()) {}

  // What is different between them; empty if nothing is.
  std::string Compare(const RandomModel& model, uint64_t rows) const {
    const Run expected = RunOn(*whole_.FindDevice("whole"), model, rows);
    if (!expected.error.empty()) return "On one device: " + expected.error;
    const Run actual = RunOn(*parts_.FindDevice("auto"), model, rows);
    if (!actual.error.empty()) return actual.error;
    for (size_t k = 0; k < expected.outputs.size(); ++k) {
      if (expected.outputs[k] == actual.outputs[k]) continue;
      return "Output " + std::to_string(k % (expected.outputs.size() / 2)) + " of round " +
             std::to_string(k / (expected.outputs.size() / 2)) + " differs.";
    }
    return {};
  }

 private:
  static PlannedSandbox& AddAll(PlannedSandbox& sandbox, const std::vector<std::string>& settings) {
    for (size_t device = 0; device < settings.size(); ++device) {
      sandbox.AddMock("part" + std::to_string(device), settings[device]);
    }
    return sandbox;
  }

  PlannedSandbox parts_stage_;
  PlannedSandbox whole_stage_;
  const Library parts_;
  const Library whole_;
};

// The smallest model found that still differs: fewer outputs, then nodes passed over.
RandomModel Shrink(const Rig& rig, RandomModel model, uint64_t rows) {
  constexpr int kMaxTries = 60;
  int tries = 0;
  bool has_shrunk = true;
  const auto keep_if_different = [&](RandomModel smaller) {
    smaller.Prune();
    if (smaller.nodes.size() >= model.nodes.size() || smaller.nodes.empty()) return false;
    if (++tries > kMaxTries || rig.Compare(smaller, rows).empty()) return false;
    model = std::move(smaller);
    return true;
  };
  while (has_shrunk && tries < kMaxTries) {
    has_shrunk = false;
    for (size_t index = 0; !has_shrunk && index < model.nodes.size(); ++index) {
      // Only what this node makes is read.
      RandomModel shorter = model;
      shorter.outputs = {model.nodes[index].makes[0]};
      has_shrunk = keep_if_different(std::move(shorter));
    }
    for (size_t index = 0; !has_shrunk && index < model.nodes.size(); ++index) {
      // Readers of what it makes read what it reads.
      const RandomNode node = model.nodes[index];
      RandomModel shorter = model;
      shorter.nodes.erase(shorter.nodes.begin() + static_cast<std::ptrdiff_t>(index));
      bool is_output = false;
      for (const int output : model.outputs) {
        for (const int made : node.makes) is_output = is_output || output == made;
      }
      if (is_output) continue;
      for (RandomNode& reader : shorter.nodes) {
        for (int& read : reader.reads) {
          for (const int made : node.makes) read = read == made ? node.reads[0] : read;
        }
      }
      has_shrunk = keep_if_different(std::move(shorter));
    }
  }
  return model;
}

struct Variety {
  bool has_loops = false;
  bool has_vanishing = false;
};

void CheckRandomGraphs(const Variety& variety) {
  const uint32_t first = FromEnvironment("ONNXIFI_TEST_SEED", 1);
  const uint32_t count = FromEnvironment("ONNXIFI_TEST_GRAPHS", 100);
  // With one set of devices: opening libraries takes longer than running graphs, and plugins, here
  // copies of one, stay in memory for as long as the process.
  constexpr uint32_t kMaxRigs = 200;
  const uint32_t graphs_per_rig = std::max<uint32_t>(10, (count + kMaxRigs - 1) / kMaxRigs);
  for (uint32_t seed = first; (seed - first) * graphs_per_rig < count; ++seed) {
    std::mt19937 random(seed);
    const std::vector<std::string> devices =
        variety.has_vanishing ? RandomDevicesOfWhichOneVanishes(random) : RandomDevices(random);
    const Rig rig(devices);
    for (uint32_t graph = 0; graph < graphs_per_rig; ++graph) {
      RandomModel model =
          MakeRandomModel(random(), 1 + static_cast<int>(random() % 14), variety.has_loops);
      model.has_anchor = variety.has_vanishing;
      const uint64_t rows = 1 + random() % 5;
      const std::string difference = rig.Compare(model, rows);
      if (difference.empty()) continue;
      const RandomModel smallest = Shrink(rig, model, rows);
      std::string settings;
      for (const std::string& device : devices) settings += device + "\n";
      FAIL() << "ONNXIFI_TEST_SEED=" << seed << " ONNXIFI_TEST_GRAPHS=" << count << ", graph "
             << graph << " (" << rows << " rows): " << difference
             << "\nsmallest: " << rig.Compare(smallest, rows) << "\n"
             << smallest.Text() << "\n"
             << settings;
    }
  }
}

TEST(RandomGraphs, GiveTheSameOnSeveralDevicesAsOnOne) { CheckRandomGraphs({.has_loops = false}); }

TEST(RandomGraphs, GiveTheSameWithLoopsAmongThem) { CheckRandomGraphs({.has_loops = true}); }

TEST(RandomGraphs, GiveTheSameWhenADeviceVanishes) {
  CheckRandomGraphs({.has_loops = true, .has_vanishing = true});
}

}  // namespace
}  // namespace onnxifi::partitioned
