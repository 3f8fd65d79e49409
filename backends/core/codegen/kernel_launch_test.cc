// SPDX-License-Identifier: Apache-2.0
//
// KernelLaunch, KernelCache and Generated over a driver that writes down what it is asked for: what
// a backend inherits when it implements KernelDriver, without any device.

#include "backends/core/codegen/kernel_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/core/codegen/generated.h"
#include "backends/core/codegen/selector.h"
#include "backends/core/program/testing/program_maker.h"

namespace onnxifi::codegen {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Result;
using base::Status;
using program::Expr;
using program::ExprPool;
using program::Operand;
using program::ProgramMaker;
using tensor::ElementType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct FakeKernel final : DriverKernel {
  std::string source;
};
struct FakeNumbers final : DriverNumbers {
  std::vector<int64_t> values;
};

class FakeDriver final : public KernelDriver {
 public:
  struct Started {
    std::string source;
    std::vector<std::byte*> operands;
    std::vector<int64_t> numbers;
    int64_t item_count;
    int64_t group_count;
    int group_size;
    bool is_in_a_run;
  };

  const Dialect& dialect() const override { return dialect_; }
  std::string_view product_library() const override { return "// the library\n"; }
  std::string_view binary_key() const override { return key; }
  Result<std::unique_ptr<DriverKernel>> Compile(const std::string& source) override {
    if (takes_long) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::lock_guard lock(mutex_);
    compiled.push_back(source);
    if (refuses) return Status(Code::kInternalError, "The compiler refuses.");
    auto kernel = std::make_unique<FakeKernel>();
    kernel->source = source;
    return std::unique_ptr<DriverKernel>(std::move(kernel));
  }
  Result<std::unique_ptr<DriverKernel>> Load(std::span<const std::byte> binary) override {
    ++loaded;
    if (takes_no_binaries) return Status(Code::kInternalError, "The driver is another.");
    auto kernel = std::make_unique<FakeKernel>();
    kernel->source.assign(reinterpret_cast<const char*>(binary.data()), binary.size());
    return std::unique_ptr<DriverKernel>(std::move(kernel));
  }
  std::vector<std::byte> BinaryOf(const DriverKernel& kernel) override {
    const std::string& source = static_cast<const FakeKernel&>(kernel).source;
    std::vector<std::byte> binary(source.size());
    std::memcpy(binary.data(), source.data(), source.size());
    return binary;
  }
  Result<std::unique_ptr<DriverNumbers>> Hold(std::span<const int64_t> numbers) override {
    auto held = std::make_unique<FakeNumbers>();
    held->values.assign(numbers.begin(), numbers.end());
    return std::unique_ptr<DriverNumbers>(std::move(held));
  }
  Status Start(device::Queue* queue, DriverKernel& kernel, const KernelStart& start) override {
    Started one{.source = static_cast<FakeKernel&>(kernel).source,
                .operands = {},
                .numbers = {},
                .item_count = start.item_count,
                .group_count = start.group_count,
                .group_size = start.group_size,
                .is_in_a_run = queue != nullptr};
    for (size_t k = 0; k < start.operands.count(); ++k) {
      one.operands.push_back(start.operands.address(k));
    }
    if (start.numbers != nullptr) {
      one.numbers = static_cast<const FakeNumbers*>(start.numbers)->values;
    }
    starts.push_back(std::move(one));
    return base::Ok();
  }

  std::string key = "a device\n";
  bool refuses = false;
  bool takes_no_binaries = false;
  bool takes_long = false;
  std::vector<std::string> compiled;
  int loaded = 0;
  std::vector<Started> starts;

 private:
  const OpenClDialect dialect_{};
  std::mutex mutex_;
};

class HostMemory final : public device::Memory {
 public:
  class Piece final : public device::Allocation {
   public:
    explicit Piece(int64_t size_bytes) : bytes_(static_cast<size_t>(size_bytes)) {}
    std::byte* data() override { return bytes_.data(); }
    int64_t size_bytes() const override { return static_cast<int64_t>(bytes_.size()); }

   private:
    std::vector<std::byte> bytes_;
  };
  Result<std::unique_ptr<device::Allocation>> Allocate(int64_t size_bytes) override {
    return std::unique_ptr<device::Allocation>(std::make_unique<Piece>(size_bytes));
  }
};

// Takes nothing but kernels.
class NoQueue final : public device::Queue {
 public:
  Status Upload(const std::byte*, std::byte*, int64_t) override { return Unused(); }
  Status Download(const std::byte*, std::byte*, int64_t) override { return Unused(); }
  Status Copy(const std::byte*, std::byte*, int64_t) override { return Unused(); }
  Status Finish() override { return base::Ok(); }

 private:
  static Status Unused() { return Status(Code::kInternalError, "Nobody asks for this."); }
};

class KernelLaunchTest : public testing::Test {
 public:
  KernelLaunchTest() {
    std::string name = (fs::temp_directory_path() / "kernel_launch.XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~KernelLaunchTest() override { fs::remove_all(folder_); }

 protected:
  Services MakeServices(FakeDriver& driver) {
    return {driver, memory_, BinaryCache(folder_, 1 << 20)};
  }

  HostMemory memory_;
  fs::path folder_;
};

TEST_F(KernelLaunchTest, AKernelIsCompiledOncePerProcessAndLoadedByTheNext) {
  FakeDriver driver;
  {
    KernelCache cache(driver, BinaryCache(folder_, 1 << 20));
    const auto first = cache.Get("one");
    const auto again = cache.Get("one");
    ASSERT_TRUE(first.ok() && again.ok());
    EXPECT_EQ(*first, *again);
    ASSERT_TRUE(cache.Get("two").ok());
    EXPECT_EQ(cache.kernel_count(), 2);
    EXPECT_EQ(cache.compiled_count(), 2);
  }
  EXPECT_THAT(driver.compiled, ElementsAre("one", "two"));
  EXPECT_EQ(driver.loaded, 0);
  KernelCache next(driver, BinaryCache(folder_, 1 << 20));
  const auto found = next.Get("two");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(static_cast<FakeKernel&>(**found).source, "two");
  EXPECT_EQ(next.compiled_count(), 0);
  EXPECT_EQ(driver.loaded, 1);
}

TEST_F(KernelLaunchTest, ThreadsCompileDifferentSourcesAtOnceAndEachOnce) {
  FakeDriver driver;
  driver.takes_long = true;
  KernelCache cache(driver, BinaryCache({}, 1 << 20));
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::set<DriverKernel*> kernels;
  for (int k = 0; k < 8; ++k) {
    threads.emplace_back([&, k] {
      const auto kernel = cache.Get(k % 2 == 0 ? "one" : "two");
      ASSERT_TRUE(kernel.ok());
      const std::lock_guard lock(mutex);
      kernels.insert(kernel->get());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(kernels, SizeIs(2));
  EXPECT_THAT(driver.compiled, testing::UnorderedElementsAre("one", "two"));
  EXPECT_EQ(cache.kernel_count(), 2);
}

TEST_F(KernelLaunchTest, ABinaryOfAnotherDriverIsNoneAndOneThatIsRefusedIsMadeAnew) {
  FakeDriver driver;
  ASSERT_TRUE(KernelCache(driver, BinaryCache(folder_, 1 << 20)).Get("one").ok());
  driver.key = "another device\n";
  ASSERT_TRUE(KernelCache(driver, BinaryCache(folder_, 1 << 20)).Get("one").ok());
  EXPECT_EQ(driver.loaded, 0);
  EXPECT_THAT(driver.compiled, SizeIs(2));
  driver.takes_no_binaries = true;
  KernelCache cache(driver, BinaryCache(folder_, 1 << 20));
  ASSERT_TRUE(cache.Get("one").ok());
  EXPECT_EQ(driver.loaded, 1);
  EXPECT_EQ(cache.compiled_count(), 1);
}

// As on a machine without a compiler, which has the kernels of another one and cannot make them.
TEST_F(KernelLaunchTest, ABinaryThatIsRefusedStaysWhereNothingCanBeCompiled) {
  FakeDriver driver;
  ASSERT_TRUE(KernelCache(driver, BinaryCache(folder_, 1 << 20)).Get("one").ok());
  driver.takes_no_binaries = driver.refuses = true;
  const auto refused = KernelCache(driver, BinaryCache(folder_, 1 << 20)).Get("one");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().Text(), testing::AllOf(HasSubstr("The driver is another."),
                                                      HasSubstr("The compiler refuses.")));
  driver.takes_no_binaries = false;
  KernelCache cache(driver, BinaryCache(folder_, 1 << 20));
  EXPECT_TRUE(cache.Get("one").ok());
  EXPECT_EQ(cache.compiled_count(), 0);
}

TEST_F(KernelLaunchTest, WhatTheCompilerRefusesIsNotKept) {
  FakeDriver driver;
  KernelCache cache(driver, BinaryCache(folder_, 1 << 20));
  driver.refuses = true;
  EXPECT_EQ(cache.Get("one").status().code(), Code::kInternalError);
  EXPECT_EQ(cache.kernel_count(), 0);
  driver.refuses = false;
  EXPECT_TRUE(cache.Get("one").ok());
  EXPECT_EQ(cache.compiled_count(), 1);
}

// y[n, 3] = x + x's neighbour, with n a symbol.
ProgramMaker MakeMap() {
  ProgramMaker maker;
  const program::Dim n = maker.program.dims->NewSymbol("N", false);
  const Operand a = maker.Input({n, 3});
  const Operand b = maker.Input({3});
  maker.Map({n, 3}, {a, b},
            [](ExprPool&, const std::vector<Expr>& loads) { return loads[0] + loads[1]; });
  return maker;
}

TEST_F(KernelLaunchTest, OperandsAreTheBuffersOfTheRunAndNumbersThoseOfTheBinding) {
  FakeDriver driver;
  Services services = MakeServices(driver);
  const ProgramMaker maker = MakeMap();
  const program::Step& step = maker.program.steps[0];
  const auto selection = Selector({.run_group_size = 16}, {}).Select({maker.program, step});
  ASSERT_TRUE(selection.ok()) << selection.status().Text();
  EXPECT_EQ(selection->recipe->implementation(), "generated");
  const auto kernel = static_cast<const Recipe&>(*selection->recipe).Build(services);
  std::vector<std::byte> bytes(8);
  std::vector<std::byte*> addresses(maker.program.buffers.size());
  for (size_t k = 0; k < addresses.size(); ++k) addresses[k] = &bytes[k];
  NoQueue queue;
  for (const int64_t rows : {int64_t{7}, int64_t{1000}, int64_t{0}}) {
    const std::vector<int64_t> dims = {rows};
    const auto bound = kernel->Bind(device::Bind(maker.program, step, dims), addresses);
    ASSERT_TRUE(bound.ok());
    EXPECT_THAT(driver.starts, IsEmpty()) << "Nothing runs before it is enqueued.";
    ASSERT_TRUE((*bound)->Enqueue(queue, addresses).ok());
    if (rows == 0) break;
    ASSERT_THAT(driver.starts, SizeIs(1));
    const FakeDriver::Started& start = driver.starts[0];
    EXPECT_TRUE(start.is_in_a_run);
    EXPECT_THAT(start.operands, testing::UnorderedElementsAre(addresses[step.reads[0].buffer],
                                                              addresses[step.reads[1].buffer],
                                                              addresses[step.writes[0].buffer]));
    EXPECT_THAT(start.numbers, testing::Contains(rows));
    EXPECT_EQ(start.item_count, rows * 3);
    EXPECT_EQ(start.group_count, (rows * 3 + start.group_size - 1) / start.group_size);
    driver.starts.clear();
  }
  EXPECT_THAT(driver.starts, IsEmpty());
  EXPECT_EQ(services.kernels.kernel_count(), 1) << "Extents are no text.";
}

TEST_F(KernelLaunchTest, AProductLaysOutConstantsWhenItIsBoundAndTheRestInScratchMemory) {
  FakeDriver driver;
  Services services = MakeServices(driver);
  ProgramMaker maker;
  const Operand a = maker.Input({33, 20});
  const std::vector<float> weights(size_t{20} * 65, 1);
  const Operand b =
      maker.Constant(tensor::Tensor::FromValues<float>(ElementType::kFloat32, {20, 65}, weights));
  program::Contract contract;
  contract.m_axes = contract.n_axes = 1;
  contract.inner = {20};
  program::Step step;
  step.domain = {33, 65};
  const auto read = [&](const Operand& operand) {
    step.reads.push_back(operand.view);
    return Load(maker.program.exprs, ElementType::kFloat32, static_cast<int>(step.reads.size()) - 1)
        .id();
  };
  contract.a_prologue = read(a);
  contract.b_prologue = read(b);
  contract.roots = {Accumulator(maker.program.exprs, ElementType::kFloat32).id()};
  program::Buffer out{
      .kind = program::Buffer::Kind::kTemporary, .type = ElementType::kFloat32, .shape = {33, 65}};
  step.writes = {program::DenseView(maker.program.AddBuffer(out), ElementType::kFloat32, {33, 65})};
  step.body = std::move(contract);
  maker.program.steps.push_back(std::move(step));
  const program::Step& product = maker.program.steps.back();

  const Tuning tuning = DeriveTuning({.is_processor = true});
  const auto selection = Selector({}, tuning).Select({maker.program, product});
  ASSERT_TRUE(selection.ok()) << selection.status().Text();
  EXPECT_EQ(selection->recipe->implementation(), "tiled product");
  const auto kernel = static_cast<const Recipe&>(*selection->recipe).Build(services);
  std::vector<std::byte> bytes(8);
  std::vector<std::byte*> addresses(maker.program.buffers.size());
  for (size_t k = 0; k < addresses.size(); ++k) addresses[k] = &bytes[k];
  const auto bound = kernel->Bind(device::Bind(maker.program, product, {}), addresses);
  ASSERT_TRUE(bound.ok()) << bound.status().Text();
  // The weights, outside of any run, and again for nobody.
  ASSERT_THAT(driver.starts, SizeIs(1));
  EXPECT_FALSE(driver.starts[0].is_in_a_run);
  EXPECT_THAT(driver.starts[0].operands, testing::Contains(addresses[b.view.buffer]));
  ASSERT_TRUE(kernel->Bind(device::Bind(maker.program, product, {}), addresses).ok());
  EXPECT_THAT(driver.starts, SizeIs(1));
  driver.starts.clear();
  NoQueue queue;
  ASSERT_TRUE((*bound)->Enqueue(queue, addresses).ok());
  ASSERT_THAT(driver.starts, SizeIs(2));
  EXPECT_THAT(driver.starts[0].operands, testing::Contains(addresses[a.view.buffer]));
  EXPECT_THAT(driver.starts[1].operands, testing::Contains(addresses[product.writes[0].buffer]));
  EXPECT_THAT(driver.starts[1].source, HasSubstr("// the library"));
  // What the first leaves, the second finds.
  std::vector<std::byte*> met;
  for (std::byte* operand : driver.starts[0].operands) {
    if (testing::Value(driver.starts[1].operands, testing::Contains(operand)))
      met.push_back(operand);
  }
  EXPECT_THAT(met, SizeIs(1));
}

}  // namespace
}  // namespace onnxifi::codegen
