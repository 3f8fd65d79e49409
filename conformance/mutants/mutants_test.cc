// SPDX-License-Identifier: Apache-2.0
//
// Runs the interface suite on a library that lies, once per lie. A lie is found out when a case
// fails that does not fail without it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace {

struct Lie {
  const char* name;
  // Restricts the run where the lie makes many cases hang until their time is up.
  const char* filter;
};

constexpr Lie kLies[] = {
    {"computes one element wrongly", ""},
    {"writes behind an output", ""},
    {"stores into an array that is too small", ""},
    {"answers SUCCESS to a NULL array", "ids_"},
    {"gives new IDs every time", ""},
    {"does not count the NUL", ""},
    {"answers unknown queries", ""},
    {"changes errno", ""},
    {"claims everything", ""},
    {"refuses with another code", ""},
    {"answers by the weights' values", ""},
    {"ignores properties", ""},
    {"changes the locale", ""},
    {"lets an event be signalled twice", ""},
    {"does not wait", ""},
    {"hides the failure of a run", ""},
    {"releases any event", ""},
    {"reads a model at NULL", ""},
    {"ignores weight descriptors", ""},
    {"leaves the handle after a failure", ""},
    {"keeps the binding after a failure", ""},
    {"does not check names", ""},
    {"changes the rounding mode", ""},
    {"waits inside the run", "run_then_signal"},
    {"ignores the input fence", ""},
    {"answers a status that is not listed", ""},
    {"reads the output fence", ""},
    {"releases any graph", ""},
    {"gives no sentence", ""},
    {"knows one spelling only", ""},
    {"crashes at exit", "ids_"},
};

// The cases that fail when this lie is told.
std::set<std::string> FailuresUnder(const std::string& lie, const std::string& filter) {
  const std::filesystem::path results =
      std::filesystem::path(testing::TempDir()) / "mutants_results.json";
  std::filesystem::remove(results);
  setenv("ONNXIFI_MUTANT_TARGET", ONNXIFI_MUTANT_TARGET, 1);
  setenv("ONNXIFI_MUTANT_LIE", lie.c_str(), 1);
  const std::string command = fmt::format(
      "'{}' --suite interface --library '{}' --timeout 20 --jobs 2 --json '{}' {} > /dev/null 2>&1",
      ONNXIFI_CONFORMANCE, ONNXIFI_MUTANT, results.string(),
      filter.empty() ? "" : fmt::format("--filter '{}'", filter));
  const int status = std::system(command.c_str());
  std::set<std::string> failures;
  std::ifstream stream(results);
  if (!stream) {
    // The run did not even begin: the suite has noticed, in its own way.
    failures.insert(fmt::format("no run, status {}", status));
    return failures;
  }
  for (std::string line; std::getline(stream, line);) {
    const auto result = nlohmann::json::parse(line);
    const std::string verdict = result["verdict"];
    if (verdict != "pass" && verdict != "not-supported") failures.insert(result["name"]);
  }
  return failures;
}

TEST(MutantsTest, EveryLieIsFoundOut) {
  const std::set<std::string> truthful = FailuresUnder("", "");
  for (const std::string& failure : truthful) {
    EXPECT_FALSE(failure.starts_with("no run")) << failure;
  }
  int found_count = 0;
  for (const Lie& lie : kLies) {
    std::set<std::string> found = FailuresUnder(lie.name, lie.filter);
    for (const std::string& failure : truthful) found.erase(failure);
    EXPECT_FALSE(found.empty()) << "The suite does not find out a library that " << lie.name << ".";
    if (found.empty()) continue;
    ++found_count;
    fmt::print("{:<42} found out by {} case(s), e.g. {}\n", lie.name, found.size(), *found.begin());
  }
  fmt::print("{} of {} lies found out\n", found_count, std::size(kLies));
}

}  // namespace
