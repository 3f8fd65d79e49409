// SPDX-License-Identifier: Apache-2.0
//
// ModelMutator: damaged models for the tests of everything that takes model bytes: the mutation
// test here, model_fuzz, and the long test through the C interface.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_TESTING_MODEL_MUTATOR_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_TESTING_MODEL_MUTATOR_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace onnxifi::model::testing {

// The same seed gives the same models in the same order.
class ModelMutator {
 public:
  // `seeds` are serialised models, at least one.
  ModelMutator(std::vector<std::string> seeds, uint64_t seed)
      : seeds_(std::move(seeds)), random_(seed) {}

  // A seed with one to eight changes: flipped bits, overwritten, removed, repeated or exchanged
  // bytes, a cut, numbers at the edges of their ranges, pieces of another seed; now and then bytes
  // at random.
  std::string Next();

 private:
  size_t Below(size_t limit) { return static_cast<size_t>(random_() % limit); }
  void ChangeBytes(std::string& bytes);
  void ChangeField(std::string& message);

  std::vector<std::string> seeds_;
  std::mt19937_64 random_;
};

}  // namespace onnxifi::model::testing

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_TESTING_MODEL_MUTATOR_H_
