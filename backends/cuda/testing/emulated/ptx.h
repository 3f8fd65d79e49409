// SPDX-License-Identifier: Apache-2.0
//
// Instructions of PTX that kernels write between asm's parentheses, as functions: kernel_text.cc
// makes a call of each, named after the instruction, results first.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_PTX_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_PTX_H_

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_PTX_H_
