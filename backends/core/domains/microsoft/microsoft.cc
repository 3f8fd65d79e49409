// SPDX-License-Identifier: Apache-2.0
//
// The list of this domain's files of operators.

#include "backends/core/domains/microsoft/microsoft.h"

#include <array>

namespace onnxifi::microsoft {

std::span<const model::Domain* const> ListDomains() {
  constexpr std::string_view kName = "com.microsoft";
  static const std::array parts = {
      model::Domain{kName, 1, ArrayOperators(), RefusedOperators()},
      model::Domain{kName, 1, BlockQuantizedOperators()},
      model::Domain{kName, 1, ConvolutionOperators()},
      model::Domain{kName, 1, CropAndResizeOperators()},
      model::Domain{kName, 1, DecoderAttentionOperators()},
      model::Domain{kName, 1, EmbeddingOperators()},
      model::Domain{kName, 1, FusedProductOperators()},
      model::Domain{kName, 1, GeluOperators()},
      model::Domain{kName, 1, GroupNormOperators()},
      model::Domain{kName, 1, GroupQueryAttentionOperators()},
      model::Domain{kName, 1, HashOperators()},
      model::Domain{kName, 1, HyperConnectionOperators()},
      model::Domain{kName, 1, IntegerProductOperators()},
      model::Domain{kName, 1, InverseOperators()},
      model::Domain{kName, 1, LinearAttentionOperators()},
      model::Domain{kName, 1, LinearQuantizationOperators()},
      model::Domain{kName, 1, MergedAttentionOperators()},
      model::Domain{kName, 1, MixtureOfExpertsOperators()},
      model::Domain{kName, 1, MultiHeadAttentionOperators()},
      model::Domain{kName, 1, PackedAttentionOperators()},
      model::Domain{kName, 1, PackedRecurrenceOperators()},
      model::Domain{kName, 1, PagedAttentionOperators()},
      model::Domain{kName, 1, QLinearElementwiseOperators()},
      model::Domain{kName, 1, QLinearPoolOperators()},
      model::Domain{kName, 1, QuantizedLstmOperators()},
      model::Domain{kName, 1, RelativePositionOperators()},
      model::Domain{kName, 1, SkipNormalizationOperators()},
      model::Domain{kName, 1, SparseAttentionOperators()},
      model::Domain{kName, 1, TextOperators()},
      model::Domain{
          "com.microsoft.nchwc", 1, BlockedChannelsOperators(), {}, BlockedChannelsNote()},
      model::Domain{"", 1, DefaultDomainOperators()},
  };
  static const auto pointers = [] {
    std::array<const model::Domain*, parts.size()> made{};
    for (size_t k = 0; k < parts.size(); ++k) made[k] = &parts[k];
    return made;
  }();
  return pointers;
}

}  // namespace onnxifi::microsoft
