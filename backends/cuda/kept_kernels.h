// SPDX-License-Identifier: Apache-2.0
//
// Kernels that `onnxifi_run --compile-for` has left in a cache folder, for machines without NVRTC:
// the folder says which NVRTC made them, so that they are found under that name.

#ifndef ONNXIFI_BACKENDS_CUDA_KEPT_KERNELS_H_
#define ONNXIFI_BACKENDS_CUDA_KEPT_KERNELS_H_

#include <filesystem>

#include "backends/cuda/api.h"
#include "backends/cuda/driver.h"

namespace onnxifi::cuda {

// The table of the kernels that are compiled into the folder for an architecture.
std::filesystem::path KernelReportFile(const std::filesystem::path& folder, int architecture);

// Notes that NVRTC of this version compiles into the folder. What goes wrong is as if there were no
// folder.
void NoteCompiler(const std::filesystem::path& folder, int major, int minor);

// In NVRTC's place, which is missing for that reason: nothing but a version. `missing` if the
// folder, which may be empty, has no kernels.
base::Result<CompilerApi> FindKeptCompiler(const std::filesystem::path& folder,
                                           const base::Status& missing);

// Leaves out the devices for whose architectures the folder has no kernels.
void KeepDevicesWithKernels(const std::filesystem::path& folder, FoundDevices& devices);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_KEPT_KERNELS_H_
