// Judges what the hosts have told about themselves, before anything is started on them.
#pragma once

#include <fedrun/launcher/host_facts.h>
#include <fedrun/launcher/hosts.h>

#include <string>
#include <vector>

namespace fedrun::launcher {

enum class Verdict { ok, warning, failed };  // only a failure keeps a run from starting

struct CheckRow {
  std::string host;
  std::string check;
  Verdict verdict = Verdict::ok;
  std::string what;
  std::string remedy = {};  // empty: there is nothing to do

  bool operator==(const CheckRow&) const = default;
};

struct Expectations {
  std::string directory = {};           // the working directory of the ranks
  std::string program = {};             // as the user gave it; empty: not asked for
  bool gpus = false;                    // the ranks are to use GPUs
  HostFacts original = {};              // program, libraries and versions are to be like these
  std::string original_place = "here";  // whose they are: "here", or "on node1"
};

// One row for each check of one host. `is_here`: it is the machine that fedrun runs on.
std::vector<CheckRow> judge_host(const Host& host, const HostFacts& facts, bool is_here,
                                 const Expectations& expectations);

}  // namespace fedrun::launcher
