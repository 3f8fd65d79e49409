// SPDX-License-Identifier: Apache-2.0
//
// Channel parameters: vectors of one number per channel.

#include "backends/core/ops/normalization/channel.h"

namespace onnxifi::ops {

Result<Operand> ChannelVector(Lowering& lowering, const Operand& x, int input) {
  Operand vector = lowering.In(input);
  if (vector.rank() != 1) {
    return Status(Code::kMismatchingShape,
                  lowering.node().op_type + ": Input " + std::to_string(input) + " has " +
                      std::to_string(vector.rank()) + " axes and must have 1, the channels.");
  }
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(
      vector.shape[0], x.shape[1],
      "Length of input " + std::to_string(input) + " and the number of channels"));
  // The extent is the data's: a symbol that must equal it is not taken for a 1 that stretches.
  vector.shape[0] = x.shape[1];
  while (vector.rank() < x.rank() - 1) vector = program::InsertAxis(vector, vector.rank());
  return vector;
}

Status NeedRank(const Lowering& lowering, int rank) {
  const int actual = lowering.In(0).rank();
  if (actual >= rank) return base::Ok();
  return lowering.InvalidModel("Input 0 has " + std::to_string(actual) + " axes, fewer than the " +
                               std::to_string(rank) + " that hold batch, channels and space.");
}

}  // namespace onnxifi::ops
