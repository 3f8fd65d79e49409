// SPDX-License-Identifier: Apache-2.0
//
// VariantRun: replays a case that the device takes as it is in another form.

#ifndef ONNXIFI_CONFORMANCE_SUITES_VARIANT_RUN_H_
#define ONNXIFI_CONFORMANCE_SUITES_VARIANT_RUN_H_

#include <span>
#include <vector>

#include "client/onnx_file/model_outline.h"
#include "conformance/cases/case_list.h"
#include "conformance/report/case_result.h"
#include "conformance/suites/case_graph.h"
#include "conformance/suites/data_set.h"
#include "conformance/suites/oracle.h"
#include "conformance/suites/replay_rules.h"

namespace onnxifi::suites {

struct Enlargement;

class VariantRun {
 public:
  // `request` is how the case as it is was asked about.
  VariantRun(const cases::CaseDescription& description, const ReplayRules& rules,
             const Target& target, const onnx_file::ModelOutline& outline,
             const GraphRequest& request, Oracle& oracle, report::CaseResult& result)
      : description_(description),
        variant_(rules.variant),
        misalign_(rules.misalign),
        target_(target),
        outline_(outline),
        request_(request),
        oracle_(oracle),
        result_(result) {}

  // Sets the verdict, but to fail: that is what an error means.
  base::Status Run();

 private:
  base::Status RunDataSet(const DataSet& data_set);
  // Runs on other numbers, then again, and many times.
  base::Status RunAgain(const CaseGraph& graph, std::span<const onnx_file::FileValue> inputs,
                        const DataSet& data_set);
  // Runs on the same numbers from several threads at once.
  base::Status RunFromSeveralThreads(const CaseGraph& graph,
                                     std::span<const onnx_file::FileValue> inputs,
                                     const DataSet& data_set);
  base::Status RunTiled(const DataSet& data_set);
  // What the oracle makes of the case as it is.
  base::Result<std::vector<onnx_file::DenseTensor>> ComputeOwn(
      std::span<const onnx_file::DenseTensor> inputs) const;
  base::Status RunTiledOnce(const Enlargement& enlargement, bool& is_done);
  // Claims and initialises. False, with the verdict set, when the device refuses.
  base::Result<bool> InitGraph(const GraphRequest& request, CaseGraph& graph);
  base::Status CheckOutputs(std::span<const onnx_file::DenseTensor> outputs,
                            const DataSet& data_set, double& worst_ratio) const;
  base::Status RunGraph(const CaseGraph& graph, std::span<const onnx_file::FileValue> inputs,
                        const DataSet& data_set, int run_count);
  // The expected outputs, larger where only data tell extents; sets the verdict where none is.
  base::Result<std::vector<onnx_file::DenseTensor>> EnlargeBounds(
      const CaseGraph& graph, std::span<const onnx_file::FileValue> inputs,
      std::vector<onnx_file::DenseTensor> outputs);
  void SetNotApplicable(std::string sentence);

  const cases::CaseDescription& description_;
  const cases::Variant variant_;
  const bool misalign_;
  const Target& target_;
  const onnx_file::ModelOutline& outline_;
  const GraphRequest& request_;
  Oracle& oracle_;
  report::CaseResult& result_;
};

// The device has refused; checks that it did so as it may: with one of the five codes, a sentence,
// and the same code from onnxInitGraph.
base::Status CheckRefusal(const Target& target, const GraphRequest& request, onnxStatus refusal,
                          report::CaseResult& result);

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_VARIANT_RUN_H_
