// SPDX-License-Identifier: Apache-2.0
//
// What LeakSanitizer is not to report in tests of the dispatcher: the IDs of a plugin live for the
// rest of the process, as its library does, because it may have ended before libonnxifi does.

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ONNXIFI_HAS_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ONNXIFI_HAS_ADDRESS_SANITIZER 1
#endif

#if defined(ONNXIFI_HAS_ADDRESS_SANITIZER)
extern "C" const char* __lsan_default_suppressions() { return "leak:libonnxifi-plain.so\n"; }
#endif
