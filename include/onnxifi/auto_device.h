/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Properties by which a program says what libonnxifi's auto device may do with a graph: whether it
 * measures, and which device runs what. Plain C89; the rules of onnxifi/sdk.h hold, whose own
 * properties are bits below 60.
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

/*
 * Value: address of an onnxPlacement, cast to uint64_t, which is read during the call. Without it
 * every node goes wherever the whole graph is expected to be fastest. What no device may have or
 * takes under these terms is refused with the status of a device and the reasons of all.
 * INVALID_PROPERTY: a kind that there is not, a device or node that there is not, a node that is
 * given to two devices, and a plan that is none of the model.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_PLACEMENT ((uint64_t)1 << 61)

/* Wherever the whole graph is expected to be fastest; no device is listed. */
#define ONNXIFI_SDK_PLACEMENT_AUTO 0
/* On the first of the devices that takes the node; what none of them takes, as with AUTO. */
#define ONNXIFI_SDK_PLACEMENT_PREFER 1
/* On these devices, as with AUTO where there are several, or not at all. */
#define ONNXIFI_SDK_PLACEMENT_STRICT 2
/* By a plan; no device is listed. */
#define ONNXIFI_SDK_PLACEMENT_PLAN 3

/* Nodes of one device. */
typedef struct onnxDeviceNodes {
  size_t struct_size;
  /* As of onnxGetBackendKey, e.g. "cpu:0". */
  const char* device_key;
  /* Positions in graph.node of the main graph. */
  uint32_t node_count;
  const uint32_t* nodes;
} onnxDeviceNodes;

typedef struct onnxPlacement {
  size_t struct_size;
  /* ONNXIFI_SDK_PLACEMENT_*, of all nodes that neither a group below nor the model places. */
  uint32_t kind;
  /* Devices to prefer, first the first, or to use alone: at least one with PREFER and STRICT. */
  uint32_t device_count;
  const char* const* device_keys;
  /*
   * Nodes that their device runs or nobody, like those with an entry `onnxifi.device` in the
   * model's metadata. With PLAN, all islands of a plan as onnxGetGraphPlan told it for the same
   * model: the graph is cut exactly so, whatever is known of times, and a device that refuses its
   * part is an error. One island without nodes is the whole model.
   */
  uint32_t group_count;
  const onnxDeviceNodes* const* groups;
} onnxPlacement;

/*
 * Value: 1 keeps the model of a graph that one device has whole, with its weights, so that other
 * devices, where they take all of it, go on with a run in which that device fails. 0 is the
 * default: such a run ends with the device's error. Parts of a graph that several devices have are
 * always kept. Any other value is INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_FALLBACK ((uint64_t)1 << 62)

#ifdef __cplusplus
}
#endif

#endif /* ONNXIFI_AUTO_DEVICE_H */
