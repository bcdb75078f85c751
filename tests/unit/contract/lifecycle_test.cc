// The table of stages: what it promises, and that docs/lifecycle.md draws exactly it.
#include "contract/lifecycle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "contract/event.h"

namespace cofferdam::contract {
namespace {

using Edge = std::pair<std::string, std::string>;

std::set<Edge> table_edges() {
  std::set<Edge> out;
  for (const Transition& one : transitions()) out.emplace(stage_name(one.from), stage_name(one.to));
  return out;
}

// The lines "a --> b" of the document's one diagram.
std::set<Edge> drawn_edges(const std::string& document) {
  std::set<Edge> out;
  const std::size_t begin = document.find("stateDiagram-v2");
  if (begin == std::string::npos) return out;
  const std::string diagram = document.substr(begin, document.find("```", begin) - begin);
  for (const std::string& line : split(diagram, '\n')) {
    const std::size_t arrow = line.find(" --> ");
    if (arrow == std::string::npos) continue;
    std::string from(trim(line.substr(0, arrow)));
    std::string to(trim(line.substr(arrow + 5)));
    if (from == "[*]") from = "none";
    if (to != "[*]") out.emplace(from, to);
  }
  return out;
}

std::vector<Stage> all_stages() {
  std::vector<Stage> out;
  for (int i = 0; i <= static_cast<int>(Stage::finished); ++i) out.push_back(static_cast<Stage>(i));
  return out;
}

std::set<Stage> reached_from(Stage begin, Stage without) {
  std::set<Stage> seen{begin};
  for (bool grown = true; grown;) {
    grown = false;
    for (const Transition& one : transitions()) {
      const bool known = seen.count(one.from) != 0 && one.from != without && one.to != without;
      if (known && seen.insert(one.to).second) grown = true;
    }
  }
  return seen;
}

TEST(Lifecycle, ThePictureIsTheTable) {
  auto document = read_file(std::string(COFFERDAM_SOURCE_DIR) + "/docs/lifecycle.md", 1U << 20U);
  ASSERT_TRUE(document) << document.error().line();
  const std::set<Edge> drawn = drawn_edges(*document);
  const std::set<Edge> table = table_edges();
  EXPECT_EQ(table.size(), transitions().size()) << "an edge stands twice in the table";
  for (const Edge& edge : table) {
    EXPECT_EQ(drawn.count(edge), 1U) << "not drawn: " << edge.first << " --> " << edge.second;
    // The second table of the document says when.
    EXPECT_NE(document->find("| `" + edge.first + "` | `" + edge.second + "` |"), std::string::npos)
        << edge.first << " --> " << edge.second;
  }
  for (const Edge& edge : drawn) {
    EXPECT_EQ(table.count(edge), 1U) << "drawn, but not possible: " << edge.first << " --> " << edge.second;
  }
  // The control: an edge that is missing in the picture is seen.
  std::string broken = *document;
  broken.erase(broken.find("    started --> process-ended\n"), 30);
  EXPECT_NE(drawn_edges(broken), table);
}

TEST(Lifecycle, FinishedIsFinal) {
  for (const Stage stage : all_stages()) EXPECT_FALSE(next_stage(Stage::finished, stage_name(stage)));
  for (const char* type : {event_type::agent, event_type::egress, event_type::cancel_requested,
                           event_type::answered, event_type::recovered}) {
    EXPECT_FALSE(next_stage(Stage::finished, type)) << type;
  }
}

TEST(Lifecycle, EveryStageIsReachedAndReachesTheEnd) {
  for (const Stage stage : all_stages()) {
    if (stage == Stage::none) continue;
    EXPECT_EQ(reached_from(Stage::queued, Stage::none).count(stage), 1U) << stage_name(stage);
    EXPECT_EQ(reached_from(stage, Stage::none).count(Stage::finished), 1U) << stage_name(stage);
  }
}

// Without the stage in the middle there is no way.
TEST(Lifecycle, WhatLeadsOnlyOverSomethingElse) {
  const std::pair<Stage, Stage> cases[] = {
      {Stage::published, Stage::committed},   {Stage::published, Stage::publishing},
      {Stage::published, Stage::settled},     {Stage::committed, Stage::snapshot},
      {Stage::snapshot, Stage::settled},      {Stage::started, Stage::box_ready},
      {Stage::process_ended, Stage::started}, {Stage::cloned, Stage::admitted},
  };
  for (const auto& [to, over] : cases) {
    EXPECT_EQ(reached_from(Stage::queued, over).count(to), 0U)
        << stage_name(to) << " without " << stage_name(over);
  }
  // Once it has been admitted nothing finishes without being settled.
  EXPECT_EQ(reached_from(Stage::admitted, Stage::settled).count(Stage::finished), 0U);
  EXPECT_EQ(reached_from(Stage::queued, Stage::started).count(Stage::finished), 1U) << "the control";
}

TEST(Lifecycle, StagesHaveTheNamesOfTheirEvents) {
  for (const Stage stage : all_stages()) EXPECT_EQ(stage_from_name(stage_name(stage)), stage);
  EXPECT_FALSE(stage_from_name("agent"));
  EXPECT_FALSE(next_stage(Stage::started, "none"));
}

TEST(Lifecycle, ReportsComeOnlyWhereTheyCan) {
  EXPECT_EQ(next_stage(Stage::box_gone, event_type::agent), Stage::box_gone);
  EXPECT_FALSE(next_stage(Stage::settled, event_type::agent));
  EXPECT_FALSE(next_stage(Stage::gateway_ready, event_type::answered));
  EXPECT_EQ(next_stage(Stage::gateway_ready, event_type::egress), Stage::gateway_ready);
  EXPECT_FALSE(next_stage(Stage::settled, event_type::egress));
  EXPECT_FALSE(next_stage(Stage::none, event_type::cancel_requested));
  EXPECT_EQ(next_stage(Stage::queued, event_type::queued), Stage::queued);
}

}  // namespace
}  // namespace cofferdam::contract
