// Shows an error that several ranks report once, and keeps those of ranks that only noticed the end of another.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

// A report is what an exception that nobody caught leaves: "fedrun: rank R on HOST: KIND: message", with further lines
// indented.
class RankReports {
 public:
  // `show_all`: neither repetitions nor victims are left out.
  explicit RankReports(bool show_all) : show_all_(show_all) {}

  // Does this line of a rank's standard error belong to a report? Then it is held.
  bool takes(int rank, std::string_view line);

  // The end of a rank's report, because the rank wrote something else, has ended or is silent. Returns what to show.
  std::string settle(int rank);

  // "fedrun: the same error on ranks 1, 2 as on rank 0"
  std::string repeated() const;

  bool holds(int rank) const { return held_.contains(rank); }
  bool lost_a_peer(int rank) const;
  // Its error was shown, by itself or as the same as another rank's.
  bool is_told(int rank) const;
  // What the victims reported, for when nothing else is known.
  std::string of_victims() const;

 private:
  struct Shown {
    std::string error;       // all its lines
    std::vector<int> ranks;  // the first one's report was shown
  };

  bool show_all_;
  std::map<int, std::string> held_;
  std::map<int, std::string> victims_;
  std::vector<Shown> shown_;
};

}  // namespace fedrun::launcher
