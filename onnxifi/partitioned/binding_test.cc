// SPDX-License-Identifier: Apache-2.0
//
// Binding: which runs may be under way at the same time.

#include "onnxifi/partitioned/binding.h"

#include <gtest/gtest.h>

namespace onnxifi::partitioned {
namespace {

// So many floats from `buffer` on.
abi::TensorDescriptor At(onnxPointer buffer, uint64_t count) {
  abi::TensorDescriptor descriptor;
  descriptor.name = "t";
  descriptor.data_type = ONNXIFI_DATATYPE_FLOAT32;
  descriptor.memory_type = ONNXIFI_MEMORY_TYPE_CPU;
  descriptor.shape = {count};
  descriptor.buffer = buffer;
  return descriptor;
}

Binding MakeBinding(abi::TensorDescriptor input, abi::TensorDescriptor output) {
  abi::GraphTensors tensors;
  tensors.inputs.push_back(std::move(input));
  tensors.outputs.push_back(std::move(output));
  return Binding(std::move(tensors));
}

bool AreIndependent(const Binding& one, const Binding& other) {
  EXPECT_EQ(one.IsIndependentOf(other), other.IsIndependentOf(one));
  return one.IsIndependentOf(other);
}

TEST(Binding, IsIndependentWhereOnlyInputsAreShared) {
  const Binding one = MakeBinding(At(1000, 4), At(2000, 4));
  EXPECT_TRUE(AreIndependent(one, MakeBinding(At(1000, 4), At(2016, 4))));
  EXPECT_TRUE(AreIndependent(one, MakeBinding(At(1008, 4), At(1984, 4))));
  EXPECT_FALSE(AreIndependent(one, one));
}

TEST(Binding, IsNotWhereOneWritesAByteOfTheOther) {
  const Binding one = MakeBinding(At(1000, 4), At(2000, 4));
  // The same outputs in part, its output as input, its input as output.
  EXPECT_FALSE(AreIndependent(one, MakeBinding(At(3000, 4), At(2012, 4))));
  EXPECT_FALSE(AreIndependent(one, MakeBinding(At(1988, 4), At(3000, 4))));
  EXPECT_FALSE(AreIndependent(one, MakeBinding(At(3000, 4), At(1012, 4))));
}

TEST(Binding, IsNotWhereMemoryIsNotTheHosts) {
  abi::TensorDescriptor device = At(5000, 4);
  device.memory_type = ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER;
  const Binding one = MakeBinding(At(1000, 4), At(2000, 4));
  EXPECT_FALSE(AreIndependent(one, MakeBinding(At(3000, 4), device)));
}

TEST(Binding, LeavesOutWhatARunKeeps) {
  abi::TensorDescriptor kept = At(2000, 4);
  kept.is_kept = true;
  const Binding one = MakeBinding(At(1000, 4), At(2000, 4));
  EXPECT_TRUE(AreIndependent(one, MakeBinding(At(1000, 4), kept)));
}

}  // namespace
}  // namespace onnxifi::partitioned
