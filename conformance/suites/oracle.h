// SPDX-License-Identifier: Apache-2.0
//
// Oracle: what a model gives, computed by the device `null` of the libonnxifi beside the program:
// every step as plain loops. Expects what no file of a case holds, such as outputs of tiled inputs.

#ifndef ONNXIFI_CONFORMANCE_SUITES_ORACLE_H_
#define ONNXIFI_CONFORMANCE_SUITES_ORACLE_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/device_list.h"
#include "client/library.h"
#include "client/onnx_file/tensor_file.h"

namespace onnxifi::suites {

class Oracle {
 public:
  // `tested` is the library under test, which is used itself if it is that libonnxifi, `device` the
  // key of the device under test.
  Oracle(const client::Library& tested, std::string device);
  ~Oracle();
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  // Why there is none, as a sentence; empty if there is one. Opens it the first time.
  const std::string& FindObstacle();

  // The outputs of the model. Any error means that the model is none for these inputs, or that an
  // output has too many elements (kMaxOutputElements). FindObstacle is empty.
  base::Result<std::vector<onnx_file::DenseTensor>> Compute(
      std::span<const std::byte> model, std::span<const onnx_file::DenseTensor> inputs);

  static constexpr int64_t kMaxOutputElements = int64_t{1} << 16;

 private:
  base::Status Open();

  const client::Library& tested_;
  const std::string tested_device_;
  bool is_opened_ = false;
  std::string obstacle_;
  std::unique_ptr<client::Library> own_;
  const client::Library* library_ = nullptr;
  client::Device device_;
  client::Extensions extensions_;
  onnxBackend backend_ = nullptr;
};

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_ORACLE_H_
