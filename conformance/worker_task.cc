// SPDX-License-Identifier: Apache-2.0
//
// Library and device are opened once per process, cases run one after the other.

#include "conformance/worker_task.h"

#include <fmt/format.h>

#include "client/execution.h"
#include "conformance/cases/case_list.h"
#include "conformance/suites/interface/interface_suite.h"
#include "conformance/suites/replay.h"

namespace onnxifi::conformance {

WorkerTask::~WorkerTask() {
  oracle_.reset();
  if (backend_ != nullptr) (void)library_->onnxReleaseBackend(backend_);
}

base::Status WorkerTask::Open() {
  if (library_ != nullptr) return base::Ok();
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<client::Library> library,
                           client::Library::Open(options_.library));
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<client::Device> devices,
                           client::ListDevices(*library));
  ONNXIFI_ASSIGN_OR_RETURN(device_, client::ChooseDevice(devices, options_.device));
  for (const std::string& name : options_.alternates) {
    ONNXIFI_ASSIGN_OR_RETURN(client::Device alternate, client::ChooseDevice(devices, name));
    alternates_.push_back(std::move(alternate));
  }
  extensions_ = library->FindExtensions(device_.id);
  library_ = std::move(library);
  oracle_ = std::make_unique<suites::Oracle>(*library_, device_.key);
  return base::Ok();
}

base::Status WorkerTask::InitBackend() {
  if (backend_ != nullptr) return base::Ok();
  return client::ExpectSuccess(*library_, "onnxInitBackend",
                               library_->onnxInitBackend(device_.id, nullptr, &backend_));
}

base::Status WorkerTask::RunOpened(const std::string& id, report::CaseResult& result) {
  if (options_.suite == "interface") {
    result = suites::RunInterfaceCase(id, *library_, extensions_, device_.id, initial_);
    return base::Ok();
  }
  ONNXIFI_RETURN_IF_ERROR(InitBackend());
  const cases::NameAndVariant split = cases::SplitVariant(id);
  ONNXIFI_ASSIGN_OR_RETURN(const cases::CaseDescription description,
                           cases::ReadDescription(options_.cases / split.name));
  suites::ReplayRules rules;
  rules.variant = split.variant;
  rules.refuse_constant_outputs = options_.suite == "models";
  rules.misalign =
      options_.suite == "operators" || options_.suite == "opsets" || options_.suite == "domains";
  rules.lend_model = options_.lend_model;
  result = suites::ReplayCase(description, rules,
                              {.library = *library_,
                               .extensions = extensions_,
                               .id = device_.id,
                               .backend = backend_,
                               .alternates = alternates_},
                              *oracle_);
  return base::Ok();
}

report::CaseResult WorkerTask::Run(const std::string& id) {
  report::CaseResult result;
  base::Status status = Open();
  if (status.ok() && id == kProbeId) {
    result.verdict = report::Verdict::kPass;
    result.note = device_.key;
    result.status = fmt::format(
        "{} ({})",
        client::QueryText(*library_, device_.id, ONNXIFI_BACKEND_NAME)
            .value_or("a device with no name"),
        client::QueryText(*library_, device_.id, ONNXIFI_BACKEND_VENDOR).value_or("no vendor"));
    return result;
  }
  if (status.ok()) status = RunOpened(id, result);
  if (!status.ok()) {
    result.verdict = report::Verdict::kFail;
    result.sentence = status.Text();
  }
  if (library_ != nullptr) result.cells = library_->log().cells();
  return result;
}

}  // namespace onnxifi::conformance
