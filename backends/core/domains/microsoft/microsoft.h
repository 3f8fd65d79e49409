// SPDX-License-Identifier: Apache-2.0
//
// The domain com.microsoft, as ONNX Runtime defines it: what its quantizer, its transformer
// optimizer and its model builder write. One function per file of operators; microsoft.cc joins
// them.

#ifndef ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_MICROSOFT_H_
#define ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_MICROSOFT_H_

#include <span>

#include "backends/core/model/domain.h"

namespace onnxifi::microsoft {

std::span<const model::DomainOperator> ArrayOperators();
std::span<const model::DomainOperator> BlockQuantizedOperators();
std::span<const model::DomainOperator> ConvolutionOperators();
std::span<const model::DomainOperator> CropAndResizeOperators();
std::span<const model::DomainOperator> DecoderAttentionOperators();
std::span<const model::DomainOperator> EmbeddingOperators();
std::span<const model::DomainOperator> FusedProductOperators();
std::span<const model::DomainOperator> GeluOperators();
std::span<const model::DomainOperator> GroupNormOperators();
std::span<const model::DomainOperator> GroupQueryAttentionOperators();
std::span<const model::DomainOperator> HashOperators();
std::span<const model::DomainOperator> HyperConnectionOperators();
std::span<const model::DomainOperator> IntegerProductOperators();
std::span<const model::DomainOperator> InverseOperators();
std::span<const model::DomainOperator> LinearAttentionOperators();
std::span<const model::DomainOperator> LinearQuantizationOperators();
std::span<const model::DomainOperator> MergedAttentionOperators();
std::span<const model::DomainOperator> MixtureOfExpertsOperators();
std::span<const model::DomainOperator> MultiHeadAttentionOperators();
std::span<const model::DomainOperator> PackedAttentionOperators();
std::span<const model::DomainOperator> PackedRecurrenceOperators();
std::span<const model::DomainOperator> PagedAttentionOperators();
std::span<const model::DomainOperator> QLinearElementwiseOperators();
std::span<const model::DomainOperator> QLinearPoolOperators();
std::span<const model::DomainOperator> QuantizedLstmOperators();
std::span<const model::DomainOperator> RelativePositionOperators();
std::span<const model::DomainOperator> SkipNormalizationOperators();
std::span<const model::DomainOperator> SparseAttentionOperators();
std::span<const model::DomainOperator> TextOperators();
// Of ONNX's own domain: operators that ONNX Runtime writes there and ONNX does not define.
std::span<const model::DomainOperator> DefaultDomainOperators();
// Of ONNX's own domain, too: what its first versions had.
std::span<const model::DomainOperator> WithdrawnOperators();

std::span<const model::Domain* const> ListDomains();

}  // namespace onnxifi::microsoft

#endif  // ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_MICROSOFT_H_
