// SPDX-License-Identifier: Apache-2.0
//
// WorkerTask: what a child process does with a case's ID. It alone loads the library under test.

#ifndef ONNXIFI_CONFORMANCE_WORKER_TASK_H_
#define ONNXIFI_CONFORMANCE_WORKER_TASK_H_

#include <memory>
#include <string>
#include <vector>

#include "client/device_list.h"
#include "client/library.h"
#include "conformance/options.h"
#include "conformance/report/case_result.h"
#include "conformance/suites/interface/process_state.h"
#include "conformance/suites/oracle.h"

namespace onnxifi::conformance {

// The ID that asks only whether library and device are there; the answer's note is the device's
// key, its status the plugin's name and vendor.
inline constexpr char kProbeId[] = "@device";

class WorkerTask {
 public:
  explicit WorkerTask(const Options& options)
      : options_(options), initial_(suites::CaptureProcessState()) {}
  ~WorkerTask();
  WorkerTask(const WorkerTask&) = delete;
  WorkerTask& operator=(const WorkerTask&) = delete;

  // Runs one case; opens the library and the device at the first.
  report::CaseResult Run(const std::string& id);

 private:
  base::Status Open();
  // The backend that all replayed cases share.
  base::Status InitBackend();
  base::Status RunOpened(const std::string& id, report::CaseResult& result);

  const Options& options_;
  const suites::ProcessState initial_;
  std::unique_ptr<client::Library> library_;
  client::Device device_;
  std::vector<client::Device> alternates_;
  client::Extensions extensions_;
  onnxBackend backend_ = nullptr;
  // Made with the library; uses it until its own end.
  std::unique_ptr<suites::Oracle> oracle_;
};

}  // namespace onnxifi::conformance

#endif  // ONNXIFI_CONFORMANCE_WORKER_TASK_H_
