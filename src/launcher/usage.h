// What --help and the man page both say besides the flags.
#pragma once

namespace fedrun::launcher {

struct UsageExample {
  const char* command;
  const char* meaning;
};

constexpr const char* synopses[] = {"fedrun [OPTIONS] PROGRAM [ARGUMENTS...]", "fedrun check [OPTIONS] [PROGRAM]",
                                    "fedrun bench [OPTIONS]"};

constexpr const char* description[] = {
    "Runs PROGRAM as several ranks, on this machine or on several hosts, over Open MPI's mpirun.",
    "Options stand before PROGRAM; everything from PROGRAM on reaches it unchanged.",
    "'fedrun check' only checks the hosts. 'fedrun bench' measures collectives, training and federated rounds there,",
    "and writes a page with plots; 'fedrun bench --help' has its options. Programs of these names are started by",
    "'fedrun -- check' and 'fedrun -- bench'."};

constexpr UsageExample examples[] = {
    {"fedrun -np 2 ./train --lr 0.1", "two ranks on this machine"},
    {"fedrun -np 4 -H a:2,b:2 ./train", "two ranks each on the hosts a and b"},
    {"fedrun --hostfile hosts.txt ./train", "as many ranks as the file has slots"},
    {"fedrun --config run.yaml ./train", "with the flags of the file"},
    {"fedrun bench -np 2 --quick --out results", "see what this machine does"},
    {"fedrun -np 2 --threads 4 -x OMP_PROC_BIND=true ./train", "four compute threads for each rank"},
};

constexpr const char* exit_codes[] = {
    "The program's; 128 + n when signal n ended it; 127 or 126 when it was not found or is not executable;",
    "2 for a wrong command line."};

}  // namespace fedrun::launcher
