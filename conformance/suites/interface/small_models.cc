// SPDX-License-Identifier: Apache-2.0
//
// Models written with ModelWriter.

#include "conformance/suites/interface/small_models.h"

#include <fmt/format.h>

namespace onnxifi::suites {
namespace {

constexpr ElementType kFloat = ElementType::kFloat32;

std::vector<Dimension> Matrix() { return {kRows, kColumns}; }

ModelWriter StartAdd() {
  ModelWriter writer;
  writer.Input("x", kFloat, Matrix()).Input("y", kFloat, Matrix());
  return writer;
}

std::string FinishAdd(ModelWriter writer) {
  return writer.Node("Add", {"x", "y"}, {"z"}).Output("z", kFloat, Matrix()).Build();
}

}  // namespace

std::string MakeAddModel() { return FinishAdd(StartAdd()); }

std::string MakeWeightModel() { return MakeAddModel(); }

std::string MakeInitializerModel() {
  ModelWriter writer = StartAdd();
  writer.Initializer(onnx_file::MakeFloatTensor("y", {kRows, kColumns},
                                                std::vector<float>(kRows * kColumns, 100.0f)));
  return FinishAdd(std::move(writer));
}

std::string MakeSymbolicModel() {
  return ModelWriter()
      .Input("x", kFloat, {"N", kColumns})
      .Node("Relu", {"x"}, {"y"})
      .Output("y", kFloat, {"N", kColumns})
      .Build();
}

std::string MakeTwoSymbolsModel() {
  return ModelWriter()
      .Input("x", kFloat, {"N", kColumns})
      .Input("y", kFloat, {"N", kColumns})
      .Node("Add", {"x", "y"}, {"z"})
      .Output("z", kFloat, {"N", kColumns})
      .Build();
}

std::string MakeLongModel(int count) {
  const std::vector<Dimension> square = {int64_t{64}, int64_t{64}};
  ModelWriter writer;
  writer.Input("x", kFloat, square).Input("m", kFloat, square);
  std::string last = "x";
  for (int index = 0; index < count; ++index) {
    std::string next = index + 1 == count ? "y" : fmt::format("v{}", index);
    writer.Node("MatMul", {last, "m"}, {next});
    last = std::move(next);
  }
  return writer.Output("y", kFloat, square).Build();
}

std::string MakeHugeModel(int64_t n) {
  return ModelWriter()
      .Input("a", kFloat, {n, int64_t{1}})
      .Input("b", kFloat, {int64_t{1}, n})
      .Node("MatMul", {"a", "b"}, {"c"})
      .Node("ReduceMax", {"c"}, {"r"}, {onnx_file::MakeIntAttribute("keepdims", 0)})
      .Output("r", kFloat, {})
      .Build();
}

}  // namespace onnxifi::suites
