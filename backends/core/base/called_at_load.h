// SPDX-License-Identifier: Apache-2.0
//
// ONNXIFI_CALLED_AT_LOAD: before a declaration of a small function, of which each of many files has
// one and all are called when a library is used first. The linker puts them side by side, beside
// what runs when the library is opened. Where they were apart, each took its surroundings to
// memory: 64 KB of the library's file.

#ifndef ONNXIFI_BACKENDS_CORE_BASE_CALLED_AT_LOAD_H_
#define ONNXIFI_BACKENDS_CORE_BASE_CALLED_AT_LOAD_H_

#if defined(__GNUC__) && defined(__ELF__)
#define ONNXIFI_CALLED_AT_LOAD [[gnu::section(".text.startup.called_at_load")]]
#else
#define ONNXIFI_CALLED_AT_LOAD
#endif

#endif  // ONNXIFI_BACKENDS_CORE_BASE_CALLED_AT_LOAD_H_
