// SPDX-License-Identifier: Apache-2.0
//
// Alternation: a model that names devices for its nodes in turn, so that a library which
// distributes nodes has to cut it as often as it can.

#ifndef ONNXIFI_CONFORMANCE_SUITES_ALTERNATION_H_
#define ONNXIFI_CONFORMANCE_SUITES_ALTERNATION_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "client/device_list.h"
#include "client/library.h"

namespace onnxifi::suites {

// The model with an entry "onnxifi.device" in the metadata of every node that a device claims: of
// one that several claim, the next of them. UNSUPPORTED_OPERATOR when a device does not explain
// itself; INVALID_PROTOBUF.
base::Result<std::string> NameDevicesInTurn(std::span<const std::byte> model,
                                            const client::Library& library,
                                            std::span<const client::Device> devices);

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_ALTERNATION_H_
