// A resolver for tests: it answers from a file beside the program, in the product's own protocol, and writes
// down what it was asked.
#pragma once

#include <string>
#include <vector>

namespace cofferdam::egress::testing {

// The real one, unless there is a file "answers" beside `program`. Its lines are "host address...": the first
// line for a host is its first answer, and so on; the last one stays.
int resolver_for(const std::string& program);

// Which hosts were asked for, in order; `dir` is where "answers" lies.
std::vector<std::string> queries_in(const std::string& dir);

}  // namespace cofferdam::egress::testing
