// The flags that `fedrun bench` has besides those of a launch; its help, the completions and the man page list them.
#pragma once

#include <array>

namespace fedrun::launcher {

struct BenchFlag {
  const char* name;
  const char* value;  // nullptr: takes none
  const char* help;
};

constexpr std::array bench_flags = {
    BenchFlag{"--out", "DIR", "where the results go; default: fedrun-bench-DATE-TIME, here"},
    BenchFlag{"--quick", nullptr, "less of everything: a look at whether all works, in two minutes"},
    BenchFlag{"--only", "LIST",
              "these parts: collectives, training, overlap, batch, precision, compression, scaling, fedavg"},
    BenchFlag{"--models", "LIST", "of convnet, mlp, resnet18, resnet50; default: all, and with --quick the first two"},
    BenchFlag{"--dry-run", nullptr, "show what would be measured, by which commands, and start nothing"},
    BenchFlag{"--help", nullptr, "this text"},
};

}  // namespace fedrun::launcher
