// SPDX-License-Identifier: Apache-2.0
//
// model_fuzz --count N --seed S: takes N damaged models as far as they go, as support question
// (import, support check of each node) and as initialisation (import, support check, compilation,
// plan), and checks that each is refused with a sentence or gives a sound graph, within a second.
// Built with a sanitizer it finds what lies deeper.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/graph/verify.h"
#include "backends/core/model/import.h"
#include "backends/core/model/testing/model_mutator.h"
#include "backends/core/model/testing/seed_models.h"
#include "backends/core/plan/plan.h"
#include "backends/core/plugin/pipeline.h"
#include "backends/core/reference/device.h"

namespace {

using onnxifi::base::Code;
using onnxifi::base::CodeName;
using onnxifi::base::Status;

constexpr auto kLongest = std::chrono::seconds(1);

const char* CheckSentence(const Status& status) {
  return !status.ok() && status.sentence().empty() ? "it is refused without a sentence" : nullptr;
}

// Null if all is well; `code` is how far it came.
const char* Take(const std::string& bytes, bool lift_values, Code& code) {
  onnxifi::model::ImportOptions options;
  options.lift_values = lift_values;
  auto graph = onnxifi::model::Import(std::as_bytes(std::span(bytes)), options);
  code = graph.status().code();
  if (!graph.ok()) return CheckSentence(graph.status());
  if (!onnxifi::graph::Verify(*graph).ok()) return "its graph breaks an invariant";
  onnxifi::reference::Device device;
  const Status verdict = onnxifi::plugin::CheckSupport(*graph, device);
  code = verdict.code();
  if (!verdict.ok() || !lift_values) return CheckSentence(verdict);
  const onnxifi::base::Log log(onnxifi::base::LogLevel::kError);
  onnxifi::plugin::LoadTimes times;
  const auto program = onnxifi::plugin::Compile(*std::move(graph), device, log, times);
  code = program.status().code();
  if (!program.ok()) return CheckSentence(program.status());
  onnxifi::plan::Counters counters;
  const auto plan = onnxifi::plan::Plan::Create(**program, device, counters);
  code = plan.status().code();
  return CheckSentence(plan.status());
}

const char* Check(const std::string& bytes, bool lift_values, Code& code) {
  const auto start = std::chrono::steady_clock::now();
  const char* fault = Take(bytes, lift_values, code);
  if (fault == nullptr && std::chrono::steady_clock::now() - start > kLongest) {
    return "it takes more than a second";
  }
  return fault;
}

bool ReadNumber(const char* text, uint64_t& number) {
  char* end = nullptr;
  number = std::strtoull(text, &end, 10);
  return *text != '\0' && *end == '\0';
}

}  // namespace

int main(int argument_count, char** arguments) {
  uint64_t count = 10000;
  uint64_t seed = 1;
  for (int index = 1; index < argument_count; index += 2) {
    uint64_t* target = std::strcmp(arguments[index], "--count") == 0  ? &count
                       : std::strcmp(arguments[index], "--seed") == 0 ? &seed
                                                                      : nullptr;
    if (target == nullptr || index + 1 == argument_count ||
        !ReadNumber(arguments[index + 1], *target)) {
      std::fprintf(stderr, "usage: %s [--count N] [--seed S]\n", arguments[0]);
      return 2;
    }
  }
  std::vector<std::string> seeds;
  for (auto& [name, bytes] : onnxifi::model::testing::MakeSeedModels()) {
    // Untimed: the first import of a process fills ONNX's schema registry.
    const auto graph = onnxifi::model::Import(std::as_bytes(std::span(bytes)), {});
    if (!graph.ok()) {
      std::fprintf(stderr, "Seed '%s' is refused: %s\n", name.c_str(),
                   graph.status().Text().c_str());
      return 1;
    }
    seeds.push_back(std::move(bytes));
  }
  onnxifi::model::testing::ModelMutator mutator(std::move(seeds), seed);
  std::map<std::string, uint64_t> counts;
  const uint64_t step = count < 20 ? 1 : count / 20;
  for (uint64_t index = 0; index < count; ++index) {
    const std::string bytes = mutator.Next();
    for (const bool lift_values : {true, false}) {
      Code code = Code::kOk;
      if (const char* fault = Check(bytes, lift_values, code)) {
        std::fprintf(stderr, "Model %llu of seed %llu: %s.\n",
                     static_cast<unsigned long long>(index), static_cast<unsigned long long>(seed),
                     fault);
        return 1;
      }
      if (lift_values) ++counts[std::string(CodeName(code))];
    }
    if ((index + 1) % step == 0) {
      std::printf("%llu of %llu\n", static_cast<unsigned long long>(index) + 1,
                  static_cast<unsigned long long>(count));
      std::fflush(stdout);
    }
  }
  for (const auto& [name, times] : counts) {
    std::printf("%-22s %llu\n", name.c_str(), static_cast<unsigned long long>(times));
  }
  return 0;
}
