// SPDX-License-Identifier: Apache-2.0
//
// The generated cases: a folder with an index, written by tools/make_onnx_cases.py,
// tools/make_opset_cases.py or tools/make_models.py.

#ifndef ONNXIFI_CONFORMANCE_CASES_CASE_LIST_H_
#define ONNXIFI_CONFORMANCE_CASES_CASE_LIST_H_

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"
#include "client/comparison/comparison.h"

namespace onnxifi::cases {

// One line of index.json.
struct CaseEntry {
  std::string name;
  // "node", "simple", "models", ...
  std::string group;
  bool is_expanded = false;
  // Relative to the folder with the index.
  std::string path;
};

// What the only output of a case is drawn from. The numbers themselves are not expected.
struct Draws {
  enum class Kind : uint8_t { kNormal, kUniform, kClasses };
  Kind kind = Kind::kNormal;
  // kNormal: mean and standard deviation. kUniform: the bounds.
  double mean = 0, deviation = 1;
  double low = 0, high = 1;
  // kClasses: the values that there are, and how often each is drawn.
  std::vector<double> values, shares;
  // Whether the generator has a seed: every graph of the model then draws the same sequence.
  bool is_seeded = false;
  // Whether every row along the first axis is a draw of its own, as of an iteration of a loop.
  bool has_rows = false;
};

// One case.json.
struct CaseDescription {
  std::string name;
  std::filesystem::path folder;
  int data_set_count = 0;
  comparison::Tolerance tolerance;
  // Kinds of the graph's inputs and outputs: "tensor", "sequence", ...
  std::vector<std::string> input_kinds;
  std::vector<std::string> output_kinds;
  // When not 0: the data sets have this many different shapes, and the graph must serve them with
  // one lowering.
  int length_count = 0;
  std::optional<Draws> draws;
};

// INVALID_NAME when there is no index, INVALID_MODEL when it says something else.
base::Result<std::vector<CaseEntry>> ReadIndex(const std::filesystem::path& folder);
base::Result<CaseDescription> ReadDescription(const std::filesystem::path& case_folder);

// The generated folder that was used last: <cache>/<kind>/*/index.json, kind being "cases",
// "opsets" or "models". INVALID_NAME, with the command that makes one, when there is none.
base::Result<std::filesystem::path> FindGeneratedFolder(std::string_view kind);

}  // namespace onnxifi::cases

#endif  // ONNXIFI_CONFORMANCE_CASES_CASE_LIST_H_
