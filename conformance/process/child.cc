// SPDX-License-Identifier: Apache-2.0
//
// posix_spawn, a socket, a pipe and a memory file: names go in, reports come out, everything
// printed is kept for the row of a case that breaks down.

#include "conformance/process/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "conformance/process/worker.h"

namespace onnxifi::process {
namespace {

using Clock = std::chrono::steady_clock;

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { Close(); }

  int number() const { return number_; }
  void Close() {
    if (number_ >= 0) close(number_);
    number_ = -1;
  }

 private:
  int number_ = -1;
};

struct Pipe {
  Descriptor read_end;
  Descriptor write_end;
};

base::Status SystemFailure(std::string_view what) {
  return base::Status(base::Code::kNoSystemResources,
                      fmt::format("{} fails: {}.", what, strerror(errno)));
}

// A socket instead of a pipe for the direction in which we write: a worker that is gone then costs
// an error, not a SIGPIPE.
base::Result<Pipe> MakeSocketPair() {
  std::array<int, 2> ends;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return SystemFailure("Making a pair of sockets");
  }
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

base::Result<Pipe> MakePipe() {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return SystemFailure("Making a pipe");
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// A started process; killed and collected if nobody waited for it.
class Process {
 public:
  explicit Process(pid_t pid) : pid_(pid) {}
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ~Process() {
    if (pid_ > 0) {
      Kill();
      Wait();
    }
  }

  pid_t number() const { return pid_; }
  void Kill() const { kill(pid_, SIGKILL); }
  int Wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

base::Result<Process> Spawn(std::span<const std::string> command, int input, int report,
                            int printed) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, printed, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, printed, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, report, kReportDescriptor);
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));  // posix_spawn does not write to it.
  }
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, command.front().c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    errno = error;
    return SystemFailure(fmt::format("Starting '{}'", command.front()));
  }
  return Process(pid);
}

void WriteAll(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = send(descriptor, text.data(), text.size(), MSG_NOSIGNAL);
    if (written <= 0) return;  // The worker is gone; its end tells why.
    text.remove_prefix(static_cast<size_t>(written));
  }
}

std::string ReadTail(int descriptor) {
  constexpr off_t kTailBytes = 4096;
  const off_t end = lseek(descriptor, 0, SEEK_END);
  std::string tail(static_cast<size_t>(std::min(end, kTailBytes)), '\0');
  const ssize_t size =
      pread(descriptor, tail.data(), tail.size(), std::max<off_t>(0, end - kTailBytes));
  tail.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return tail;
}

// Why a process with this wait status broke down; nothing when it ended well.
std::optional<std::string> CauseOf(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) != 0) {
    return fmt::format("ended with exit status {}", WEXITSTATUS(status));
  }
  return std::nullopt;
}

// How long the threads of a process could have run, but had no processor; of those that there are
// now. Nothing where the kernel does not tell.
std::chrono::nanoseconds TimeWithoutProcessor(pid_t process) {
  int64_t sum = 0;
  std::error_code error;
  for (const auto& thread :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), error)) {
    // "<ns on a processor> <ns without> <times>"
    std::ifstream file(thread.path() / "schedstat");
    int64_t on = 0;
    int64_t without = 0;
    if (file >> on >> without) sum += without;
  }
  return std::chrono::nanoseconds(sum);
}

// The stream of report lines, cut and timed. What takes the processors away from a case is not
// counted: a kernel that a driver compiles for two seconds is one after two minutes, too, where
// others want the machine more.
class ReportStream {
 public:
  ReportStream(int descriptor, pid_t process, std::chrono::milliseconds time_limit)
      : descriptor_(descriptor), process_(process), time_limit_(time_limit) {
    StartCase();
  }

  enum class Event : uint8_t { kLine, kEnd, kTimeout };

  Event Next(std::string& line) {
    while (true) {
      const size_t newline = buffer_.find('\n');
      if (newline != std::string::npos) {
        line = buffer_.substr(0, newline);
        buffer_.erase(0, newline + 1);
        StartCase();
        return Event::kLine;
      }
      auto left = LeftUntil(deadline_);
      if (left.count() <= 0) {
        // Threads that are gone take with them what they waited.
        const auto without = std::max(TimeWithoutProcessor(process_) - without_at_start_,
                                      std::chrono::nanoseconds(0));
        left = LeftUntil(
            deadline_ + std::min<std::chrono::nanoseconds>(without, (kMaxDelay - 1) * time_limit_));
      }
      if (left.count() <= 0) return Event::kTimeout;
      pollfd waiting = {.fd = descriptor_, .events = POLLIN, .revents = 0};
      if (poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
      std::array<char, 4096> chunk;
      const ssize_t size = read(descriptor_, chunk.data(), chunk.size());
      if (size <= 0) return Event::kEnd;
      buffer_.append(chunk.data(), static_cast<size_t>(size));
    }
  }

 private:
  // Times the limit, at most, whatever the machine does.
  static constexpr int kMaxDelay = 20;

  static std::chrono::milliseconds LeftUntil(Clock::time_point time) {
    return std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now());
  }
  void StartCase() {
    deadline_ = Clock::now() + time_limit_;
    without_at_start_ = TimeWithoutProcessor(process_);
  }

  int descriptor_;
  pid_t process_;
  std::chrono::milliseconds time_limit_;
  Clock::time_point deadline_;
  std::chrono::nanoseconds without_at_start_;
  std::string buffer_;
};

}  // namespace

base::Result<BatchOutcome> RunBatch(std::span<const std::string> command,
                                    std::span<const std::string> ids,
                                    std::chrono::milliseconds time_limit,
                                    const std::function<void()>& on_finished) {
  ONNXIFI_ASSIGN_OR_RETURN(Pipe input, MakeSocketPair());
  ONNXIFI_ASSIGN_OR_RETURN(Pipe reports, MakePipe());
  Descriptor printed(memfd_create("printed", MFD_CLOEXEC));
  if (printed.number() < 0) return SystemFailure("Making a memory file");
  ONNXIFI_ASSIGN_OR_RETURN(Process process, Spawn(command, input.read_end.number(),
                                                  reports.write_end.number(), printed.number()));
  input.read_end.Close();
  reports.write_end.Close();
  std::string names;
  for (const std::string& id : ids) names += id + "\n";
  WriteAll(input.write_end.number(), names);
  input.write_end.Close();

  BatchOutcome outcome;
  ReportStream stream(reports.read_end.number(), process.number(), time_limit);
  std::string line;
  Clock::time_point begin = Clock::now();
  ReportStream::Event event = stream.Next(line);
  for (; event == ReportStream::Event::kLine; event = stream.Next(line)) {
    if (line == "begin") {
      begin = Clock::now();
    } else if (line.starts_with("end ")) {
      const std::chrono::duration<double> elapsed = Clock::now() - begin;
      outcome.finished.push_back({.report = line.substr(4), .seconds = elapsed.count()});
      on_finished();
    }
  }
  if (event == ReportStream::Event::kTimeout) {
    process.Kill();
    process.Wait();
    outcome.breakdown =
        Breakdown{.ending = Ending::kHung,
                  .cause = fmt::format("did not finish within {:.3g} s",
                                       std::chrono::duration<double>(time_limit).count()),
                  .printed = ReadTail(printed.number())};
    return outcome;
  }
  std::optional<std::string> cause = CauseOf(process.Wait());
  if (!cause && outcome.finished.size() < ids.size()) cause = "ended in the middle of its work";
  if (cause) {
    outcome.breakdown = Breakdown{.ending = Ending::kCrashed,
                                  .cause = *std::move(cause),
                                  .printed = ReadTail(printed.number())};
  }
  return outcome;
}

}  // namespace onnxifi::process
