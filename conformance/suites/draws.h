// SPDX-License-Identifier: Apache-2.0
//
// Draws: outputs of random generators against the distribution that they are drawn from, and the
// rules for sequences of draws.

#ifndef ONNXIFI_CONFORMANCE_SUITES_DRAWS_H_
#define ONNXIFI_CONFORMANCE_SUITES_DRAWS_H_

#include "client/onnx_file/tensor_file.h"
#include "conformance/cases/case_list.h"
#include "conformance/suites/case_graph.h"
#include "conformance/suites/data_set.h"

namespace onnxifi::suites {

// Mean, variance and the Kolmogorov-Smirnov distance of continuous distributions, the share of each
// class of others; rows that repeat. A draw that is right is refused once in some 100,000 times.
// INTERNAL_ERROR with what is too far off.
base::Status CheckDistribution(const onnx_file::DenseTensor& drawn, const cases::Draws& draws);

// Two graphs of the model with two runs each. Every run draws from the distribution, and other
// numbers than the run before; with a seed, a run of the second graph draws what the same run of
// the first did.
base::Status CheckDraws(const Target& target, const GraphRequest& request, const DataSet& data_set,
                        const cases::Draws& draws, const client::ExecutionOptions& options);

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_DRAWS_H_
