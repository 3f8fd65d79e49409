// SPDX-License-Identifier: Apache-2.0
//
// The models of the interface suite: a node or two each, legal ones and others.

#ifndef ONNXIFI_CONFORMANCE_SUITES_INTERFACE_SMALL_MODELS_H_
#define ONNXIFI_CONFORMANCE_SUITES_INTERFACE_SMALL_MODELS_H_

#include <string>
#include <vector>

#include "client/onnx_file/model_writer.h"

namespace onnxifi::suites {

using onnx_file::Dimension;
using onnx_file::ElementType;
using onnx_file::ModelWriter;

inline constexpr int64_t kRows = 2;
inline constexpr int64_t kColumns = 3;

// z = x + y, all float32 [2, 3].
std::string MakeAddModel();
// z = x + y with y a static weight that the model declares as an input without a value.
std::string MakeWeightModel();
// As before with a value in the model too: 100 throughout.
std::string MakeInitializerModel();
// y = Relu(x), float32 [N, 3].
std::string MakeSymbolicModel();
// z = x + y, float32 [N, 3] both.
std::string MakeTwoSymbolsModel();
// y = x * m * m * ... * m, float32 [64, 64], `count` products: long enough to be caught in the act.
std::string MakeLongModel(int count);
// r = max over all of a x b with a [n, 1] and b [1, n]: needs n*n floats in between.
std::string MakeHugeModel(int64_t n);

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_INTERFACE_SMALL_MODELS_H_
