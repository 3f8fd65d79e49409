// SPDX-License-Identifier: Apache-2.0
//
// Fibers change by a few instructions on x86-64 and by <ucontext.h> elsewhere. A warp runs until
// each of its items has ended or waits for the block, then the next warp does: within a warp, items
// run in order, and those that wait for their warp go on once all that they wait for have given.

#include "backends/cuda/testing/emulated/fibers.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "backends/cuda/testing/emulated/tracking.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulated {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;
constexpr size_t kGuardBytes = 4096;

#if defined(__x86_64__)
// Saves what a call must keep on the stack, stores the stack pointer in *from, and goes on at `to`.
extern "C" void emulated_switch(void** from, void* to);
asm(R"(
.text
.globl emulated_switch
.hidden emulated_switch
.type emulated_switch, @function
emulated_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulated_switch, .-emulated_switch
)");

class Context {
 public:
  void Prepare(char* stack, size_t bytes, void (*run)()) {
    auto* top = reinterpret_cast<void**>(stack + bytes);
    // At its first instruction a function finds the stack as a call leaves it: 8 bytes below a
    // multiple of 16.
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(run);
    for (int n = 0; n < 6; ++n) *--top = nullptr;
    at_ = top;
  }
  static void Change(Context* from, Context* to) { emulated_switch(&from->at_, to->at_); }

 private:
  void* at_ = nullptr;
};
#else
class Context {
 public:
  void Prepare(char* stack, size_t bytes, void (*run)()) {
    getcontext(&at_);
    at_.uc_stack.ss_sp = stack;
    at_.uc_stack.ss_size = bytes;
    at_.uc_link = nullptr;
    makecontext(&at_, run, 0);
  }
  static void Change(Context* from, Context* to) { swapcontext(&from->at_, &to->at_); }

 private:
  ucontext_t at_;
};
#endif

enum class State { kReady, kWaitsForWarp, kWaitsForBlock, kEnded };

struct Fiber {
  Context context;
  State state = State::kEnded;
  EmulatedIndex index{};
  int line = 0;
  // Of the warp function that it is in.
  unsigned mask = 0;
  const EmulatedWarp* gathered = nullptr;
};

struct Warp {
  // What each lane gives, before the others of its mask have.
  unsigned long long values[4][kWarp];
  unsigned living = 0;
  unsigned waiting = 0;
  // What was gathered, by the mask's first lane. A lane reads it when it goes on next; until then
  // that first lane gathers less than four times.
  std::array<std::array<EmulatedWarp, 4>, kWarp> gathered;
  std::array<unsigned, kWarp> gatherings;
};

struct Machine {
  Context main;
  std::array<Fiber, kMaxItems> fibers;
  std::array<Warp, kMaxItems / kWarp> warps;
  char* stacks = nullptr;
  unsigned prepared = 0;
  unsigned current = 0;
  unsigned count = 0;
  EmulatedItem* item = nullptr;
  void (*run)(void*) = nullptr;
  void* self = nullptr;
  bool is_descending = false;
  unsigned char rubbish = 0;

  // The launch as a whole is a fiber, too, which a fault leaves.
  Context launch_context;
  char* launch_stack = nullptr;
  Context fault_main;
  const EmulatedKernel* kernel = nullptr;
  const EmulatedLaunch* launch = nullptr;
  volatile bool is_running = false;
  bool is_done = false;
  std::string fault;
  std::string complaint;
  pthread_t thread{};
};

Machine& M() {
  static auto* const machine = new Machine;
  return *machine;
}

char* MakeStacks(size_t count) {
  const size_t bytes = count * kStackBytes;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "The emulated device finds no memory for %zu stacks.\n", count);
    std::abort();
  }
  for (size_t n = 0; n < count; ++n) {
    mprotect(static_cast<char*>(memory) + n * kStackBytes, kGuardBytes, PROT_NONE);
  }
  return static_cast<char*>(memory);
}

// Leaves whatever fiber runs; the launch does not go on.
[[noreturn]] void Leave(std::string why) {
  Machine& m = M();
  m.fault = std::move(why);
  Context lost;
  Context::Change(&lost, &m.fault_main);
  __builtin_unreachable();
}

void BackToMain() {
  Machine& m = M();
  Fiber& fiber = m.fibers[m.current];
  Context::Change(&fiber.context, &m.main);
}

void FiberMain() {
  Machine& m = M();
  for (;;) {
    m.run(m.self);
    m.fibers[m.current].state = State::kEnded;
    m.warps[m.current / kWarp].living &= ~(1u << m.current % kWarp);
    BackToMain();
  }
}

void Resume(unsigned n) {
  Machine& m = M();
  Fiber& fiber = m.fibers[n];
  m.current = n;
  m.item->thread = fiber.index;
  Context::Change(&m.main, &fiber.context);
}

std::string LineOf(int line) {
  return line > 0 ? " (line " + std::to_string(line) + " of its text)" : "";
}

unsigned LaneCount(unsigned warp) { return std::min(kWarp, M().count - warp * kWarp); }

// Ends the gathering that this lane waits for, if all of its mask that live have given.
bool HasGathered(unsigned n, int count) {
  Machine& m = M();
  Warp& warp = m.warps[n / kWarp];
  const unsigned mask = m.fibers[n].mask;
  const unsigned awaited = mask & warp.living;
  if ((warp.waiting & awaited) != awaited) return false;
  Fiber* const lanes = &m.fibers[n / kWarp * kWarp];
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if ((awaited >> lane & 1) != 0 && lanes[lane].mask != mask) return false;
  }
  const auto first = static_cast<unsigned>(__builtin_ctz(awaited));
  EmulatedWarp& gathered = warp.gathered[first][warp.gatherings[first]++ % 4];
  gathered.given = awaited;
  for (int k = 0; k < count; ++k) {
    std::memcpy(gathered.values[k], warp.values[k], sizeof(warp.values[k]));
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      if ((awaited >> lane & 1) == 0) std::memset(&gathered.values[k][lane], m.rubbish, 8);
    }
  }
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if ((awaited >> lane & 1) == 0) continue;
    lanes[lane].gathered = &gathered;
    lanes[lane].state = State::kReady;
  }
  warp.waiting &= ~awaited;
  return true;
}

// Runs the warp's items until each has ended or waits for the block.
void RunWarp(unsigned warp) {
  Machine& m = M();
  const unsigned lanes = LaneCount(warp);
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (unsigned place = 0; place < lanes; ++place) {
      const unsigned n = warp * kWarp + (m.is_descending ? lanes - 1 - place : place);
      Fiber& fiber = m.fibers[n];
      if (fiber.state != State::kReady) continue;
      Resume(n);
      has_moved = true;
    }
    // Lanes that have ended since are waited for no more.
    for (unsigned lane = 0; !has_moved && lane < lanes; ++lane) {
      const unsigned n = warp * kWarp + lane;
      has_moved = m.fibers[n].state == State::kWaitsForWarp && HasGathered(n, 4);
    }
  }
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const Fiber& fiber = m.fibers[warp * kWarp + lane];
    if (fiber.state != State::kWaitsForWarp) continue;
    Leave("Item " + std::to_string(warp * kWarp + lane) +
          " of a block waits for lanes of its warp" + LineOf(fiber.line) +
          " that wait for something else.");
  }
}

void RunBlock(EmulatedItem* item, void (*run)(void*), void* self) {
  Machine& m = M();
  if (m.stacks == nullptr) m.stacks = MakeStacks(kMaxItems);
  const EmulatedIndex extent = item->block_extent;
  m.count = extent.x * extent.y * extent.z;
  m.item = item;
  m.run = run;
  m.self = self;
  for (; m.prepared < m.count; ++m.prepared) {
    m.fibers[m.prepared].context.Prepare(m.stacks + m.prepared * kStackBytes, kStackBytes,
                                         FiberMain);
  }
  EmulatedIndex index{0, 0, 0};
  for (unsigned n = 0; n < m.count; ++n) {
    Fiber& fiber = m.fibers[n];
    fiber.state = State::kReady;
    fiber.index = index;
    if (++index.x == extent.x) {
      index.x = 0;
      if (++index.y == extent.y) {
        index.y = 0;
        ++index.z;
      }
    }
  }
  const unsigned warps = (m.count + kWarp - 1) / kWarp;
  for (unsigned warp = 0; warp < warps; ++warp) {
    const unsigned lanes = LaneCount(warp);
    m.warps[warp].living = lanes == kWarp ? ~0u : (1u << lanes) - 1;
    m.warps[warp].waiting = 0;
  }
  for (;;) {
    for (unsigned place = 0; place < warps; ++place) {
      RunWarp(m.is_descending ? warps - 1 - place : place);
    }
    unsigned waiting = 0;
    int line = 0;
    for (unsigned n = 0; n < m.count; ++n) {
      const Fiber& fiber = m.fibers[n];
      if (fiber.state != State::kWaitsForBlock) continue;
      if (waiting++ > 0 && fiber.line != line && m.complaint.empty()) {
        m.complaint =
            "Items of a block wait at different barriers" + LineOf(line) + LineOf(fiber.line) + ".";
      }
      line = fiber.line;
    }
    if (waiting == 0) return;
    if (waiting != m.count && m.complaint.empty()) {
      m.complaint = std::to_string(m.count - waiting) + " of " + std::to_string(m.count) +
                    " items of a block end before a barrier" + LineOf(line) +
                    " that others wait at.";
    }
    for (unsigned n = 0; n < m.count; ++n) {
      if (m.fibers[n].state == State::kWaitsForBlock) m.fibers[n].state = State::kReady;
    }
  }
}

void WaitForBlock(int line) {
  Machine& m = M();
  Fiber& fiber = m.fibers[m.current];
  fiber.state = State::kWaitsForBlock;
  fiber.line = line;
  BackToMain();
}

const EmulatedWarp* Gather(unsigned mask, const unsigned long long* values, int count, int line) {
  Machine& m = M();
  const unsigned n = m.current;
  Fiber& fiber = m.fibers[n];
  const unsigned lane = n % kWarp;
  Warp& warp = m.warps[n / kWarp];
  if ((mask >> lane & 1) == 0) {
    Leave("Item " + std::to_string(n) + " of a block calls a warp function" + LineOf(line) +
          " whose mask leaves it out.");
  }
  for (int k = 0; k < count; ++k) warp.values[k][lane] = values[k];
  warp.waiting |= 1u << lane;
  fiber.state = State::kWaitsForWarp;
  fiber.mask = mask;
  fiber.line = line;
  // The last to come goes on at once, but for one that waits for nobody: it might gather ever anew.
  if (!HasGathered(n, count) || (mask & (mask - 1)) == 0) BackToMain();
  return fiber.gathered;
}

void Fail(const char* sentence, int line) { Leave(sentence + LineOf(line)); }

// ---- faults

struct sigaction& OldAction(int signal_number) {
  static struct sigaction old_segv, old_bus, old_fpe;
  return signal_number == SIGSEGV ? old_segv : signal_number == SIGBUS ? old_bus : old_fpe;
}

void OnSignal(int signal_number, siginfo_t* info, void* context) {
  Machine& m = M();
  if (m.is_running && pthread_equal(pthread_self(), m.thread) != 0) {
    if (signal_number == SIGSEGV && Tracking::Allow(reinterpret_cast<uintptr_t>(info->si_addr))) {
      return;
    }
    char text[160];
    if (signal_number == SIGFPE) {
      std::snprintf(text, sizeof(text), "A kernel divides an integer by zero.");
    } else {
      std::snprintf(text, sizeof(text), "A kernel reads or writes address %p, where nothing is.",
                    info->si_addr);
    }
    Leave(text);
  }
  const struct sigaction old = OldAction(signal_number);
  if ((old.sa_flags & SA_SIGINFO) != 0 && old.sa_sigaction != nullptr) {
    old.sa_sigaction(signal_number, info, context);
  } else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) {
    old.sa_handler(signal_number);
  } else {
    signal(signal_number, SIG_DFL);
    raise(signal_number);
  }
}

// A handler runs on a stack of its own, as an overflow leaves no room on the fiber's.
class SignalStack {
 public:
  SignalStack() : memory_(new char[kBytes]) {
    stack_t stack{};
    stack.ss_sp = memory_.get();
    stack.ss_size = kBytes;
    sigaltstack(&stack, &old_);
  }
  ~SignalStack() { sigaltstack(&old_, nullptr); }

 private:
  static constexpr size_t kBytes = 64 << 10;
  const std::unique_ptr<char[]> memory_;
  stack_t old_{};
};

// The process's handlers are those of its own whenever no kernel runs.
class SignalHandlers {
 public:
  SignalHandlers() {
    const std::lock_guard lock(Mutex());
    if (Users()++ > 0) return;
    for (const int number : kSignals) {
      struct sigaction action {};
      action.sa_sigaction = OnSignal;
      // The handler may leave for another stack and never return.
      action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
      sigemptyset(&action.sa_mask);
      sigaction(number, &action, &OldAction(number));
    }
  }
  ~SignalHandlers() {
    const std::lock_guard lock(Mutex());
    if (--Users() > 0) return;
    for (const int number : kSignals) sigaction(number, &OldAction(number), nullptr);
  }
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;

 private:
  static constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
  static std::mutex& Mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static int& Users() {
    static int users = 0;
    return users;
  }
};

void LaunchMain() {
  Machine& m = M();
  for (;;) {
    m.kernel->run(*m.launch);
    m.is_done = true;
    Context::Change(&m.launch_context, &m.fault_main);
  }
}

}  // namespace

const EmulatedMachine& TheMachine() {
  static constexpr EmulatedMachine kMachine{RunBlock, WaitForBlock, Gather, Fail};
  return kMachine;
}

std::string RunKernel(const EmulatedKernel& kernel, const EmulatedLaunch& launch) {
  Machine& m = M();
  const SignalHandlers handlers;
  const SignalStack stack;
  if (m.launch_stack == nullptr) m.launch_stack = MakeStacks(1);
  m.launch_context.Prepare(m.launch_stack, kStackBytes, LaunchMain);
  m.kernel = &kernel;
  m.launch = &launch;
  m.is_descending = launch.is_descending;
  m.rubbish = launch.rubbish;
  m.fault.clear();
  m.is_done = false;
  m.thread = pthread_self();
  m.is_running = true;
  Context::Change(&m.fault_main, &m.launch_context);
  m.is_running = false;
  // Items that a fault left in the middle start anew.
  if (!m.is_done) m.prepared = 0;
  return std::exchange(m.fault, std::string());
}

std::string TakeComplaint() { return std::exchange(M().complaint, std::string()); }

}  // namespace emulated
