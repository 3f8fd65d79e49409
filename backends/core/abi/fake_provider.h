// SPDX-License-Identifier: Apache-2.0
//
// FakeProvider: a Provider for tests of core/abi and of the dispatcher. Its "models" are words of
// text, its graphs double a vector on a thread of their own, and any step can be told to fail.

#ifndef ONNXIFI_BACKENDS_CORE_ABI_FAKE_PROVIDER_H_
#define ONNXIFI_BACKENDS_CORE_ABI_FAKE_PROVIDER_H_

#include <memory>
#include <string>
#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/base/status.h"

namespace onnxifi::abi {

// Words of a model:
//   double      input x[N], output y[N], float32, y = 2 x; the default
//   half        the output has half the elements of the input; the descriptor is the upper bound
//   fixed       x[4] and y[4] instead of a symbol
//   zero        x[0] and y[0]
//   matrix      x[N, 3], w[N], y[N, 3]
//   emulated    onnxInitGraph answers FALLBACK
//   weights     needs the weights a[2, 3] and b[4], else INVALID_SHAPE
//   fail        runs finish with NO_DEVICE_MEMORY
//   status=K    compatibility and onnxInitGraph answer status K (decimal)
//   claims=K    explain claims K nodes of 10 and refuses the others with the status above
//   NAME=K/S    for devices with a key of "NAME:index", the last two with K nodes and status S
// Any other first byte than a lower-case letter is INVALID_PROTOBUF.

// A step of the fake that can fail once.
enum class FakeStep {
  kEnumerate,
  kInfo,
  kCheckCompatibility,
  kInitBackend,
  kNewEvent,
  kInitGraph,
  kBind,
  kRun,
  kClose,
  kSignal,
  kIsSignalled,
  kWait,
  kCounters,
  kProfile,
  kLoadProfile,
};

enum class FakeFault { kStatus, kOutOfMemory, kException };

// The next time the step is reached it fails: with `status`, or by throwing.
void FailNext(FakeStep step, FakeFault fault, base::Status status = base::Ok());

struct FakeDevice {
  std::string key = "fake:0";
  onnxEnum device_type = ONNXIFI_DEVICE_TYPE_CPU;
};

std::unique_ptr<Provider> MakeFakeProvider(std::vector<FakeDevice> devices);

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_FAKE_PROVIDER_H_
