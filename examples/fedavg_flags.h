// The flags of the fedavg program: FedML's names and defaults, where FedML has them.
#pragma once

#include <fedrun/fl/classification_trainer.h>
#include <fedrun/fl/federation.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace fedavg {

struct Flags {
  std::string dataset;
  std::string data_dir;
  std::string partition_method;
  std::string partition_file;
  double partition_alpha = 0;
  double synthetic_alpha = 0;
  double synthetic_beta = 0;
  std::size_t clients = 0;
  std::string model;

  std::uint64_t rounds = 0;
  std::uint64_t rounds_between_tests = 0;
  std::uint64_t seed = 0;
  std::string run_dir;
  std::uint64_t rounds_between_checkpoints = 0;
  bool resumes = false;
  bool tests_clients = false;
  bool is_check = false;  // of the set-up: everything once, with few samples
  fedrun::fl::RankGroupsOptions groups{};
  fedrun::fl::ClassificationOptions training{};
  fedrun::fl::FederationOptions federation{};

  std::string algorithm;
  double mu = 0;
  double server_lr = 0;
  double server_momentum = 0;
  double beta1 = 0;
  double beta2 = 0;
  double tau = 0;
  std::size_t client_groups = 0;   // of hierarchical
  std::uint64_t inner_rounds = 0;  // likewise

  nlohmann::json given{};  // every flag and its value, for the records

  bool is_hierarchical() const { return algorithm == "hierarchical"; }
  std::unique_ptr<fedrun::fl::Algorithm> make_algorithm() const;
};

// Nothing when --help was asked for. Flags may be written with underscores, as FedML does. Throws UsageError.
std::optional<Flags> read_flags(int argc, char** argv, int rank);

}  // namespace fedavg
