/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Properties by which a program says what libonnxifi's auto device may do with a graph. Plain C89;
 * the rules of onnxifi/sdk.h hold, whose own properties are bits below 60.
 */

#ifndef ONNXIFI_AUTO_DEVICE_H
#define ONNXIFI_AUTO_DEVICE_H 1

#include "onnx/onnxifi.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Value: 1 has onnxInitGraph measure what is not known yet of the devices that claim nodes of the
 * model, with inputs that are made up: each device's launches and copies, each kind of node by
 * itself, and then whole runs of the plans that come into question. That takes seconds. What was
 * found is kept in the cache folder, and every graph from then on is planned by it. 0 plans by what
 * is known. Without the property the environment variable ONNXIFI_MEASURE decides, and without that
 * nothing is measured. Any other value is INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE ((uint64_t)1 << 60)

#ifdef __cplusplus
}
#endif

#endif /* ONNXIFI_AUTO_DEVICE_H */
