// SPDX-License-Identifier: Apache-2.0
//
// TensorProto -> tensor::Tensor: what the skeleton says of a tensor, joined with the data that the
// scanner lifted out.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_TENSOR_PROTO_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_TENSOR_PROTO_H_

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/model/external_data.h"
#include "backends/core/model/wire_scanner.h"
#include "backends/core/tensor/tensor.h"

namespace onnxifi::model {

// The most that the dense forms of all sparse tensors of a model may take: a few bytes can name
// terabytes.
inline constexpr int64_t kMaxSparseBytes = int64_t{256} << 20;

// Smaller tensors are copied even from a model that lasts: passes look into them.
inline constexpr int64_t kMinBorrowedBytes = int64_t{1} << 16;

// What may be done with the bytes of a model.
struct ModelBytes {
  // They are given back as they are copied (tensor/file_pages.h says which mappings may be).
  bool is_mapped = false;
  // Large tensors may be views on them.
  bool is_lasting = false;
};

// Reads the tensors of one scanned model. Borrows all it is made from.
class TensorReader {
 public:
  TensorReader(const std::vector<LiftedTensor>& tensors, ExternalData& external_data,
               ModelBytes bytes)
      : tensors_(tensors), external_data_(external_data), bytes_(bytes) {}

  // Type and extents, checked: a known element type, no negative extent, no more than kMaxRank
  // axes, an element count that 63 bits hold. INVALID_MODEL, UNSUPPORTED_DATATYPE,
  // UNSUPPORTED_SHAPE.
  struct Header {
    tensor::ElementType type = tensor::ElementType::kUndefined;
    tensor::Extents extents;
    int64_t element_count = 0;
  };
  base::Result<Header> ReadHeader(const onnx::TensorProto& proto) const;

  // Whether the model's bytes hold data for it. False too for a tensor of an external file.
  bool HasData(const onnx::TensorProto& proto) const;

  // A copy of the data, or a view on a mapped file, or, at any address, on a model that lasts.
  // INVALID_MODEL when there are more or fewer data than the extents ask for; NO_SYSTEM_MEMORY.
  base::Result<tensor::Tensor> Read(const onnx::TensorProto& proto) const;

  // Type and extents of the dense form.
  base::Result<Header> ReadHeader(const onnx::SparseTensorProto& proto) const;
  // The dense form, zero where nothing is given. INVALID_MODEL for indices outside the extents;
  // UNSUPPORTED_SHAPE above kMaxSparseBytes.
  base::Result<tensor::Tensor> Read(const onnx::SparseTensorProto& proto);

 private:
  base::Result<tensor::Tensor> ReadExternal(const onnx::TensorProto& proto,
                                            const Header& header) const;
  const LiftedTensor& Find(const onnx::TensorProto& proto) const;
  // Of the model's bytes as they are.
  tensor::Tensor Borrow(const Header& header, std::span<const std::byte> raw) const;

  const std::vector<LiftedTensor>& tensors_;
  ExternalData& external_data_;
  const ModelBytes bytes_;
  int64_t sparse_bytes_ = 0;  // of the dense forms made so far
};

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_TENSOR_PROTO_H_
