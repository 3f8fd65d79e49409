// SPDX-License-Identifier: Apache-2.0
//
// ProtobufCleanup: gives back what protobuf keeps for the life of a process, when the library that
// contains it is unloaded before that.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_PROTOBUF_CLEANUP_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_PROTOBUF_CLEANUP_H_

#include <google/protobuf/stubs/common.h>

namespace onnxifi::model {

// One static object of it stands in each source that a library cannot use messages without. No
// message may be made or destroyed afterwards; several objects do no harm.
class ProtobufCleanup {
 public:
  ProtobufCleanup() = default;
  ~ProtobufCleanup() { google::protobuf::ShutdownProtobufLibrary(); }
  ProtobufCleanup(const ProtobufCleanup&) = delete;
  ProtobufCleanup& operator=(const ProtobufCleanup&) = delete;
};

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_PROTOBUF_CLEANUP_H_
