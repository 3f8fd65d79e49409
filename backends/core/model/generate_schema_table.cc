// SPDX-License-Identifier: Apache-2.0
//
// generate_schema_table: writes schema_table.inc, a line per operator and version that the ONNX
// library knows, so that SchemaTable can make one without making all. Runs during the build.

#include <onnx/defs/schema.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <string>
#include <tuple>
#include <vector>

namespace {

// The part of a schema's class name that stands for its domain (ONNX_OPERATOR_SET_SCHEMA).
std::string ClassDomain(const std::string& domain) {
  if (domain == onnx::ONNX_DOMAIN) return "Onnx";
  if (domain == onnx::AI_ONNX_ML_DOMAIN) return "OnnxML";
  if (domain == onnx::AI_ONNX_TRAINING_DOMAIN) return "OnnxTraining";
  return "OnnxPreview";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: generate_schema_table FILE\n";
    return 2;
  }
  std::vector<std::tuple<std::string, std::string, int>> entries;
  for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
    entries.emplace_back(schema.Name(), schema.domain(), schema.SinceVersion());
  }
  std::ranges::sort(entries);
  std::ofstream file(argv[1]);
  for (const auto& [name, domain, version] : entries) {
    file << "{\"" << name << "\", \"" << domain << "\", " << version
         << ", &onnx::GetOpSchema<onnx::" << name << '_' << ClassDomain(domain) << "_ver" << version
         << ">},\n";
  }
  file.close();
  if (!file) {
    std::cerr << "generate_schema_table: '" << argv[1] << "' cannot be written.\n";
    return 1;
  }
  return 0;
}
