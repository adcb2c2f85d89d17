// Makes clients of users, of whom data sets keep the samples for training and for testing in different files.
#pragma once

#include <fedrun/data/partition.h>

#include <map>
#include <string>
#include <vector>

namespace fedrun::data {

using SamplesOfUser = std::map<std::string, std::vector<SampleIndex>>;

struct Users {
  std::vector<std::string> names;  // by client
  SplitPartition clients;
};

// Every user of either is a client, in the order of names. Who is in one only has no samples in the other.
Users number_users(const SamplesOfUser& train, const SamplesOfUser& test);

}  // namespace fedrun::data
