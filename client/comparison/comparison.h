// SPDX-License-Identifier: Apache-2.0
//
// Compares what a library computed with what was expected, under one of three rules: ONNX's own for
// its test cases, and the stricter ones of this project for whole models and between two devices.

#ifndef ONNXIFI_CLIENT_COMPARISON_COMPARISON_H_
#define ONNXIFI_CLIENT_COMPARISON_COMPARISON_H_

#include <string>

#include "client/onnx_file/tensor_file.h"

namespace onnxifi::comparison {

struct Tolerance {
  // |a - b| <= absolute + relative * |b|, as onnx.backend.test.runner compares, both for float32.
  double absolute = 1e-7;
  double relative = 1e-3;
  // When not 0, instead of the above: |a - b| <= rms_factor * (|b| + rms(b)).
  double rms_factor = 0;
  // The same rule with the factor that the element type has between two devices.
  bool between_devices = false;
};

// What an element type makes of a tolerance. A row per type of floats or complex numbers.
struct TypeTolerance {
  onnx_file::ElementType type;
  // Factor of `absolute` and `relative`: ONNX has the same numbers for float64 as for float32, and
  // then float32 arithmetic passes for float64.
  double scale;
  // What `relative` is at least: units in the last place of types that have few digits.
  double least_relative;
  // rms_factor between two devices, which round in other places.
  double between_devices;
};

// The row of a type; that of float32 for types without one.
const TypeTolerance& ToleranceOf(onnx_file::ElementType type);

struct Comparison {
  bool is_similar = false;
  // Largest difference as a multiple of what the rule allows at that element; 0 for equal tensors
  // and for types that are compared exactly.
  double worst_ratio = 0;
  // The first element out of tolerance (or the type or shape that differs), as a sentence; empty
  // when similar.
  std::string sentence;
};

// Type and shape must be equal; integers and bools bit for bit; NaN equals NaN and an infinity the
// same infinity.
Comparison Compare(const onnx_file::DenseTensor& actual, const onnx_file::DenseTensor& expected,
                   const Tolerance& tolerance);

// Whether the tensor has more than one element and all of them have the same value.
bool IsConstant(const onnx_file::DenseTensor& tensor);

}  // namespace onnxifi::comparison

#endif  // ONNXIFI_CLIENT_COMPARISON_COMPARISON_H_
