// SPDX-License-Identifier: Apache-2.0
//
// CaseForm: what a variant makes of a case: its model, which inputs are weights given by
// descriptor, and which a run is given.

#ifndef ONNXIFI_CONFORMANCE_SUITES_CASE_FORM_H_
#define ONNXIFI_CONFORMANCE_SUITES_CASE_FORM_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "client/onnx_file/model_outline.h"
#include "client/onnx_file/value_file.h"
#include "conformance/cases/variant.h"

namespace onnxifi::suites {

struct CaseForm {
  // Why the case cannot have the variant, as a sentence; empty if it can. All else is empty then.
  std::string obstacle;
  std::vector<std::byte> model;
  std::vector<onnx_file::DenseTensor> weights;
  std::vector<onnx_file::FileValue> inputs;
};

// `inputs`: of one data set. All variants but kTiled. INVALID_PROTOBUF.
base::Result<CaseForm> MakeForm(cases::Variant variant, std::span<const std::byte> model,
                                const onnx_file::ModelOutline& outline,
                                std::span<const onnx_file::FileValue> inputs);

// The inputs with NaN in every float; nothing in them is changed when there is no float.
std::vector<onnx_file::FileValue> PoisonFloats(std::vector<onnx_file::FileValue> inputs);

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_CASE_FORM_H_
