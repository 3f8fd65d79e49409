// SPDX-License-Identifier: Apache-2.0
//
// TwinText: what there is to say of devices that are one physical device, reached through several
// plugins: whether auto cut a model between them, and why.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_TWIN_TEXT_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_TWIN_TEXT_H_

#include <string>

#include "client/node_answers.h"

namespace onnxifi::run {

// A sentence, with its line's end, for each physical device with several IDs. `is_placed`: the
// caller or the model says where nodes run.
std::string MakeTwinText(const client::ModelAnswers& answers, const GraphPlan& plan,
                         bool is_placed);

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_TWIN_TEXT_H_
