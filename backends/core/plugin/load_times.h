// SPDX-License-Identifier: Apache-2.0
//
// LoadTimes: what making a graph ready took, stage by stage. The backend and the pipeline run each
// of their stages through it.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_LOAD_TIMES_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_LOAD_TIMES_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onnxifi::plugin {

// Threads: one at a time.
class LoadTimes {
 public:
  struct LoadStage {
    std::string name;
    // How often it ran; a pass that ran twice is one stage.
    uint64_t count = 0;
    std::chrono::nanoseconds duration{};
  };

  // Calls `body` and returns what it returns.
  template <typename Body>
  auto Time(std::string_view stage, const Body& body) {
    const Timer timer(*this, stage);
    return body();
  }

  void Add(std::string_view stage, std::chrono::nanoseconds duration);

  // In the order in which they first ended. They do not overlap.
  const std::vector<LoadStage>& stages() const { return stages_; }

 private:
  class Timer {
   public:
    Timer(LoadTimes& times, std::string_view stage)
        : times_(times), stage_(stage), start_(std::chrono::steady_clock::now()) {}
    ~Timer() { times_.Add(stage_, std::chrono::steady_clock::now() - start_); }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    LoadTimes& times_;
    const std::string_view stage_;
    const std::chrono::steady_clock::time_point start_;
  };

  std::vector<LoadStage> stages_;
};

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_LOAD_TIMES_H_
