// SPDX-License-Identifier: Apache-2.0
//
// What the emulated driver and a compiled kernel know of each other. A kernel is a shared library
// of one `emulated_module`; this file stands in front of every kernel's text and includes nothing.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_INTERFACE_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_INTERFACE_H_

struct EmulatedIndex {
  unsigned int x, y, z;
};

// What an item reads of itself. The driver changes it when it changes items.
struct EmulatedItem {
  EmulatedIndex thread, block, block_extent, grid_extent;
};

// What the 32 items of a warp have given, by lane. `given` has a bit for each lane that gave.
struct EmulatedWarp {
  unsigned long long values[4][32];
  unsigned int given;
};

// The driver's functions that items call.
struct EmulatedMachine {
  // Calls `run(self)` once per item of a block, each on a stack of its own.
  void (*run_block)(EmulatedItem* item, void (*run)(void*), void* self);
  void (*wait_for_block)(int line);
  // Waits until every lane of `mask` has given its `count` values.
  const EmulatedWarp* (*gather)(unsigned int mask, const unsigned long long* values, int count,
                                int line);
  // Ends the launch: the item did what no device survives.
  void (*fail)(const char* sentence, int line);
};

struct EmulatedLaunch {
  EmulatedIndex grid, block;
  void** parameters;
  void* dynamic_shared;
  // Blocks and items from the last to the first.
  bool is_descending;
  // A block's shared memory starts with these bytes.
  unsigned char rubbish;
};

enum EmulatedParameterKind { kEmulatedValue, kEmulatedReadPointer, kEmulatedWrittenPointer };

struct EmulatedParameter {
  unsigned long long size_bytes, offset_bytes;
  EmulatedParameterKind kind;
};

struct EmulatedKernel {
  const char* name;
  unsigned int most_items;
  unsigned int registers;  // of an item
  int parameter_count;
  const EmulatedParameter* parameters;
  void (*run)(const EmulatedLaunch& launch);
};

struct EmulatedModule {
  // 90 for sm_90; 0 for PTX.
  int architecture;
  int kernel_count;
  const EmulatedKernel* kernels;
  unsigned long long shared_bytes;
  // Whether an item may wait for others.
  bool has_barriers;
  const EmulatedMachine** machine;
};

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_INTERFACE_H_
