// Loads the data set that the flags name and deals it out to the clients.
#pragma once

#include <fedrun/data/partition.h>
#include <fedrun/fl/tensor_clients.h>

#include <string>

#include "fedavg_flags.h"

namespace fedavg {

struct Data {
  std::string name;
  std::int64_t classes = 0;
  fedrun::data::Partition partition;  // the samples that each client trains on
  fedrun::fl::TensorClients clients;
};

// Throws UsageError that lists the files which are missing.
Data load_data(const Flags& flags);

}  // namespace fedavg
