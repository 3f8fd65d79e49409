// SPDX-License-Identifier: Apache-2.0
//
// A queue of batches, worked off by one thread per job; each thread watches one child at a time.

#include "conformance/process/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>

namespace onnxifi::process {
namespace {

void DoNothing() {}

// Runs one batch to its end, however many processes that takes.
class BatchRunner {
 public:
  BatchRunner(const PoolOptions& options, std::span<const std::string> ids,
              const std::function<void()>& on_finished)
      : options_(options), ids_(ids), on_finished_(on_finished), endings_(ids.size()) {}

  base::Result<std::vector<CaseEnding>> Run() {
    size_t begin = 0;
    while (begin < ids_.size()) {
      ONNXIFI_ASSIGN_OR_RETURN(BatchOutcome outcome, Repeat(begin, ids_.size(), on_finished_));
      for (size_t index = 0; index < outcome.finished.size(); ++index) {
        FinishedCase& finished = outcome.finished[index];
        endings_[begin + index] = {.report = std::move(finished.report),
                                   .seconds = finished.seconds};
      }
      const size_t broken = begin + outcome.finished.size();
      if (outcome.breakdown) {
        ONNXIFI_RETURN_IF_ERROR(Blame(begin, broken, *outcome.breakdown));
      }
      begin = broken + 1;
    }
    return std::move(endings_);
  }

 private:
  base::Result<BatchOutcome> Repeat(size_t begin, size_t end,
                                    const std::function<void()>& on_finished) const {
    return RunBatch(options_.command, ids_.subspan(begin, end - begin), options_.time_limit,
                    on_finished);
  }

  // Whether cases begin..end-1 still break down in a process of their own.
  base::Result<bool> BreaksDown(size_t begin, size_t end) const {
    ONNXIFI_ASSIGN_OR_RETURN(const BatchOutcome outcome, Repeat(begin, end, DoNothing));
    return outcome.breakdown.has_value();
  }

  void SetBroken(size_t index, const Breakdown& breakdown, std::string sentence) {
    endings_[index] = {.ending = breakdown.ending,
                       .report = {},
                       .sentence = std::move(sentence),
                       .printed = breakdown.printed,
                       .seconds = endings_[index].seconds};
  }

  // Finds the case to blame for a breakdown in case `broken` (or, when that is past the last, at
  // the exit) of a process that started with case `begin`, and gives `broken` an ending of its own.
  base::Status Blame(size_t begin, size_t broken, const Breakdown& breakdown) {
    const bool at_exit = broken == ids_.size();
    if (!at_exit) {
      ONNXIFI_ASSIGN_OR_RETURN(BatchOutcome alone, Repeat(broken, broken + 1, on_finished_));
      if (alone.breakdown && alone.finished.empty()) {
        SetBroken(broken, *alone.breakdown, fmt::format("The process {}.", alone.breakdown->cause));
        on_finished_();
        return base::Ok();
      }
      if (alone.breakdown) {
        SetBroken(broken, *alone.breakdown,
                  fmt::format("The process {} at its exit.", alone.breakdown->cause));
        return base::Ok();
      }
      endings_[broken] = {.report = std::move(alone.finished.front().report),
                          .seconds = alone.finished.front().seconds};
    }
    const size_t end = at_exit ? broken : broken + 1;
    ONNXIFI_ASSIGN_OR_RETURN(const bool repeats, BreaksDown(begin, end));
    if (!repeats) {
      const size_t last = end - 1;
      SetBroken(last, breakdown,
                fmt::format("The process {} {}, once and not again.", breakdown.cause,
                            at_exit ? "at its exit" : "in this case"));
      return base::Ok();
    }
    // The cases first..end-1 break down, those after `first` alone may not: narrow to the last such
    // first.
    size_t first = begin;
    size_t beyond = end;
    while (beyond - first > 1) {
      const size_t middle = first + (beyond - first) / 2;
      ONNXIFI_ASSIGN_OR_RETURN(const bool breaks, BreaksDown(middle, end));
      (breaks ? first : beyond) = middle;
    }
    const std::string where =
        at_exit ? "at its exit" : fmt::format("in a later case, '{}'", ids_[broken]);
    SetBroken(first, breakdown, fmt::format("The process {} {}.", breakdown.cause, where));
    return base::Ok();
  }

  const PoolOptions& options_;
  std::span<const std::string> ids_;
  const std::function<void()>& on_finished_;
  std::vector<CaseEnding> endings_;
};

}  // namespace

base::Result<std::vector<CaseEnding>> RunCases(const PoolOptions& options,
                                               std::span<const std::string> ids,
                                               const std::function<void()>& on_finished) {
  std::vector<CaseEnding> endings(ids.size());
  std::mutex mutex;  // Guards what follows.
  size_t next = 0;
  base::Status failure;

  const std::function<void()> report = [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    on_finished();
  };
  const auto work = [&] {
    while (true) {
      size_t begin = 0;
      size_t size = 0;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (next == ids.size() || !failure.ok()) return;
        begin = next;
        size = std::min(static_cast<size_t>(options.batch_size), ids.size() - begin);
        next += size;
      }
      base::Result<std::vector<CaseEnding>> batch =
          BatchRunner(options, ids.subspan(begin, size), report).Run();
      const std::lock_guard<std::mutex> lock(mutex);
      if (!batch.ok()) {
        failure = batch.status();
        return;
      }
      std::move(batch->begin(), batch->end(), endings.begin() + static_cast<ptrdiff_t>(begin));
    }
  };
  std::vector<std::jthread> threads;
  for (int job = 0; job < options.jobs; ++job) threads.emplace_back(work);
  threads.clear();  // Joins.
  if (!failure.ok()) return failure;
  return endings;
}

}  // namespace onnxifi::process
