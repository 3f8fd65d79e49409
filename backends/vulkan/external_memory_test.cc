// SPDX-License-Identifier: Apache-2.0
//
// Memory that the plugin did not make, through the exported interface, of the plugin and of
// libonnxifi in front of it: tensors in the host's memory that are used in place, and tensors
// behind opaque file descriptors. Expected values are those of the reference plugin. Skipped where
// there is no device.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <onnxifi/sdk.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "backends/vulkan/imports.h"
#include "backends/vulkan/testing/digits_caller.h"

namespace onnxifi::vulkan {
namespace {

using testing::HasSubstr;

// Elements of tensors that are large enough to be used in place.
constexpr uint64_t kMany = 300'000;
static_assert(kMany * sizeof(float) > Imports::kMinHostBytes);

struct Freed {
  void operator()(float* memory) const { std::free(memory); }
};
using HostFloats = std::unique_ptr<float, Freed>;

HostFloats MakeFloats(uint64_t count) {
  constexpr uint64_t kPage = 4096;
  const uint64_t bytes = (count * sizeof(float) + kPage) / kPage * kPage;
  return HostFloats(static_cast<float*>(std::aligned_alloc(kPage, bytes + kPage)));
}

// y = x * x, float32 [kMany].
std::vector<std::byte> SquareModel() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("square");
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("Mul");
  node.add_input("x");
  node.add_input("x");
  node.add_output("y");
  const auto declare = [](onnx::ValueInfoProto& value, const char* name) {
    value.set_name(name);
    onnx::TypeProto::Tensor& type = *value.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_value(kMany);
  };
  declare(*graph.add_input(), "x");
  declare(*graph.add_output(), "y");
  const std::string text = model.SerializeAsString();
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

Tensor Numbers(float* data) { return {"x", ONNXIFI_DATATYPE_FLOAT32, {kMany}, data}; }
Tensor Squares(float* data) { return {"y", ONNXIFI_DATATYPE_FLOAT32, {kMany}, data}; }

// Whole numbers, of which the squares are exact; other ones for every seed.
float NumberAt(uint64_t place, uint32_t seed) {
  return static_cast<float>((place * 7 + seed * 31) % 1009) - 500;
}
void Fill(float* numbers, uint32_t seed) {
  for (uint64_t k = 0; k < kMany; ++k) numbers[k] = NumberAt(k, seed);
}
// The first place where `squares` are not those of the seed's numbers, or kMany.
uint64_t FirstWrong(const float* squares, uint32_t seed) {
  for (uint64_t k = 0; k < kMany; ++k) {
    if (squares[k] != NumberAt(k, seed) * NumberAt(k, seed)) return k;
  }
  return kMany;
}

class VulkanMemoryTest : public VulkanSharingTest {
 protected:
  void SetUp() override {
    VulkanSharingTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    takes_fds_ = (*device_->NumberInfo(ONNXIFI_BACKEND_MEMORY_TYPES) &
                  ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD) != 0;
    // A driver for processors is known to take the host's memory, here.
    is_processor_ = *device_->NumberInfo(ONNXIFI_BACKEND_DEVICE_TYPE) == ONNXIFI_DEVICE_TYPE_CPU;
  }

  std::unique_ptr<Caller::Exported> Export(uint64_t size_bytes, uint64_t offset = 0) const {
    auto made = caller_->ExportMemory(size_bytes, offset);
    EXPECT_TRUE(made.ok()) << made.status().Text();
    return *std::move(made);
  }

  bool takes_fds_ = false;
  bool is_processor_ = false;
};

TEST_P(VulkanMemoryTest, LargeTensorsOfTheHostsAreUsedInPlace) {
  for (const bool is_callers : {false, true}) {
    const Backend backend = is_callers ? InitBackend() : *device_->InitBackend();
    const auto graph = backend.InitGraph(SquareModel());
    ASSERT_TRUE(graph.ok()) << graph.error().Text();
    const HostFloats numbers = MakeFloats(kMany + 64);
    const HostFloats squares = MakeFloats(kMany + 64);
    // On pages that are shared with others, and where no driver takes it.
    for (const uint64_t shift : {0, 4, 1}) {
      float* const inputs = numbers.get() + shift;
      float* const outputs = squares.get() + shift;
      std::fill_n(squares.get(), kMany + 64, -77.0F);
      const auto bound = graph->SetIO(std::vector{Numbers(inputs)}, std::vector{Squares(outputs)});
      ASSERT_TRUE(bound.ok()) << bound.error().Text();
      const uint64_t copies = graph->Counters()->copies;
      // A recording is replayed from the third run on.
      constexpr uint32_t kRuns = 4;
      for (uint32_t run = 0; run < kRuns; ++run) {
        Fill(inputs, 60 + run);
        const auto ran = graph->RunAndWait();
        ASSERT_TRUE(ran.ok()) << ran.error().Text();
        EXPECT_EQ(FirstWrong(outputs, 60 + run), kMany) << shift;
      }
      const uint64_t made = graph->Counters()->copies - copies;
      if (is_processor_) {
        EXPECT_EQ(made, shift == 1 ? 2 * kRuns : 0) << shift;
      }
      for (uint64_t k = 0; k < shift; ++k) EXPECT_EQ(squares.get()[k], -77);
      EXPECT_EQ(outputs[kMany], -77);
    }
  }
}

// What one graph writes another reads, and each may go first.
TEST_P(VulkanMemoryTest, GraphsUseTheSameMemoryOfTheHosts) {
  const Backend backend = *device_->InitBackend();
  const HostFloats numbers = MakeFloats(kMany);
  Fill(numbers.get(), 65);
  const HostFloats squares = MakeFloats(kMany);
  for (int round = 0; round < 2; ++round) {
    auto first = backend.InitGraph(SquareModel());
    const auto second = backend.InitGraph(SquareModel());
    ASSERT_TRUE(first.ok() && second.ok());
    for (const Graph* graph : std::initializer_list<const Graph*>{&*first, &*second}) {
      ASSERT_TRUE(
          graph->SetIO(std::vector{Numbers(numbers.get())}, std::vector{Squares(squares.get())})
              .ok());
      ASSERT_TRUE(graph->RunAndWait().ok());
      EXPECT_EQ(FirstWrong(squares.get(), 65), kMany);
    }
    first = backend.InitGraph(SquareModel());
    ASSERT_TRUE(first.ok());
    std::fill_n(squares.get(), kMany, -1.0F);
    ASSERT_TRUE(second->RunAndWait().ok());
    EXPECT_EQ(FirstWrong(squares.get(), 65), kMany);
    if (is_processor_) {
      EXPECT_EQ(second->Counters()->copies, 0U);
    }
  }
}

// An output over an input gets its values when the inputs were read.
TEST_P(VulkanMemoryTest, AnOutputOverAnInputIsCopied) {
  const Backend backend = *device_->InitBackend();
  const auto graph = backend.InitGraph(SquareModel());
  ASSERT_TRUE(graph.ok());
  constexpr uint64_t kShift = 1000;
  const HostFloats numbers = MakeFloats(kMany + kShift);
  Fill(numbers.get(), 66);
  float* const squares = numbers.get() + kShift;
  ASSERT_TRUE(
      graph->SetIO(std::vector{Numbers(numbers.get())}, std::vector{Squares(squares)}).ok());
  ASSERT_TRUE(graph->RunAndWait().ok());
  EXPECT_EQ(FirstWrong(squares, 66), kMany);
  if (is_processor_) {
    EXPECT_EQ(graph->Counters()->copies, 1U);
  }
}

TEST_P(VulkanMemoryTest, RunsInASharedQueueKeepMemoryOfTheHostsThatIsBoundNoMore) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(SquareModel());
  ASSERT_TRUE(graph.ok());
  const HostFloats numbers = MakeFloats(kMany);
  const HostFloats squares = MakeFloats(kMany);
  const HostFloats others = MakeFloats(kMany);
  Fill(numbers.get(), 67);
  for (const HostFloats* outputs : {&squares, &others}) {
    ASSERT_TRUE(
        graph->SetIO(std::vector{Numbers(numbers.get())}, std::vector{Squares(outputs->get())})
            .ok());
    ASSERT_TRUE(graph->RunInSharedQueue().ok());
  }
  caller_->Finish();
  EXPECT_EQ(FirstWrong(squares.get(), 67), kMany);
  EXPECT_EQ(FirstWrong(others.get(), 67), kMany);
}

TEST_P(VulkanMemoryTest, MemoryOfAnotherDeviceIsReadAndWrittenWithoutACopy) {
  if (!takes_fds_) GTEST_SKIP() << "The device takes no opaque file descriptors.";
  // Its own device is another than the caller's; the caller's own takes it, too.
  for (const bool is_callers : {false, true}) {
    const Backend backend = is_callers ? InitBackend() : *device_->InitBackend();
    const auto graph = backend.InitGraph(DigitsModel());
    ASSERT_TRUE(graph.ok()) << graph.error().Text();
    const auto images = Export(kImageBytes, /*offset=*/64);
    const auto scores = Export(kScoreBytes, /*offset=*/16);
    std::fill_n(reinterpret_cast<float*>(scores->mapped), 512, 77.0F);
    const auto bound = graph->SetIO(std::vector{ImageTensor(images->told)},
                                    std::vector{ScoreTensor(scores->told)});
    ASSERT_TRUE(bound.ok()) << bound.error().Text();
    // The library has its own.
    close(images->told.fd);
    images->told.fd = -1;
    for (uint32_t seed = 1; seed <= 4; ++seed) {
      const std::vector<float> values = Images(seed);
      std::ranges::copy(values, images->floats().begin());
      const auto ran = graph->RunAndWait();
      ASSERT_TRUE(ran.ok()) << ran.error().Text();
      EXPECT_THAT(Copy(scores->floats()), IsCloseTo(Expected(values)));
    }
    EXPECT_EQ(reinterpret_cast<const float*>(scores->mapped)[3], 77);
    EXPECT_EQ(reinterpret_cast<const float*>(scores->mapped)[4 + kBatch * kClasses], 77);
    EXPECT_EQ(graph->Counters()->copies, 0U);
  }
}

TEST_P(VulkanMemoryTest, FileDescriptorsThatDoNotFitAreRefusedWithTheReason) {
  if (!takes_fds_) GTEST_SKIP() << "The device takes no opaque file descriptors.";
  const Backend backend = *device_->InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const auto images = Export(kImageBytes);
  std::vector<float> results(kBatch * kClasses);
  const auto expect = [&](auto change, const std::vector<std::string>& words) {
    onnxOpaqueFd changed = images->told;
    change(changed);
    const auto bound =
        graph->SetIO(std::vector{ImageTensor(changed)}, std::vector{ScoreTensor(results.data())});
    ASSERT_FALSE(bound.ok()) << words[0];
    EXPECT_EQ(bound.error().status, ONNXIFI_STATUS_INVALID_MEMORY_LOCATION) << words[0];
    for (const std::string& word : words) EXPECT_THAT(bound.error().sentence, HasSubstr(word));
  };
  expect([](onnxOpaqueFd& told) { told.struct_size = 16; }, {"16 bytes"});
  expect([](onnxOpaqueFd& told) { told.fd = -1; }, {"-1 is not open", "image"});
  expect([](onnxOpaqueFd& told) { told.size_bytes -= 4; }, {"764 bytes", "needs 768"});
  expect([](onnxOpaqueFd& told) { told.offset = 4; }, {"byte 4", "multiple of 16"});
  expect([](onnxOpaqueFd& told) { told.offset = told.allocation_bytes; }, {"the allocation has"});
  expect([](onnxOpaqueFd& told) { told.device_uuid[0] ^= 1; }, {"another device"});
  expect([](onnxOpaqueFd& told) { told.memory_type_index = 31; }, {"memory of type 31"});
  // What is open and no memory of the driver's.
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  const int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int event = eventfd(0, EFD_CLOEXEC);
  const int file = memfd_create("no memory of a driver", MFD_CLOEXEC);
  expect([&](onnxOpaqueFd& told) { told.fd = ends[0]; }, {"is a pipe"});
  expect([&](onnxOpaqueFd& told) { told.fd = folder; }, {"is a folder"});
  expect([&](onnxOpaqueFd& told) { told.fd = file; }, {"Vulkan cannot import"});
  // Reading it would wait without an end.
  if (is_processor_) {
    expect([&](onnxOpaqueFd& told) { told.fd = event; }, {"is no file"});
  }
  for (const int fd : {ends[0], ends[1], folder, event, file}) close(fd);
  Tensor null_structure = ImageTensor(results.data());
  null_structure.memory_type = ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD;
  null_structure.data = nullptr;
  const auto bound =
      graph->SetIO(std::vector{null_structure}, std::vector{ScoreTensor(results.data())});
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().status, ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
}

TEST_P(VulkanMemoryTest, ADeviceWithoutTheExtensionsTakesNeither) {
  auto made = Caller::Create(*device_->TextInfo(ONNXIFI_SDK_BACKEND_DEVICE_UUID),
                             Caller::Extensions::kNone);
  ASSERT_TRUE(made.ok()) << made.status().Text();
  const std::unique_ptr<Caller> plain = *std::move(made);
  const auto backend = TryBackend(plain->Told());
  ASSERT_TRUE(backend.ok()) << backend.error().Text();
  const auto squares = backend->InitGraph(SquareModel());
  ASSERT_TRUE(squares.ok());
  const HostFloats numbers = MakeFloats(kMany);
  const HostFloats outputs = MakeFloats(kMany);
  Fill(numbers.get(), 68);
  ASSERT_TRUE(
      squares->SetIO(std::vector{Numbers(numbers.get())}, std::vector{Squares(outputs.get())})
          .ok());
  ASSERT_TRUE(squares->RunAndWait().ok());
  EXPECT_EQ(squares->Counters()->copies, 2U);
  EXPECT_EQ(FirstWrong(outputs.get(), 68), kMany);
  if (!takes_fds_) return;
  const auto graph = backend->InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const auto exported = Export(kImageBytes);
  std::vector<float> results(kBatch * kClasses);
  const auto refused = graph->SetIO(std::vector{ImageTensor(exported->told)},
                                    std::vector{ScoreTensor(results.data())});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().status, ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE);
  EXPECT_THAT(refused.error().sentence, HasSubstr("without VK_KHR_external_memory_fd"));
}

INSTANTIATE_TEST_SUITE_P(Libraries, VulkanMemoryTest,
                         testing::Values(ONNXIFI_TEST_PLUGIN, ONNXIFI_TEST_LIBRARY),
                         [](const testing::TestParamInfo<const char*>& library) {
                           return library.param == std::string(ONNXIFI_TEST_PLUGIN)
                                      ? "Plugin"
                                      : "BehindLibonnxifi";
                         });

}  // namespace
}  // namespace onnxifi::vulkan
