// SPDX-License-Identifier: Apache-2.0
//
// What the emulated driver and the emulated NVRTC export beside CUDA's functions: faults, and what
// they noticed. A test that links neither library finds these by dlsym. Any thread.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_CONTROL_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_CONTROL_H_

extern "C" {

// The names of the functions that were called at least once or can fail, without "_v2" and the
// like; null behind the last.
const char* emulated_function(int number);
// The function's call number `call` from now on (0: the next) and `count` calls in all (-1: for
// ever) answer `result`, a CUresult. Of errors that end a context the current one is ended.
void emulated_fail(const char* function, int result, int call, int count);
// cuGetProcAddress does not find the function.
void emulated_hide(const char* function);
// Ends faults and hiding, and the errors of contexts; forgets counts.
void emulated_recover(void);
// Of the function since the last emulated_recover.
int emulated_call_count(const char* function);
// What was done against CUDA's rules since the last emulated_forget, a sentence each; null behind
// the last. Valid until emulated_forget.
const char* emulated_misuse(int number);
void emulated_forget(void);
// Of "memory", "pinned", "stream", "event", "module", "graph", "executable" and "context".
int emulated_live(const char* kind);
// Of kernels that were carried out since the start, nodes of graphs included.
long long emulated_launch_count(void);
// Times that events tell are from now on of a clock that a kernel sets forward by so many
// microseconds, and a host function, as emulated libraries are, by others; 0 and 0: of the real
// one.
void emulated_set_clock(int kernel_us, int function_us);
// Every launch from now on twice, as with ONNXIFI_EMULATED_TWICE.
void emulated_run_twice(int is_on);

// As emulated_fail, of one function of NVRTC's at a time; null ends it. Forgets counts.
void emulated_nvrtc_fail(const char* function, int result, int call, int count);
// Of the function since the last emulated_nvrtc_fail.
int emulated_nvrtc_call_count(const char* function);
// How often the host compiler was started, and programs that are not destroyed.
int emulated_nvrtc_compilations(void);
int emulated_nvrtc_live_programs(void);

// As emulated_nvrtc_fail, of cuBLASLt's functions, named without their prefix.
void emulated_cublaslt_fail(const char* function, int result, int call, int count);
int emulated_cublaslt_call_count(const char* function);
// Its objects that are not destroyed.
int emulated_cublaslt_live(void);
// What it was last told that no product is; null if nothing was.
const char* emulated_cublaslt_misuse(void);

// The same of cuDNN.
void emulated_cudnn_fail(const char* function, int result, int call, int count);
int emulated_cudnn_call_count(const char* function);
int emulated_cudnn_live(void);
const char* emulated_cudnn_misuse(void);

}  // extern "C"

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_CONTROL_H_
