/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Properties of onnxInitGraph for libonnxifi's auto device: whether devices are measured, which
 * device runs which nodes, and what happens when a device fails. Plain C89. The rules of
 * onnxifi/sdk.h apply. Properties of sdk.h are bits below 60.
 */

#ifndef ONNXIFI_AUTO_DEVICE_H
#define ONNXIFI_AUTO_DEVICE_H 1

#include "onnx/onnxifi.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Value: 1 makes onnxInitGraph measure devices that claim nodes of the model, as far as their times
 * are not known yet. It times launches and copies, then each kind of node, then whole runs of
 * candidate plans, with random inputs. This takes seconds. The cache folder keeps the times, and
 * later graphs are planned by them. 0 plans by the times that are known. Without the property the
 * environment variable ONNXIFI_MEASURE decides; without both nothing is measured. Any other value
 * is INVALID_PROPERTY.
 *
 * Any device takes the property; the variable reaches none. 1 makes it time its implementations of
 * a step where the fastest is not known: in onnxInitGraph, or when extents that it leaves open are
 * first given. The cache folder keeps what was found. Without a choice nothing is measured.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE ((uint64_t)1 << 60)

/*
 * Value: address of an onnxPlacement, cast to uint64_t. It is read during the call. Without it
 * every node goes where the whole graph is expected to be fastest. If no device may run a node, or
 * none that may supports it, the graph is refused with an UNSUPPORTED status and the reasons of all
 * devices. INVALID_PROPERTY: an unknown kind, device or node, a node that is given to two devices,
 * or a plan of another model.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_PLACEMENT ((uint64_t)1 << 61)

/* Each node goes where the whole graph is expected to be fastest. No device is listed. */
#define ONNXIFI_SDK_PLACEMENT_AUTO 0
/* Each node goes to the first listed device that supports it. Other nodes go as with AUTO. */
#define ONNXIFI_SDK_PLACEMENT_PREFER 1
/* Only the listed devices run nodes, distributed as with AUTO. Other nodes are an error. */
#define ONNXIFI_SDK_PLACEMENT_STRICT 2
/* The groups are a complete plan. No device is listed. */
#define ONNXIFI_SDK_PLACEMENT_PLAN 3

/* Nodes of one device. Every other node runs where it would run if none were given to a device. A
 * value that nothing carries (a sequence, a map) keeps the nodes that make and read it on one
 * device: they move together. */
typedef struct onnxDeviceNodes {
  size_t struct_size;
  /* Key of onnxGetBackendKey, such as "cpu:0". */
  const char* device_key;
  /* Positions in graph.node of the main graph. */
  uint32_t node_count;
  const uint32_t* nodes;
} onnxDeviceNodes;

typedef struct onnxPlacement {
  size_t struct_size;
  /* ONNXIFI_SDK_PLACEMENT_*. It applies to nodes that neither a group below nor the model
   * places. */
  uint32_t kind;
  /* Devices of PREFER, in order, or of STRICT. Both need at least one. */
  uint32_t device_count;
  const char* const* device_keys;
  /*
   * Each group's device runs its nodes, or the graph is refused. An entry `onnxifi.device` in a
   * node's metadata means the same. With PLAN the groups are all islands of a plan of the same
   * model, as onnxGetGraphPlan reported it. The graph is then partitioned exactly so, without
   * regard to times. A device that refuses its island is an error. One group without nodes stands
   * for the whole model.
   */
  uint32_t group_count;
  const onnxDeviceNodes* const* groups;
} onnxPlacement;

/*
 * Value: 1 keeps the model of a graph that one device has whole, with its weights. If that device
 * fails in a run, a fallback graph on other devices continues the run, provided they support all
 * nodes. 0 is the default: such a run ends with the device's error, and the model is not kept.
 * Models of islands are always kept. Any other value is INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_FALLBACK ((uint64_t)1 << 62)

#ifdef __cplusplus
}
#endif

#endif /* ONNXIFI_AUTO_DEVICE_H */
