// SPDX-License-Identifier: Apache-2.0
//
// Behind the functions that kernels call: how a launch calls a kernel, by the types of its
// parameters.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_LAUNCH_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_LAUNCH_H_

template <class T>
struct EmulatedKindOf {
  static constexpr EmulatedParameterKind kKind = kEmulatedValue;
};
template <class T>
struct EmulatedKindOf<T*> {
  static constexpr EmulatedParameterKind kKind = kEmulatedWrittenPointer;
};
template <class T>
struct EmulatedKindOf<const T*> {
  static constexpr EmulatedParameterKind kKind = kEmulatedReadPointer;
};

template <int... kAt>
struct EmulatedNumbers {};
template <int kCount, int... kAt>
struct EmulatedCount : EmulatedCount<kCount - 1, kCount - 1, kAt...> {};
template <int... kAt>
struct EmulatedCount<0, kAt...> {
  using Type = EmulatedNumbers<kAt...>;
};

template <auto kRun, class Function = decltype(kRun)>
struct EmulatedKernelOf;
template <auto kRun, class... A>
struct EmulatedKernelOf<kRun, void (*)(A...)> {
  template <int... kAt>
  static void RunOne(void** parameters, EmulatedNumbers<kAt...>) {
    kRun(*(A*)parameters[kAt]...);
  }
  static void RunItem(void* parameters) {
    RunOne((void**)parameters, typename EmulatedCount<sizeof...(A)>::Type());
  }
  static void RunLoop(void** parameters, const EmulatedIndex& block, bool is_descending) {
    EmulatedIndex& at = emulated_item.thread;
    const unsigned count = block.x * block.y * block.z;
    if (!is_descending && block.y == 1 && block.z == 1) {
      at = {0, 0, 0};
      for (; at.x < block.x; ++at.x) RunItem(parameters);
      return;
    }
    for (unsigned n = 0; n < count; ++n) {
      const unsigned item = is_descending ? count - 1 - n : n;
      at = {item % block.x, item / block.x % block.y, item / block.x / block.y};
      RunItem(parameters);
    }
  }
  static void Run(const EmulatedLaunch& launch) {
    emulated_item.block_extent = launch.block;
    emulated_item.grid_extent = launch.grid;
    emulated_dynamic_shared = launch.dynamic_shared;
    const bool waits = __start_emulated_waits != nullptr;
    const unsigned long long count =
        (unsigned long long)launch.grid.x * launch.grid.y * launch.grid.z;
    const unsigned long long shared_bytes = __stop_emulated_shared - __start_emulated_shared;
    for (unsigned long long n = 0; n < count; ++n) {
      const unsigned long long block = launch.is_descending ? count - 1 - n : n;
      emulated_item.block = {(unsigned)(block % launch.grid.x),
                             (unsigned)(block / launch.grid.x % launch.grid.y),
                             (unsigned)(block / launch.grid.x / launch.grid.y)};
      if (shared_bytes > 0) {
        __builtin_memset(__start_emulated_shared, launch.rubbish, shared_bytes);
      }
      if (waits) {
        emulated_machine->run_block(&emulated_item, RunItem, launch.parameters);
      } else {
        RunLoop(launch.parameters, launch.block, launch.is_descending);
      }
    }
  }
  static constexpr int kCount = sizeof...(A);
  static const EmulatedParameter* Parameters() {
    static EmulatedParameter at[kCount + 1];
    const unsigned long long sizes[] = {sizeof(A)..., 0};
    const unsigned long long alignments[] = {alignof(A)..., 1};
    const EmulatedParameterKind kinds[] = {EmulatedKindOf<A>::kKind..., kEmulatedValue};
    unsigned long long offset = 0;
    for (int n = 0; n < kCount; ++n) {
      offset = (offset + alignments[n] - 1) / alignments[n] * alignments[n];
      at[n] = {sizes[n], offset, kinds[n]};
      offset += sizes[n];
    }
    return at;
  }
};

#define EMULATED_KERNEL(name, most_items, registers)                              \
  {                                                                               \
#name, most_items, registers, EmulatedKernelOf < &name> ::kCount,             \
        EmulatedKernelOf < &name> ::Parameters(), EmulatedKernelOf < &name> ::Run \
  }
// After a kernel's text: its entries.
#define EMULATED_MODULE(...)                                                                       \
  extern "C" __attribute__((visibility("default"))) void emulated_module(EmulatedModule* module) { \
    static const EmulatedKernel emulated_kernels[] = {__VA_ARGS__};                                \
    module->architecture = EMULATED_ARCHITECTURE;                                                  \
    module->kernel_count = sizeof(emulated_kernels) / sizeof(emulated_kernels[0]);                 \
    module->kernels = emulated_kernels;                                                            \
    module->shared_bytes = __stop_emulated_shared - __start_emulated_shared;                       \
    module->has_barriers = __start_emulated_waits != nullptr;                                      \
    module->machine = &emulated_machine;                                                           \
  }

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_LAUNCH_H_
