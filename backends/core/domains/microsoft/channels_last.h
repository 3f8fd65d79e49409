// SPDX-License-Identifier: Apache-2.0
//
// Images in definitions whose channels are the last axis, turned into ONNX's order and back.

#ifndef ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_CHANNELS_LAST_H_
#define ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_CHANNELS_LAST_H_

#include "backends/core/base/result.h"
#include "backends/core/model/definition.h"

namespace onnxifi::microsoft {

// `value` has as many axes as input `like`. UNSUPPORTED_SHAPE where their number is not known,
// INVALID_MODEL where it is below 3.
base::Result<model::Definition::Value> ChannelsFirst(model::Definition& d,
                                                     model::Definition::Value value, int like);
base::Result<model::Definition::Value> ChannelsLast(model::Definition& d,
                                                    model::Definition::Value value, int like);

}  // namespace onnxifi::microsoft

#endif  // ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_CHANNELS_LAST_H_
