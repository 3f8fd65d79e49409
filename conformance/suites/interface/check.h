// SPDX-License-Identifier: Apache-2.0
//
// Check: what a case of the interface suite is given: the device, and the means to say what must
// hold.

#ifndef ONNXIFI_CONFORMANCE_SUITES_INTERFACE_CHECK_H_
#define ONNXIFI_CONFORMANCE_SUITES_INTERFACE_CHECK_H_

#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "client/library.h"
#include "conformance/suites/interface/process_state.h"

namespace onnxifi::suites {

// Threads: the functions that record may be called from any thread.
class Check {
 public:
  // `initial` is the state of the process before the library was opened.
  Check(const client::Library& library, const client::Extensions& extensions, onnxBackendID id,
        const ProcessState& initial)
      : library_(library), extensions_(extensions), id_(id), initial_(initial) {}

  const client::Library& library() const { return library_; }
  const client::Extensions& extensions() const { return extensions_; }
  onnxBackendID id() const { return id_; }
  const ProcessState& initial() const { return initial_; }

  // Records `sentence` as a failure unless `holds`; returns `holds`.
  bool Expect(bool holds, std::string_view sentence);
  // Records a failure unless the call that `what` describes answered as expected. An expected error
  // must also have a sentence, where the library can give one.
  bool ExpectStatus(onnxStatus expected, onnxStatus actual, std::string_view what);
  bool ExpectOneOf(std::initializer_list<onnxStatus> expected, onnxStatus actual,
                   std::string_view what);

  // The case cannot be put to this device, for this reason; failures count all the same.
  void SetNotSupported(onnxStatus status, std::string reason);

  const std::vector<std::string>& failures() const { return failures_; }
  bool is_supported() const { return unsupported_reason_.empty(); }
  onnxStatus unsupported_status() const { return unsupported_status_; }
  const std::string& unsupported_reason() const { return unsupported_reason_; }

 private:
  const client::Library& library_;
  const client::Extensions& extensions_;
  onnxBackendID id_;
  const ProcessState& initial_;
  std::mutex mutex_;  // Guards what follows.
  std::vector<std::string> failures_;
  onnxStatus unsupported_status_ = ONNXIFI_STATUS_SUCCESS;
  std::string unsupported_reason_;
};

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_INTERFACE_CHECK_H_
