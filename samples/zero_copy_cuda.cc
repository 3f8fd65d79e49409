// SPDX-License-Identifier: Apache-2.0
//
// A program that has its own CUDA pipeline and puts a network in the middle: its kernel turns bytes
// into pixels, the network classifies them, another kernel of its own picks the digit. All three
// lie in one stream of the program's; the tensors between them are its memory, which is never
// copied and which nobody on the host waits for or looks at before the answer is read.
//
//   zero_copy_cuda MODEL
//
// Exit code 77 where there is no CUDA device.

#include <cuda.h>
#include <nvrtc.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <onnxifi/onnxifi.hpp>
#include <string>
#include <vector>

namespace {

constexpr size_t kPixels = 64;
constexpr uint64_t kClasses = 10;
constexpr int kNoDevice = 77;

// A seven: dark where '#'.
constexpr char kPicture[] =
    ".#####.."
    ".....#.."
    "....##.."
    "....#..."
    "..#####."
    "...#...."
    "..##...."
    "..#.....";

constexpr char kKernels[] = R"(
extern "C" __global__ void to_pixels(const char* picture, float* pixels) {
  pixels[threadIdx.x] = picture[threadIdx.x] == '#' ? 1.0f : 0.0f;
}
extern "C" __global__ void find_best(const float* scores, int count, int* best) {
  int at = 0;
  for (int k = 1; k < count; ++k) at = scores[k] > scores[at] ? k : at;
  *best = at;
}
)";

// What the program makes with CUDA, to be released in the end whatever happens.
struct Pipeline {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUmodule module = nullptr;
  CUfunction to_pixels = nullptr;
  CUfunction find_best = nullptr;
  CUdeviceptr picture = 0;
  CUdeviceptr pixels = 0;
  CUdeviceptr scores = 0;
  CUdeviceptr best = 0;

  // On the device of that index, in its primary context, which is the one that can be shared. False
  // if CUDA refuses anything.
  bool Make(int index) {
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, index) != CUDA_SUCCESS ||
        cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
        cuCtxPushCurrent(context) != CUDA_SUCCESS ||
        cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
      return false;
    }
    const std::vector<char> code = Compile();
    return !code.empty() && cuModuleLoadData(&module, code.data()) == CUDA_SUCCESS &&
           cuModuleGetFunction(&to_pixels, module, "to_pixels") == CUDA_SUCCESS &&
           cuModuleGetFunction(&find_best, module, "find_best") == CUDA_SUCCESS &&
           cuMemAlloc(&picture, kPixels) == CUDA_SUCCESS &&
           cuMemAlloc(&pixels, kPixels * sizeof(float)) == CUDA_SUCCESS &&
           cuMemAlloc(&scores, kClasses * sizeof(float)) == CUDA_SUCCESS &&
           cuMemAlloc(&best, sizeof(int)) == CUDA_SUCCESS &&
           cuMemcpyHtoD(picture, kPicture, kPixels) == CUDA_SUCCESS;
  }

  // Machine code for the device. Empty if the compiler refuses.
  std::vector<char> Compile() const {
    int major = 0;
    int minor = 0;
    cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    const std::string architecture =
        "--gpu-architecture=sm_" + std::to_string(major) + std::to_string(minor);
    const char* option = architecture.c_str();
    nvrtcProgram program = nullptr;
    if (nvrtcCreateProgram(&program, kKernels, "own.cu", 0, nullptr, nullptr) != NVRTC_SUCCESS) {
      return {};
    }
    std::vector<char> code;
    size_t size_bytes = 0;
    if (nvrtcCompileProgram(program, 1, &option) == NVRTC_SUCCESS &&
        nvrtcGetCUBINSize(program, &size_bytes) == NVRTC_SUCCESS) {
      code.resize(size_bytes);
      if (nvrtcGetCUBIN(program, code.data()) != NVRTC_SUCCESS) code.clear();
    }
    nvrtcDestroyProgram(&program);
    return code;
  }

  ~Pipeline() {
    for (CUdeviceptr memory : {picture, pixels, scores, best}) {
      if (memory != 0) cuMemFree(memory);
    }
    if (module != nullptr) cuModuleUnload(module);
    if (stream != nullptr) cuStreamDestroy(stream);
    if (context == nullptr) return;
    cuCtxPopCurrent(&context);
    cuDevicePrimaryCtxRelease(device);
  }

  bool ToPixels() {
    void* arguments[] = {&picture, &pixels};
    return cuLaunchKernel(to_pixels, 1, 1, 1, kPixels, 1, 1, 0, stream, arguments, nullptr) ==
           CUDA_SUCCESS;
  }
  bool FindBest() {
    int count = kClasses;
    void* arguments[] = {&scores, &count, &best};
    return cuLaunchKernel(find_best, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr) ==
           CUDA_SUCCESS;
  }
};

int Fail(const std::string& what, const onnxifi::Error& error) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), error.Text().c_str());
  return 1;
}

onnxifi::Tensor InMemory(const char* name, std::vector<uint64_t> extents, CUdeviceptr memory) {
  return {name, ONNXIFI_DATATYPE_FLOAT32, std::move(extents),
          reinterpret_cast<void*>(static_cast<uintptr_t>(memory)), ONNXIFI_MEMORY_TYPE_CUDA_BUFFER};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: zero_copy_cuda MODEL\n");
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "%s cannot be read.\n", argv[1]);
    return 2;
  }
  const std::vector<char> model{std::istreambuf_iterator<char>(file),
                                std::istreambuf_iterator<char>()};
  const onnxifi::Library library = onnxifi::Library::Linked();
  const auto device = library.FindDevice("cuda");
  if (!device) {
    std::printf("%s\n", device.error().Text().c_str());
    return kNoDevice;
  }
  const auto index = device->NumberInfo(ONNXIFI_BACKEND_CUDA_INDEX);
  if (!index) return Fail("The device does not tell its index", index.error());
  Pipeline pipeline;
  if (!pipeline.Make(static_cast<int>(*index))) {
    std::fprintf(stderr, "CUDA refuses the program's own stream or kernels.\n");
    return 1;
  }
  const uint64_t properties[] = {ONNXIFI_BACKEND_CUDA_STREAM,
                                 reinterpret_cast<uintptr_t>(pipeline.stream)};
  const auto backend = device->InitBackend(properties);
  if (!backend) return Fail("The device does not start", backend.error());
  const auto graph = backend->InitGraph(std::as_bytes(std::span(model)));
  if (!graph) return Fail("The model does not run here", graph.error());
  const onnxifi::Tensor input = InMemory("image", {1, 1, 8, 8}, pipeline.pixels);
  const onnxifi::Tensor output = InMemory("scores", {1, kClasses}, pipeline.scores);
  if (const auto bound = graph->SetIO({&input, 1}, {&output, 1}); !bound) {
    return Fail("Binding", bound.error());
  }

  // Everything below is in the stream before any of it is waited for.
  const bool is_begun = pipeline.ToPixels();
  if (const auto queued = graph->RunInSharedQueue(); !queued) {
    return Fail("The run", queued.error());
  }
  int best = -1;
  if (!is_begun || !pipeline.FindBest() ||
      cuMemcpyDtoHAsync(&best, pipeline.best, sizeof(best), pipeline.stream) != CUDA_SUCCESS ||
      cuStreamSynchronize(pipeline.stream) != CUDA_SUCCESS) {
    std::fprintf(stderr, "The stream fails.\n");
    return 1;
  }
  const auto counters = graph->Counters();
  if (!counters) return Fail("The counters", counters.error());
  std::printf("The picture is a %d; the run copied %llu tensors and waited %llu times.\n", best,
              static_cast<unsigned long long>(counters->copies),
              static_cast<unsigned long long>(counters->waits));
  return 0;
}
