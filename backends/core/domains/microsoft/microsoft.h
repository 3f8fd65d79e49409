// SPDX-License-Identifier: Apache-2.0
//
// The domain com.microsoft, as ONNX Runtime defines it: what its quantizer, its transformer
// optimizer and its model builder write. One function per file of operators; microsoft.cc joins
// them.

#ifndef ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_MICROSOFT_H_
#define ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_MICROSOFT_H_

#include <span>
#include <string_view>

#include "backends/core/base/called_at_load.h"
#include "backends/core/model/domain.h"

namespace onnxifi::microsoft {

ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> ArrayOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> BlockQuantizedOperators();
// Of com.microsoft.nchwc; what its files do not say.
std::string_view BlockedChannelsNote();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> BlockedChannelsOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> ConvolutionOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> CropAndResizeOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> DecoderAttentionOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> EmbeddingOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> FusedProductOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> GeluOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> GroupNormOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> GroupQueryAttentionOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> HashOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> HyperConnectionOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> IntegerProductOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> InverseOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> LinearAttentionOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> LinearQuantizationOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> MergedAttentionOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> MixtureOfExpertsOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> MultiHeadAttentionOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> PackedAttentionOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> PackedRecurrenceOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> PagedAttentionOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> QLinearElementwiseOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> QLinearPoolOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> QuantizedLstmOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> RelativePositionOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> SkipNormalizationOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> SparseAttentionOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> TextOperators();
// Of ONNX's own domain: operators that ONNX Runtime writes there and ONNX does not define.
ONNXIFI_CALLED_AT_LOAD std::span<const model::DomainOperator> DefaultDomainOperators();
// Of ONNX's own domain, too: what its first versions had.

// What com.microsoft has, too.
std::span<const model::RefusedOperator> RefusedOperators();

std::span<const model::Domain* const> ListDomains();

}  // namespace onnxifi::microsoft

#endif  // ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_MICROSOFT_H_
