// SPDX-License-Identifier: Apache-2.0
//
// A program that has its own OpenCL pipeline and puts a network in the middle: its kernel turns
// bytes into pixels, the network classifies them, another kernel of its own picks the digit. All
// three lie in one queue of the program's; the tensors between them are its buffers, which are
// never copied and which nobody on the host waits for or looks at before the answer is read.
//
//   zero_copy_opencl MODEL
//
// Exit code 77 where there is no OpenCL device.

#include <cstdio>
#include <fstream>
#include <iterator>
#include <onnxifi/onnxifi.hpp>
#include <string>
#include <vector>

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

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
__kernel void to_pixels(__global const char* picture, __global float* pixels) {
  size_t k = get_global_id(0);
  pixels[k] = picture[k] == '#' ? 1.0f : 0.0f;
}
__kernel void find_best(__global const float* scores, int count, __global int* best) {
  int at = 0;
  for (int k = 1; k < count; ++k) at = scores[k] > scores[at] ? k : at;
  *best = at;
}
)";

// What the program makes with OpenCL, to be released in the end whatever happens.
struct Pipeline {
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;
  cl_kernel to_pixels = nullptr;
  cl_kernel find_best = nullptr;
  cl_mem picture = nullptr;
  cl_mem pixels = nullptr;
  cl_mem scores = nullptr;
  cl_mem best = nullptr;

  // On the device that the library names. False if OpenCL refuses anything.
  bool Make(cl_platform_id platform, cl_device_id device) {
    const cl_context_properties properties[] = {
        CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform), 0};
    context = clCreateContext(properties, 1, &device, nullptr, nullptr, nullptr);
    if (context == nullptr) return false;
    // In order, as queues are unless asked otherwise.
    queue = clCreateCommandQueue(context, device, 0, nullptr);
    const char* text = kKernels;
    program = clCreateProgramWithSource(context, 1, &text, nullptr, nullptr);
    if (queue == nullptr || program == nullptr ||
        clBuildProgram(program, 1, &device, "", nullptr, nullptr) != CL_SUCCESS) {
      return false;
    }
    to_pixels = clCreateKernel(program, "to_pixels", nullptr);
    find_best = clCreateKernel(program, "find_best", nullptr);
    picture = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, kPixels,
                             const_cast<char*>(kPicture), nullptr);
    pixels = MakeBuffer(kPixels * sizeof(float));
    scores = MakeBuffer(kClasses * sizeof(float));
    best = MakeBuffer(sizeof(cl_int));
    if (to_pixels == nullptr || find_best == nullptr || picture == nullptr || pixels == nullptr ||
        scores == nullptr || best == nullptr) {
      return false;
    }
    const auto count = static_cast<cl_int>(kClasses);
    return clSetKernelArg(to_pixels, 0, sizeof(cl_mem), &picture) == CL_SUCCESS &&
           clSetKernelArg(to_pixels, 1, sizeof(cl_mem), &pixels) == CL_SUCCESS &&
           clSetKernelArg(find_best, 0, sizeof(cl_mem), &scores) == CL_SUCCESS &&
           clSetKernelArg(find_best, 1, sizeof(count), &count) == CL_SUCCESS &&
           clSetKernelArg(find_best, 2, sizeof(cl_mem), &best) == CL_SUCCESS;
  }

  ~Pipeline() {
    for (cl_mem buffer : {picture, pixels, scores, best}) {
      if (buffer != nullptr) clReleaseMemObject(buffer);
    }
    if (to_pixels != nullptr) clReleaseKernel(to_pixels);
    if (find_best != nullptr) clReleaseKernel(find_best);
    if (program != nullptr) clReleaseProgram(program);
    if (queue != nullptr) clReleaseCommandQueue(queue);
    if (context != nullptr) clReleaseContext(context);
  }

  cl_mem MakeBuffer(size_t size_bytes) const {
    return clCreateBuffer(context, CL_MEM_READ_WRITE, size_bytes, nullptr, nullptr);
  }
};

int Fail(const std::string& what, const onnxifi::Error& error) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), error.Text().c_str());
  return 1;
}

template <typename T>
T Handle(uint64_t number) {
  return reinterpret_cast<T>(static_cast<uintptr_t>(number));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: zero_copy_opencl MODEL\n");
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
  const auto device = library.FindDevice("opencl");
  if (!device) {
    std::printf("%s\n", device.error().Text().c_str());
    return kNoDevice;
  }
  const auto platform = device->NumberInfo(ONNXIFI_BACKEND_OPENCL_PLATFORM_ID);
  const auto id = device->NumberInfo(ONNXIFI_BACKEND_OPENCL_DEVICE_ID);
  if (!platform || !id) return Fail("The device does not tell its handles", id.error());

  Pipeline pipeline;
  if (!pipeline.Make(Handle<cl_platform_id>(*platform), Handle<cl_device_id>(*id))) {
    std::fprintf(stderr, "OpenCL refuses the program's own context or kernels.\n");
    return 1;
  }
  // The queue brings its context with it.
  const uint64_t properties[] = {ONNXIFI_SDK_BACKEND_PROPERTY_OPENCL_QUEUE,
                                 reinterpret_cast<uintptr_t>(pipeline.queue)};
  const auto backend = device->InitBackend(properties);
  if (!backend) return Fail("The device does not start", backend.error());
  const auto graph = backend->InitGraph(std::as_bytes(std::span(model)));
  if (!graph) return Fail("The model does not run here", graph.error());
  const onnxifi::Tensor input{"image",
                              ONNXIFI_DATATYPE_FLOAT32,
                              {1, 1, 8, 8},
                              pipeline.pixels,
                              ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER};
  const onnxifi::Tensor output{"scores",
                               ONNXIFI_DATATYPE_FLOAT32,
                               {1, kClasses},
                               pipeline.scores,
                               ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER};
  if (const auto bound = graph->SetIO({&input, 1}, {&output, 1}); !bound) {
    return Fail("Binding", bound.error());
  }

  // Everything below is in the queue before any of it is done.
  const size_t items = kPixels;
  const size_t one = 1;
  clEnqueueNDRangeKernel(pipeline.queue, pipeline.to_pixels, 1, nullptr, &items, nullptr, 0,
                         nullptr, nullptr);
  if (const auto queued = graph->RunInSharedQueue(); !queued) {
    return Fail("The run", queued.error());
  }
  clEnqueueNDRangeKernel(pipeline.queue, pipeline.find_best, 1, nullptr, &one, nullptr, 0, nullptr,
                         nullptr);
  cl_int best = -1;
  if (clEnqueueReadBuffer(pipeline.queue, pipeline.best, CL_TRUE, 0, sizeof(best), &best, 0,
                          nullptr, nullptr) != CL_SUCCESS) {
    std::fprintf(stderr, "The queue fails.\n");
    return 1;
  }
  const auto counters = graph->Counters();
  if (!counters) return Fail("The counters", counters.error());
  std::printf("The picture is a %d; the run copied %llu tensors and waited %llu times.\n",
              static_cast<int>(best), static_cast<unsigned long long>(counters->copies),
              static_cast<unsigned long long>(counters->waits));
  return 0;
}
