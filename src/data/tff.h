// Reads the HDF5 files of TensorFlow Federated, in which every image belongs to a client: fed_cifar100 and fed_emnist.
#pragma once

#include <fedrun/data/image_set.h>
#include <fedrun/data/partition.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace fedrun::data {

// fed_cifar100: CIFAR-100, 500 clients that train and 100 that test, by the same names. fed_emnist: FEMNIST as LEAF has
// it too, 28 × 28 pixels, 62 classes, 3,400 writers.
enum class TffKind { fed_cifar100, fed_emnist };

struct TffSet {
  ImageSet images;                   // those for training, client by client, then those for testing
  std::size_t train_count = 0;       // so many are for training
  SplitPartition clients;            // who trains and who tests on what
  std::vector<std::string> users{};  // by client, in the order of names, which is FedML's too: 0, 1, 10, 100, 101, …
};

// Takes fed_cifar100_train.h5 and fed_cifar100_test.h5, or fed_emnist_train.h5 and fed_emnist_test.h5. Throws
// UsageError when one is missing, before it reads the other, and for a file that is damaged or of another form, with
// the place in it. Pixels that the file has as numbers from 0 to 1 become the bytes that they were made of, a quarter
// of the memory.
TffSet load_tff(const std::filesystem::path& directory, TffKind kind);

// Whether one of the two files is there, so that it can only be this form of the data that is meant.
bool has_tff(const std::filesystem::path& directory, TffKind kind);

}  // namespace fedrun::data
