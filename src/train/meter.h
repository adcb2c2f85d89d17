// Averages of what a training reports, such as its loss: over samples, and then over ranks.
#pragma once

#include <fedrun/collectives/communicator.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun {

// One value that is NaN or infinite would hide all others, so means are those of the finite values, and the samples of
// the others are counted apart. A name without any finite value has the mean NaN. Used by one thread.
class Meter {
 public:
  // A value that is itself the average of that many samples, such as the loss of a batch.
  void add(std::string_view name, double value, double samples = 1);

  // These throw UsageError for a name to which nothing was ever added.
  double mean(std::string_view name) const;
  double samples(std::string_view name) const;             // those of finite values
  double samples_not_finite(std::string_view name) const;  // those of the others

  std::vector<std::string> names() const;  // in alphabetical order

  // Collective: the meter of all ranks together, in which each sample counts the same. The ranks have the same names,
  // or every rank throws MismatchError that shows both sides; a rank that has none, because it had no data, counts for
  // nothing.
  Meter over_ranks(Communicator& group) const;

  // Forgets the values and keeps the names.
  void reset();

 private:
  struct Sums {
    double weighted_values = 0;
    double samples = 0;
    double samples_not_finite = 0;
  };

  const Sums& sums_of(std::string_view name) const;
  Meter with_names_of_all(Communicator& group) const;

  std::map<std::string, Sums, std::less<>> sums_;
};

}  // namespace fedrun
