// SPDX-License-Identifier: Apache-2.0
//
// NodeSignature: two digests by which nodes of whatever models are known to be alike.

#ifndef ONNXIFI_ONNXIFI_SPLIT_NODE_SIGNATURE_H_
#define ONNXIFI_ONNXIFI_SPLIT_NODE_SIGNATURE_H_

#include "onnxifi/split/digest.h"

namespace onnxifi::split {

// What a node is but for names, of whatever model: see node_signer.h.
struct NodeSignature {
  // Operator, version, attributes, types and extents of what it reads and makes, numbers of small
  // constants: what a model of this node alone says.
  Digest alone;
  // Beside that the same of what makes those of its inputs that say more in their model than alone:
  // where extents are not known, and small ones, which may be extents of others.
  Digest in_model;
};

}  // namespace onnxifi::split

#endif  // ONNXIFI_ONNXIFI_SPLIT_NODE_SIGNATURE_H_
