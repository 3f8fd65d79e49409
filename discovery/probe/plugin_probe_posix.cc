// SPDX-License-Identifier: Apache-2.0
//
// PluginProbe on POSIX: a fork for each plugin. The child writes a line for each stage that it
// enters, and one at the end of its trial, without which its end is the plugin's fault, whatever
// exit status the plugin chose.

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <onnxifi/onnxifi.hpp>
#include <utility>

#include "discovery/probe/plugin_probe.h"
#include "discovery/search/candidate_search.h"
#include "discovery/search/environment.h"
#include "discovery/search/name_pattern.h"

namespace onnxifi::probe {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kEnd = "\x04";

void WriteLine(int descriptor, std::string_view text) {
  std::string line(text.substr(0, PIPE_BUF - 1));
  line += '\n';
  while (write(descriptor, line.data(), line.size()) < 0 && errno == EINTR) {
  }
}

// A process that tries one plugin. Ended and collected at the latest when it is destroyed.
class Child {
 public:
  // `backends` becomes ONNXIFI_BACKENDS there. Not started where the system has no process left.
  Child(std::filesystem::path path, const std::string& backends, const Trial& trial);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool is_running() const { return process_ > 0; }
  int reports() const { return reports_; }

  // Reads what there is; collects the process once its trial or it has ended.
  void Advance();
  // Ends what has taken too long.
  void GiveUp(std::chrono::milliseconds time_limit);

  // What is wrong with the plugin, once it runs no more.
  std::optional<Finding> FindFault() const;

 private:
  [[noreturn]] static void Run(int reports, int printed, const std::string& backends,
                               const Trial& trial);
  void ReadReports();
  void Collect(int status);
  void End();
  std::string LastPrinted() const;

  const std::filesystem::path path_;
  pid_t process_ = -1;
  int reports_ = -1;
  int printed_ = -1;
  std::string unread_;
  std::string stage_ = "it starts";
  bool has_ended_trial_ = false;
  // Why the trial did not end: a verb and what follows it.
  std::string cause_;
};

Child::Child(std::filesystem::path path, const std::string& backends, const Trial& trial)
    : path_(std::move(path)) {
  std::array<int, 2> ends = {-1, -1};
  printed_ = memfd_create("printed", MFD_CLOEXEC);
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
  process_ = fork();
  if (process_ == 0) Run(ends[1], printed_, backends, trial);
  close(ends[1]);
  reports_ = ends[0];
  fcntl(reports_, F_SETFL, O_NONBLOCK);
}

Child::~Child() {
  End();
  if (reports_ >= 0) close(reports_);
  if (printed_ >= 0) close(printed_);
}

void Child::Run(int reports, int printed, const std::string& backends, const Trial& trial) {
  // A group of its own, so that what the plugin starts ends with it.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core = {};
  setrlimit(RLIMIT_CORE, &no_core);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(printed >= 0 ? printed : nothing, STDOUT_FILENO);
  dup2(printed >= 0 ? printed : nothing, STDERR_FILENO);
  setenv("ONNXIFI_BACKENDS", backends.c_str(), /*overwrite=*/1);
  unsetenv("ONNXIFI_ADD_BACKENDS");
  setenv("ONNXIFI_LOG", "silent", /*overwrite=*/1);
  try {
    trial([reports](std::string_view stage) { WriteLine(reports, stage); });
  } catch (...) {
    // The tool will see it, too.
  }
  WriteLine(reports, kEnd);
  _exit(0);
}

void Child::ReadReports() {
  std::array<char, 4096> chunk;
  ssize_t size = 0;
  while ((size = read(reports_, chunk.data(), chunk.size())) > 0) {
    unread_.append(chunk.data(), static_cast<size_t>(size));
  }
  for (size_t end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
    const std::string line = unread_.substr(0, end);
    unread_.erase(0, end + 1);
    if (line == kEnd) {
      has_ended_trial_ = true;
    } else {
      stage_ = line;
    }
  }
}

void Child::Advance() {
  ReadReports();
  if (has_ended_trial_) return End();
  int status = 0;
  if (waitpid(process_, &status, WNOHANG) != process_) return;
  // What it said last may have come after the look above.
  ReadReports();
  if (!has_ended_trial_) Collect(status);
  // What it started and left behind.
  kill(-process_, SIGKILL);
  process_ = -1;
}

void Child::Collect(int status) {
  if (WIFSIGNALED(status)) {
    cause_ = "is ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
             strsignal(WTERMSIG(status)) + ")";
  } else {
    cause_ = "ends with exit status " + std::to_string(WEXITSTATUS(status));
  }
}

void Child::GiveUp(std::chrono::milliseconds time_limit) {
  cause_ = "has not come back after " + std::to_string(time_limit.count()) + " ms";
  End();
}

void Child::End() {
  if (!is_running()) return;
  // The group is there once the child has made it.
  kill(-process_, SIGKILL);
  kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

std::string Child::LastPrinted() const {
  constexpr off_t kTailBytes = 300;
  if (printed_ < 0) return std::string();
  const off_t end = lseek(printed_, 0, SEEK_END);
  std::string tail(static_cast<size_t>(std::clamp<off_t>(end, 0, kTailBytes)), '\0');
  const ssize_t size =
      pread(printed_, tail.data(), tail.size(), std::max<off_t>(0, end - kTailBytes));
  tail.resize(size > 0 ? static_cast<size_t>(size) : 0);
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  return tail.substr(tail.rfind('\n') + 1);
}

std::optional<Finding> Child::FindFault() const {
  if (cause_.empty()) return std::nullopt;
  std::string sentence =
      "A process that only tries the plugin " + cause_ + " while " + stage_ + ".";
  const std::string printed = LastPrinted();
  if (!printed.empty()) sentence += " It printed: " + printed;
  return Finding{path_, std::move(sentence)};
}

// A plugin and what ONNXIFI_BACKENDS says for it.
struct Candidate {
  std::filesystem::path path;
  std::string backends;
};

std::vector<Finding> TryAll(const std::vector<Candidate>& candidates, const Trial& trial,
                            std::chrono::milliseconds time_limit) {
  // A child may end while something that it started keeps its pipe open.
  constexpr std::chrono::milliseconds kSlice{20};
  std::vector<std::unique_ptr<Child>> children;
  for (const Candidate& candidate : candidates) {
    children.push_back(std::make_unique<Child>(candidate.path, candidate.backends, trial));
  }
  const Clock::time_point deadline = Clock::now() + time_limit;
  while (true) {
    std::vector<pollfd> waiting;
    for (const auto& child : children) {
      if (child->is_running()) waiting.push_back({child->reports(), POLLIN, 0});
    }
    if (waiting.empty()) break;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      for (const auto& child : children) {
        if (child->is_running()) child->GiveUp(time_limit);
      }
      break;
    }
    poll(waiting.data(), waiting.size(), static_cast<int>(std::min(left, kSlice).count()));
    for (const auto& child : children) {
      if (child->is_running()) child->Advance();
    }
  }
  std::vector<Finding> findings;
  for (const auto& child : children) {
    if (auto finding = child->FindFault()) findings.push_back(*std::move(finding));
  }
  return findings;
}

}  // namespace

Trial ListDevices(std::filesystem::path library) {
  return [library = std::move(library)](const EnterStage& enter) {
    enter("it is opened and lists its devices");
    const auto opened = Library::Open(library.string());
    if (!opened) return;
    const auto devices = opened->Devices();
    if (!devices) return;
    for (const Device& device : *devices) {
      enter("a device is asked for its name");
      static_cast<void>(device.TextInfo(ONNXIFI_BACKEND_NAME).ok());
      static_cast<void>(device.TextInfo(ONNXIFI_BACKEND_DEVICE).ok());
    }
  };
}

std::vector<Finding> ProbePlugins(const std::filesystem::path& library, const Trial& trial,
                                  std::chrono::milliseconds time_limit) {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::canonical(library, error);
  const search::Environment environment = search::ReadEnvironment();
  std::vector<Candidate> candidates;
  for (const search::Candidate& found : search::FindCandidates(environment, own.parent_path())) {
    // A plugin that a tool opens by itself looks for no others.
    if (found.path == own) return {};
    const std::string& path = found.path.native();
    const bool is_known =
        std::ranges::find(candidates, found.path, &Candidate::path) != candidates.end();
    // A list of paths cannot say a path with its separator in it.
    if (!found.status.ok() || is_known || path.find(':') != std::string::npos) continue;
    if (search::IsListed(environment.disable.value_or(""), found.path,
                         search::PluginName(found.path))) {
      continue;
    }
    candidates.push_back({found.path, path});
  }
  return TryAll(candidates, trial, time_limit);
}

std::optional<Finding> ProbeLibrary(const std::filesystem::path& library, const Trial& trial,
                                    std::chrono::milliseconds time_limit) {
  std::vector<Finding> findings = TryAll({{library, /*backends=*/""}}, trial, time_limit);
  if (findings.empty()) return std::nullopt;
  return std::move(findings.front());
}

void Disable(const std::vector<Finding>& findings) {
  constexpr const char* kVariable = "ONNXIFI_DISABLE";
  const char* const before = getenv(kVariable);
  std::string list = before != nullptr ? before : "";
  for (const Finding& finding : findings) {
    list += (list.empty() ? "" : ":") + search::MakePattern(finding.path);
  }
  if (!findings.empty()) setenv(kVariable, list.c_str(), /*overwrite=*/1);
}

}  // namespace onnxifi::probe
