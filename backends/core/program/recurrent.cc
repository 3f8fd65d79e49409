// SPDX-License-Identifier: Apache-2.0
//
// Recurrent: names of its activations.

#include "backends/core/program/recurrent.h"

#include <cstddef>

namespace onnxifi::program {

std::string_view Name(CellFunction function) {
  constexpr std::string_view kNames[] = {"Affine",   "Elu",        "HardSigmoid",    "LeakyRelu",
                                         "Relu",     "ScaledTanh", "Sigmoid",        "Softplus",
                                         "Softsign", "Tanh",       "ThresholdedRelu"};
  return kNames[static_cast<size_t>(function)];
}

}  // namespace onnxifi::program
