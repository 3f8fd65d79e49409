// SPDX-License-Identifier: Apache-2.0
//
// Bytes of a mapped file: what is copied, what stays in memory, what is read again.

#include "backends/core/model/mapped_bytes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "backends/core/model/import.h"

namespace onnxifi::model {
namespace {

std::string SeededBytes(size_t size_bytes, uint32_t seed) {
  std::string bytes(size_bytes, '\0');
  for (char& byte : bytes) {
    seed = seed * 1'664'525 + 1'013'904'223;
    byte = static_cast<char>(seed >> 24);
  }
  return bytes;
}

// A private mapping of a file that has no name any more.
class Mapping {
 public:
  explicit Mapping(const std::string& content) : size_(content.size()) {
    const auto path = std::filesystem::temp_directory_path() /
                      ("onnxifi_mapped_bytes_" + std::to_string(getpid()));
    std::ofstream(path, std::ios::binary) << content;
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    ::close(file);
    std::filesystem::remove(path);
  }
  ~Mapping() { ::munmap(data_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

  // Bytes of the mapping that count as memory of this process: bit 63 of a page's entry.
  size_t InMemory() const {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    std::vector<uint64_t> entries((size_ + page - 1) / page);
    const auto size_bytes = static_cast<ssize_t>(entries.size() * sizeof(uint64_t));
    const int map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(::pread(map, entries.data(), entries.size() * sizeof(uint64_t),
                      static_cast<off_t>(reinterpret_cast<uintptr_t>(data_) / page * 8)),
              size_bytes);
    ::close(map);
    size_t present = 0;
    for (const uint64_t entry : entries) present += entry >> 63;
    return present * page;
  }

 private:
  size_t size_;
  void* data_ = nullptr;
};

constexpr size_t kMiB = size_t{1} << 20;

TEST(MappedBytesTest, CopiesAllAndLeavesLittleInMemory) {
  const std::string content = SeededBytes(9 * kMiB + 4321, 5);
  const Mapping mapping(content);
  for (const size_t begin : {size_t{0}, size_t{1}, size_t{4097}}) {
    const auto source = mapping.bytes().subspan(begin, 9 * kMiB + 17);
    std::vector<std::byte> copy(source.size());
    CopyAndGiveBack(copy.data(), source);
    EXPECT_EQ(std::memcmp(copy.data(), content.data() + begin, copy.size()), 0);
    EXPECT_LT(mapping.InMemory(), kMiB / 2);
  }
  EXPECT_EQ(std::memcmp(mapping.bytes().data(), content.data(), content.size()), 0);
  EXPECT_GT(mapping.InMemory(), 9 * kMiB);
}

TEST(MappedBytesTest, LessThanAPageStays) {
  const std::string content = SeededBytes(3 * kMiB, 6);
  const Mapping mapping(content);
  EXPECT_EQ(std::memcmp(mapping.bytes().data(), content.data(), content.size()), 0);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t before = mapping.InMemory();
  GiveBackPages({});
  GiveBackPages(mapping.bytes().subspan(0, page - 1));
  GiveBackPages(mapping.bytes().subspan(100, page));
  EXPECT_EQ(mapping.InMemory(), before);
  GiveBackPages(mapping.bytes().subspan(100, 2 * page));
  EXPECT_LE(mapping.InMemory(), before - page);  // a huge page goes as a whole
}

TEST(MappedBytesTest, AMappedModelIsImportedAsAnyOtherAndGivenBack) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto* graph = model.mutable_graph();
  const std::string raw = SeededBytes(2 * kMiB, 8);
  onnx::TensorProto* weight = graph->add_initializer();
  weight->set_name("raw");
  weight->set_data_type(onnx::TensorProto::FLOAT);
  weight->add_dims(static_cast<int64_t>(raw.size() / 4));
  weight->set_raw_data(raw);
  onnx::TensorProto* typed = graph->add_initializer();
  typed->set_name("typed");
  typed->set_data_type(onnx::TensorProto::FLOAT);
  typed->add_dims(kMiB / 4);
  for (size_t k = 0; k < kMiB / 4; ++k) typed->add_float_data(static_cast<float>(k) * 0.5F);
  for (const std::string name : {"raw", "typed"}) {
    onnx::NodeProto* node = graph->add_node();
    node->set_op_type("Neg");
    node->add_input(name);
    node->add_output("minus_" + name);
    graph->add_output()->set_name("minus_" + name);
  }
  const Mapping mapping(model.SerializeAsString());
  for (const bool is_mapped : {true, false}) {
    ImportOptions options;
    options.is_mapped_model = is_mapped;
    const auto imported = Import(mapping.bytes(), options);
    ASSERT_TRUE(imported.ok()) << imported.status().Text();
    int found = 0;
    for (const graph::Value& value : imported->values) {
      if (!value.constant) continue;
      ++found;
      if (value.name == "raw") {
        EXPECT_EQ(std::memcmp(value.constant->data(), raw.data(), raw.size()), 0);
      } else {
        const auto* numbers = reinterpret_cast<const float*>(value.constant->data());
        for (size_t k = 0; k < kMiB / 4; ++k) ASSERT_EQ(numbers[k], static_cast<float>(k) * 0.5F);
      }
    }
    EXPECT_EQ(found, 2);
    if (is_mapped) {
      EXPECT_LT(mapping.InMemory(), kMiB / 2);
    } else {
      EXPECT_GT(mapping.InMemory(), 3 * kMiB - kMiB / 4);
    }
  }
}

}  // namespace
}  // namespace onnxifi::model
