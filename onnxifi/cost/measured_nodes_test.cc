// SPDX-License-Identifier: Apache-2.0
//
// ReplaceMeasured: by what is known of a node, of its like, of its device, of anything.

#include "onnxifi/cost/measured_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace onnxifi::cost {
namespace {

using testing::ElementsAre;

// Three nodes, Abs, Abs and Neg, on two devices; each is assumed to take 100 on the first and 200
// on the second.
struct Case {
  Case() {
    for (const char* name : {"one", "two", "three"}) {
      signatures.push_back(split::Digester().Add(std::string_view(name)).Get());
    }
    problem.devices.resize(2);
    problem.node_count = 3;
    problem.node_ns = {100, 200, 100, 200, 100, 200};
  }
  std::vector<int64_t> Replaced() {
    const DeviceTable* const both[] = {&tables[0], &tables[1]};
    const std::string_view types[] = {"Abs", "Abs", "Neg"};
    ReplaceMeasured(both, signatures, types, problem);
    return problem.node_ns;
  }

  DeviceTable tables[2];
  std::vector<split::Digest> signatures;
  partition::Problem problem;
};

TEST(MeasuredNodes, LeavesWhatIsAssumedWhereNothingIsKnown) {
  EXPECT_THAT(Case().Replaced(), ElementsAre(100, 200, 100, 200, 100, 200));
}

TEST(MeasuredNodes, ScalesWhatIsNotKnownByItsLike) {
  Case of;
  of.tables[0].node_ns = {{of.signatures[0], 50}, {of.signatures[2], 400}};
  // On the second device nothing was measured: by all there is, 450 in place of 200.
  EXPECT_THAT(of.Replaced(), ElementsAre(50, 450, 50, 450, 400, 450));
}

TEST(MeasuredNodes, ScalesByTheDeviceWhereNoneOfTheOperatorIsKnown) {
  Case of;
  of.tables[0].node_ns = {{of.signatures[0], 50}};
  of.tables[1].node_ns = {{of.signatures[1], 600}};
  EXPECT_THAT(of.Replaced(), ElementsAre(50, 600, 50, 600, 50, 600));
}

TEST(MeasuredNodes, KeepsRefusals) {
  Case of;
  of.tables[0].node_ns = {{of.signatures[0], 50}, {of.signatures[1], 70}};
  of.problem.node_ns[0] = partition::kRefused;
  EXPECT_THAT(of.Replaced(), ElementsAre(partition::kRefused, 140, 70, 140, 70, 140));
}

}  // namespace
}  // namespace onnxifi::cost
