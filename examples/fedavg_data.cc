#include "fedavg_data.h"

#include <fedrun/core/error.h>
#include <fedrun/data/cifar.h>
#include <fedrun/data/cinic.h>
#include <fedrun/data/image_crop.h>
#include <fedrun/data/leaf.h>
#include <fedrun/data/mnist.h>
#include <fedrun/data/partitioners.h>
#include <fedrun/data/synthetic_clients.h>
#include <fedrun/data/synthetic_digits.h>
#include <fedrun/data/tff.h>
#include <fmt/format.h>

#include <filesystem>
#include <utility>

namespace fedavg {
namespace {

using namespace fedrun::data;
using namespace fedrun::fl;
using fedrun::UsageError;

struct ImageSets {
  ImageSet train;
  ImageSet test;
  Normalisation normalisation;
};

ImageSets load_images(const Flags& flags) {
  const Normalisation of_digits = by_channel({0.1307F}, {0.3081F});
  const auto cifar = [&](CifarKind kind, const Normalisation& normalisation) -> ImageSets {
    return {load_cifar(flags.data_dir, kind, CifarSplit::train), load_cifar(flags.data_dir, kind, CifarSplit::test),
            normalisation};
  };
  if (flags.dataset == "mnist" || flags.dataset == "fashion-mnist") {
    return {load_mnist(flags.data_dir, MnistSplit::train), load_mnist(flags.data_dir, MnistSplit::test),
            flags.dataset == "mnist" ? of_digits : by_channel({0.2860F}, {0.3530F})};
  }
  if (flags.dataset == "cifar10") {
    return cifar(CifarKind::cifar10, by_channel({0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F}));
  }
  if (flags.dataset == "cifar100") {
    return cifar(CifarKind::cifar100, by_channel({0.5071F, 0.4865F, 0.4409F}, {0.2673F, 0.2564F, 0.2762F}));
  }
  if (flags.dataset == "cinic10") {
    return {load_cinic10(flags.data_dir, CinicSplit::train), load_cinic10(flags.data_dir, CinicSplit::test),
            by_channel({0.47889522F, 0.47227842F, 0.43047404F}, {0.24205776F, 0.23828046F, 0.25874835F})};
  }
  if (flags.dataset == "digits") {
    return {synthetic_digits({.count = 20'000, .seed = 1}), synthetic_digits({.count = 4'000, .seed = 2}), of_digits};
  }
  throw UsageError(fmt::format(
      "--dataset: '{}' is not one of mnist, fashion-mnist, cifar10, cifar100, cinic10, fed_cifar100, femnist, "
      "fed_emnist, shakespeare, synthetic, digits",
      flags.dataset));
}

Partition deal_out(const ImageSet& set, const Flags& flags) {
  if (flags.partition_method == "homo") return partition_evenly(set.count(), flags.clients, flags.seed);
  if (flags.partition_method == "hetero") {
    return partition_by_dirichlet(set.labels, set.classes, flags.clients,
                                  {.alpha = flags.partition_alpha, .seed = flags.seed});
  }
  if (flags.partition_method == "shards") {
    return partition_by_shards(set.labels, set.classes, flags.clients, {.seed = flags.seed});
  }
  if (flags.partition_method == "hetero-fix") {
    Partition partition = read_partition(flags.partition_file, set.count());
    if (partition.clients() == flags.clients) return partition;
    throw UsageError(fmt::format("{} has {} clients, but --client-num-in-total is {}", flags.partition_file,
                                 partition.clients(), flags.clients));
  }
  throw UsageError(fmt::format("--partition-method: '{}' is not one of homo, hetero, hetero-fix, shards, power-law",
                               flags.partition_method));
}

// Clients with test samples of their own, so both parts of the set are dealt out together.
Data deal_out_by_power_law(const ImageSets& sets, const Flags& flags) {
  std::vector<std::uint8_t> labels = sets.train.labels;
  labels.insert(labels.end(), sets.test.labels.begin(), sets.test.labels.end());
  const SplitPartition split =
      split_each_client(partition_by_power_law(labels, sets.train.classes, flags.clients, flags.seed), 0.9);
  const Samples all = join(samples_of(sets.train), samples_of(sets.test));
  return {.name = sets.train.name,
          .classes = static_cast<std::int64_t>(sets.train.classes),
          .partition = split.train,
          .clients = TensorClients(all, split, by_feature(all))};
}

Data make_synthetic(const Flags& flags) {
  const FeatureSet set = make_synthetic_clients(
      {.alpha = flags.synthetic_alpha, .beta = flags.synthetic_beta, .clients = flags.clients, .seed = flags.seed});
  const SplitPartition split = split_each_client(set.clients, 0.9);
  return {.name = set.name,
          .classes = static_cast<std::int64_t>(set.classes),
          .partition = split.train,
          .clients = TensorClients(samples_of(set), split)};
}

void check_users(const std::string& name, std::size_t users, const Flags& flags) {
  if (users == flags.clients) return;
  throw UsageError(fmt::format("{} has {} users: give --client-num-in-total {}", name, users, users));
}

Data load_users(const Flags& flags) {
  const LeafSet leaf =
      load_leaf(flags.data_dir, flags.dataset == "femnist" ? LeafKind::femnist : LeafKind::shakespeare);
  check_users(leaf.samples.name, leaf.users.size(), flags);
  return {.name = leaf.samples.name,
          .classes = static_cast<std::int64_t>(leaf.samples.classes),
          .partition = leaf.clients.train,
          .clients = TensorClients(samples_of(leaf.samples), leaf.clients)};
}

Data data_of(const TffSet& set, const ImageSet& images, const Normalisation& normalisation) {
  return {.name = images.name,
          .classes = static_cast<std::int64_t>(images.classes),
          .partition = set.clients.train,
          .clients = TensorClients(samples_of(images), set.clients, normalisation)};
}

// Squares of 24 × 24 pixels, standardised one by one, are what published results on fed_cifar100 were trained on. As in
// FedML they are cut once, not anew in each epoch.
Data load_fed_cifar100(const Flags& flags) {
  const TffSet set = load_tff(flags.data_dir, TffKind::fed_cifar100);
  check_users(set.images.name, set.users.size(), flags);
  const ImageSet squares = crop_images(set.images, {.side = 24, .random_count = set.train_count, .seed = flags.seed});
  return data_of(set, squares, by_sample());
}

Data load_fed_emnist(const Flags& flags) {
  const TffSet set = load_tff(flags.data_dir, TffKind::fed_emnist);
  check_users(set.images.name, set.users.size(), flags);
  return data_of(set, set.images, {});
}

// FedML's femnist is TFF's, LEAF's has the same name: the files tell which it is.
bool is_fed_emnist(const Flags& flags) {
  if (flags.dataset == "fed_emnist") return true;
  if (flags.dataset != "femnist") return false;
  if (has_tff(flags.data_dir, TffKind::fed_emnist)) return true;
  if (std::filesystem::exists(std::filesystem::path(flags.data_dir) / "train")) return false;
  throw UsageError(
      fmt::format("there is no FEMNIST in --data-dir '{}': neither LEAF's train/*.json and test/*.json, which "
                  "data/femnist/preprocess.sh of https://github.com/TalwalkarLab/leaf makes, nor TFF's "
                  "fed_emnist_train.h5 and fed_emnist_test.h5, from "
                  "https://storage.googleapis.com/tff-datasets-public/fed_emnist.tar.bz2",
                  flags.data_dir));
}

Data load_everything(const Flags& flags) {
  if (flags.dataset == "synthetic") return make_synthetic(flags);
  if (flags.dataset == "fed_cifar100") return load_fed_cifar100(flags);
  if (is_fed_emnist(flags)) return load_fed_emnist(flags);
  if (flags.dataset == "femnist" || flags.dataset == "shakespeare") return load_users(flags);
  const ImageSets sets = load_images(flags);
  if (flags.partition_method == "power-law") return deal_out_by_power_law(sets, flags);
  const Partition partition = deal_out(sets.train, flags);
  return {.name = sets.train.name,
          .classes = static_cast<std::int64_t>(sets.train.classes),
          .partition = partition,
          .clients = TensorClients(samples_of(sets.train), partition, samples_of(sets.test), sets.normalisation)};
}

}  // namespace

Data load_data(const Flags& flags) {
  constexpr std::size_t few = 4;
  Data data = load_everything(flags);
  if (flags.is_check) data.clients = data.clients.with_few_samples(few);
  return data;
}

}  // namespace fedavg
