// Reads the JSON files of LEAF, in which every sample belongs to a user: FEMNIST's writers, Shakespeare's roles.
#pragma once

#include <fedrun/data/feature_set.h>

#include <filesystem>
#include <string>
#include <vector>

namespace fedrun::data {

// femnist: images of 28×28 numbers from 0 to 1, 62 classes. shakespeare: 80 characters, of which the next is to be
// guessed; a character is its number in LEAF's alphabet counted from 1, and 81 where it is not in there.
enum class LeafKind { femnist, shakespeare };

struct LeafSet {
  FeatureSet samples;                // its clients are those of training and testing together
  SplitPartition clients;            // who trains and who tests on what; a client is a user
  std::vector<std::string> users{};  // by client
};

// Takes all files *.json in the directories train and test. Throws UsageError when there are none, and for a file that
// is damaged or of another form, with the place. Reads file by file, without holding a file's JSON in memory.
LeafSet load_leaf(const std::filesystem::path& directory, LeafKind kind);

}  // namespace fedrun::data
