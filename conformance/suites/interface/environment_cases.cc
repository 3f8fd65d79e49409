// SPDX-License-Identifier: Apache-2.0
//
// What a library leaves as it found it: locale, errno, floating-point mode, signal handlers.

#include <onnx/onnxifi.h>

#include <cerrno>
#include <cfenv>
#include <clocale>
#include <string>

#include "client/device_list.h"
#include "conformance/suites/interface/case_groups.h"
#include "conformance/suites/interface/check.h"
#include "conformance/suites/interface/scene.h"
#include "conformance/suites/interface/small_models.h"

namespace onnxifi::suites {
namespace {

// Everything a caller does, once.
void UseEverything(Check& check) {
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeAddModel());
  if (graph == nullptr) return;
  AddTensors tensors;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(check.library(), graph),
                     "onnxSetGraphIO");
  scene.RunAndWait(graph);
  check.Expect(tensors.IsSum(), "The sum is wrong.");
}

void LocaleIsUntouched(Check& check) {
  UseEverything(check);
  check.Expect(CaptureProcessState().locale == check.initial().locale,
               "The library changes the process's locale.");
}

void TextsDoNotDependOnTheLocale(Check& check) {
  const auto version = [&] {
    return client::QueryText(check.library(), check.id(), ONNXIFI_BACKEND_OPSET_VERSION);
  };
  const auto before = version();
  // Where it is installed, a locale with a comma as decimal point and grouped thousands.
  const bool is_changed = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr ||
                          std::setlocale(LC_ALL, "C.UTF-8") != nullptr;
  check.Expect(is_changed, "No other locale is installed to test with.");
  check.Expect(before == version(), "A text query depends on the locale.");
  UseEverything(check);
  std::setlocale(LC_ALL, check.initial().locale.c_str());
}

void ErrnoIsUntouchedBySuccess(Check& check) {
  uint64_t type = 0;
  size_t size_bytes = sizeof(type);
  errno = 4711;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     check.library().onnxGetBackendInfo(check.id(), ONNXIFI_BACKEND_DEVICE_TYPE,
                                                        &type, &size_bytes),
                     "onnxGetBackendInfo");
  check.Expect(errno == 4711, "A successful onnxGetBackendInfo changes errno.");
  errno = 0;
}

void RoundingModeIsUntouched(Check& check) {
  for (const int mode : {FE_UPWARD, FE_TONEAREST}) {
    std::fesetround(mode);
    UseEverything(check);
    check.Expect(std::fegetround() == mode, "The library changes the caller's rounding mode.");
  }
  std::fesetround(FE_TONEAREST);
}

void FlushToZeroIsUntouched(Check& check) {
  UseEverything(check);
  volatile float tiny = 1e-38f;
  const float smaller = tiny / 16;
  check.Expect(smaller != 0,
               "The library leaves the caller's thread flushing small numbers to zero.");
}

void SignalHandlersAreUntouched(Check& check) {
  UseEverything(check);
  const ProcessState state = CaptureProcessState();
  for (size_t number = 1; number < state.signal_handlers.size(); ++number) {
    check.Expect(state.signal_handlers[number] == check.initial().signal_handlers[number],
                 "The library changes the handler of signal " + std::to_string(number) + ".");
  }
}

constexpr InterfaceCase kCases[] = {
    {"environment", "locale_is_untouched", LocaleIsUntouched},
    {"environment", "texts_do_not_depend_on_the_locale", TextsDoNotDependOnTheLocale},
    {"environment", "errno_is_untouched_by_success", ErrnoIsUntouchedBySuccess},
    {"environment", "rounding_mode_is_untouched", RoundingModeIsUntouched},
    {"environment", "flush_to_zero_is_untouched", FlushToZeroIsUntouched},
    {"environment", "signal_handlers_are_untouched", SignalHandlersAreUntouched},
};

}  // namespace

std::span<const InterfaceCase> EnvironmentCases() { return kCases; }

}  // namespace onnxifi::suites
