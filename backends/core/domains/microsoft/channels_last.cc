// SPDX-License-Identifier: Apache-2.0
//
// Images in definitions: a Transpose, which is a view.

#include "backends/core/domains/microsoft/channels_last.h"

#include <numeric>
#include <utility>

namespace onnxifi::microsoft {

using base::Result;
using model::Definition;
using Value = Definition::Value;

namespace {

Result<int> RankOfImages(const Definition& d, int like) {
  const std::optional<int> rank = d.Rank(like);
  const std::string what = "Input " + std::to_string(like);
  if (!rank) return d.UnsupportedShape(what + " has a number of axes that is not known.");
  if (*rank >= 3) return *rank;
  return d.Invalid(what + " has " + std::to_string(*rank) + " axes; images have at least 3.");
}

}  // namespace

Result<Value> ChannelsFirst(Definition& d, Value value, int like) {
  ONNXIFI_ASSIGN_OR_RETURN(const int rank, RankOfImages(d, like));
  std::vector<int64_t> perm = {0, rank - 1};
  for (int64_t axis = 1; axis < rank - 1; ++axis) perm.push_back(axis);
  return d.Transpose(std::move(value), std::move(perm));
}

Result<Value> ChannelsLast(Definition& d, Value value, int like) {
  ONNXIFI_ASSIGN_OR_RETURN(const int rank, RankOfImages(d, like));
  std::vector<int64_t> perm = {0};
  for (int64_t axis = 2; axis < rank; ++axis) perm.push_back(axis);
  perm.push_back(1);
  return d.Transpose(std::move(value), std::move(perm));
}

}  // namespace onnxifi::microsoft
