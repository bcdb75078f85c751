// Random work on random trees: the snapshot's tree is the one that plain git makes of the same work, however
// the work tree came into being. COFFERDAM_PROPERTY_SEEDS: how many (default 12).
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/random_edits.h"
#include "unit/handoff/lab.h"

namespace {

using lab::Lab;
using lab::must;

unsigned seeds() {
  const char* wanted = ::getenv("COFFERDAM_PROPERTY_SEEDS");  // NOLINT(concurrency-mt-unsafe)
  return wanted == nullptr ? 12U : static_cast<unsigned>(std::max(1, std::atoi(wanted)));
}

// Where to begin, to look at one again.
unsigned first() {
  const char* wanted = ::getenv("COFFERDAM_PROPERTY_FIRST");  // NOLINT(concurrency-mt-unsafe)
  return wanted == nullptr ? 0U : static_cast<unsigned>(std::atoi(wanted));
}

class RandomEdits : public ::testing::TestWithParam<bool> {};

TEST_P(RandomEdits, TreeEqualsPlainAddInTrustedCopy) {
  unsigned changed = 0;
  for (unsigned seed = first(); seed < first() + seeds(); ++seed) {
    SCOPED_TRACE(seed);
    Lab lab;
    lab.make_source(cofferdam::test::random_tree(seed));
    // What a checkout would not bring along, steps must not depend on.
    lab.sh(lab.at("source"), "git clean -ffdxq");
    lab.prepare();
    const std::string edit = cofferdam::test::random_edits(seed, 5 + seed % 30);
    if (!GetParam()) lab.edit(edit);
    auto snapshot = must(GetParam() ? lab.overlay_snapshot(edit) : lab.snapshot());
    const std::string expected = lab.trusted_tree();
    EXPECT_EQ(snapshot.tree, expected)
        << edit
        << lab.sh(lab.at("trusted"), "GIT_ALTERNATE_OBJECT_DIRECTORIES=$LAB/out/objects git diff-tree -r " +
                                         expected + " " + snapshot.tree +
                                         "; cat .gitattributes || :; git ls-tree -r " +
                                         lab.cloned.identity.tree);
    EXPECT_EQ(std::to_string(snapshot.objects), lab.new_objects(expected));
    if (snapshot.tree != lab.cloned.identity.tree) ++changed;
  }
  EXPECT_GT(changed, seeds() / 2) << "the edits do nothing";
}

INSTANTIATE_TEST_SUITE_P(Forms, RandomEdits, ::testing::Bool(),
                         [](const auto& form) { return form.param ? "overlay" : "checkout"; });

}  // namespace
