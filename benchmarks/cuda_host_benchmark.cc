// SPDX-License-Identifier: Apache-2.0
//
// What the host spends on runs of the CUDA plugin whose tensors lie in the device's memory: a
// replayed run of a network in the caller's stream, from the call to its return, and Identity of 4
// floats, from the call to its end. Through the exported interface, on the first device. Prints
// figures; with --require they have limits.

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <onnxifi/onnxifi.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cuda/api.h"

namespace onnxifi::cuda {
namespace {

constexpr double kReplayLimitUs = 10;
constexpr double kIdentityLimitUs = 25;
constexpr int kProducts = 30;  // a kernel each
constexpr int64_t kWidth = 64;
constexpr int kNoDevice = 77;

// What keeps the program from its figures.
struct Failure {
  std::string sentence;
  int exit_code = 1;
};

template <typename T>
T Take(Result<T> result, std::string_view doing) {
  if (!result.ok()) throw Failure{fmt::format("{}: {}", doing, result.error().Text())};
  return *std::move(result);
}
void Check(const Outcome& outcome, std::string_view doing) {
  if (!outcome.ok()) throw Failure{fmt::format("{}: {}", doing, outcome.error().Text())};
}
void Check(CUresult result, std::string_view function) {
  if (result != CUDA_SUCCESS) {
    throw Failure{fmt::format("{} answers {}.", function, static_cast<int>(result))};
  }
}

void Declare(onnx::ValueInfoProto& value, const std::string& name, int64_t width) {
  value.set_name(name);
  auto& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_value(1);
  type.mutable_shape()->add_dim()->set_dim_value(width);
}

// Products one behind the other; without any, Identity.
std::string MakeModel(int products, int64_t width) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("chain");
  Declare(*graph.add_input(), "x", width);
  Declare(*graph.add_output(), "y", width);
  std::string last = "x";
  for (int k = 0; k < std::max(products, 1); ++k) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(products == 0 ? "Identity" : "MatMul");
    node.add_input(last);
    if (products > 0) {
      onnx::TensorProto& weight = *graph.add_initializer();
      weight.set_name(fmt::format("w{}", k));
      weight.set_data_type(onnx::TensorProto::FLOAT);
      weight.add_dims(width);
      weight.add_dims(width);
      for (int64_t place = 0; place < width * width; ++place) {
        weight.add_float_data(static_cast<float>((place + k) % 7));
      }
      node.add_input(weight.name());
    }
    last = k + 1 >= products ? "y" : fmt::format("x{}", k);
    node.add_output(last);
  }
  return model.SerializeAsString();
}

// The caller: the first device's context, a stream and memory, which go with the process.
class Caller {
 public:
  explicit Caller(int device) {
    auto api = LoadApi();
    if (!api.ok()) throw Failure{api.status().Text()};
    api_ = *std::move(api);
    CUcontext context = nullptr;
    Check(api_.DevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    Check(api_.CtxPushCurrent(context), "cuCtxPushCurrent");
    Check(api_.StreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }

  CUstream stream() const { return stream_; }
  void Wait() const { Check(api_.StreamSynchronize(stream_), "cuStreamSynchronize"); }

  Tensor Allocate(const char* name, int64_t width) const {
    CUdeviceptr memory = 0;
    const std::vector<float> ones(static_cast<size_t>(width), 1);
    const size_t bytes = ones.size() * sizeof(float);
    Check(api_.MemAlloc(&memory, bytes), "cuMemAlloc");
    Check(api_.MemcpyHtoDAsync(memory, ones.data(), bytes, stream_), "cuMemcpyHtoDAsync");
    Wait();
    return {name,
            ONNXIFI_DATATYPE_FLOAT32,
            {1, static_cast<uint64_t>(width)},
            reinterpret_cast<void*>(static_cast<uintptr_t>(memory)),
            ONNXIFI_MEMORY_TYPE_CUDA_BUFFER};
  }

 private:
  Api api_;
  CUstream stream_ = nullptr;
};

// Prints a line, and returns the median.
double Time(std::string_view what, int runs, double limit_us, const std::function<void()>& run,
            const std::function<void()>& between) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times_us;
  const int warm = std::max(runs / 10, 5);
  for (int k = -warm; k < runs; ++k) {
    const auto called = Clock::now();
    run();
    const std::chrono::duration<double, std::micro> spent = Clock::now() - called;
    if (k >= 0) times_us.push_back(spent.count());
    between();
  }
  std::ranges::sort(times_us);
  const double median = times_us[times_us.size() / 2];
  fmt::print("{:<44}  {:>8.2f}  {:>8.2f}  {:>6}\n", what, median,
             times_us[times_us.size() * 9 / 10], limit_us);
  return median;
}

int Run(int runs, bool is_required) {
  const Library library = Library::Linked();
  const auto device = library.FindDevice("cuda");
  if (!device.ok()) throw Failure{device.error().Text(), kNoDevice};
  const Caller caller(static_cast<int>(
      Take(device->NumberInfo(ONNXIFI_BACKEND_CUDA_INDEX), "The device does not tell its index")));
  const uint64_t properties[] = {ONNXIFI_BACKEND_CUDA_STREAM,
                                 reinterpret_cast<uintptr_t>(caller.stream())};
  const Backend backend = Take(device->InitBackend(properties), "The device does not start");
  const auto bind = [&](const std::string& model, int64_t width) {
    Graph graph = Take(backend.InitGraph(std::as_bytes(std::span(model))), "The model is refused");
    const Tensor x = caller.Allocate("x", width), y = caller.Allocate("y", width);
    Check(graph.SetIO({&x, 1}, {&y, 1}), "Binding");
    return graph;
  };
  fmt::print("{:<44}  {:>8}  {:>8}  {:>6}\n", "microseconds of the host", "median", "90 %",
             "limit");
  const Graph chain = bind(MakeModel(kProducts, kWidth), kWidth);
  const double replay = Time(
      fmt::format("call of a replayed run of {} products", kProducts), runs, kReplayLimitUs,
      [&] { Check(chain.RunInSharedQueue(), "The run"); }, [&] { caller.Wait(); });
  const onnxGraphCounters counters = Take(chain.Counters(), "The counters");
  const Graph identity = bind(MakeModel(0, 4), 4);
  const double waited = Time(
      "Identity of 4 floats and its wait", runs, kIdentityLimitUs,
      [&] { Check(identity.RunAndWait(), "The run"); }, [] {});
  fmt::print(
      "median {:.2f} us of at most {} for a call, {:.2f} us of at most {} for Identity; {} runs, "
      "{} recordings\n",
      replay, kReplayLimitUs, waited, kIdentityLimitUs, counters.runs, counters.recordings);
  return is_required && (replay > kReplayLimitUs || waited > kIdentityLimitUs) ? 1 : 0;
}

}  // namespace
}  // namespace onnxifi::cuda

int main(int argument_count, char** arguments) {
  int runs = 1000;
  bool is_required = false;
  for (int k = 1; k < argument_count; ++k) {
    const std::string_view argument = arguments[k];
    if (argument == "--require") {
      is_required = true;
    } else if (argument == "--runs" && k + 1 < argument_count) {
      runs = std::atoi(arguments[++k]);
    } else {
      runs = 0;
    }
  }
  if (runs < 1) {
    fmt::print(stderr, "usage: cuda_host_benchmark [--runs N] [--require]\n");
    return 2;
  }
  try {
    return onnxifi::cuda::Run(runs, is_required);
  } catch (const onnxifi::cuda::Failure& failure) {
    fmt::print(stderr, "cuda_host_benchmark: {}\n", failure.sentence);
    return failure.exit_code;
  }
}
