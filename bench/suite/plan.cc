#include "plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace fedrun::bench::suite {
namespace {

using Words = std::vector<std::string>;

// How much is measured; the same everywhere would take hours in one place and show nothing in another.
struct ModelEffort {
  int steps;
  int warmup;
  int rounds;
};

std::string named(int ranks) { return fmt::format("{} {}", ranks, ranks == 1 ? "rank" : "ranks"); }

bool is_resnet(const std::string& model) { return model.starts_with("resnet"); }

ModelEffort effort(const std::string& model, const Options& options, const Site& site) {
  if (site.on_gpus) return options.quick ? ModelEffort{10, 3, 1} : ModelEffort{30, 5, 3};
  if (is_resnet(model)) return options.quick ? ModelEffort{2, 1, 1} : ModelEffort{3, 1, 2};
  return options.quick ? ModelEffort{4, 2, 1} : ModelEffort{10, 2, 3};
}

// Samples of a rank and a step.
int batch_size(const std::string& model, const Site& site) {
  static const std::map<std::string, int> on_cpus = {{"convnet", 100}, {"mlp", 32}, {"resnet18", 16}, {"resnet50", 8}};
  static const std::map<std::string, int> on_gpus = {
      {"convnet", 1024}, {"mlp", 256}, {"resnet18", 256}, {"resnet50", 128}};
  return (site.on_gpus ? on_gpus : on_cpus).at(model);
}

class Planner {
 public:
  Planner(const Options& options, const Site& site, const Programs& programs)
      : options_(options), site_(site), programs_(programs) {}

  Plan plan() {
    if (!site_.on_gpus) skip("GPUs", site_.why_no_gpus);
    if (site_.hosts(site_.ranks) == 1) skip("several hosts", "all ranks are on one; -H a:2,b:2 names more");
    plan_collectives();
    const bool has_torch = has_program("training_bench");
    if (options_.wants(Section::training)) {
      if (has_torch) plan_training(Section::training, "fedrun,independent,alone");
    } else if (options_.wants(Section::overlap) && has_torch) {
      plan_training(Section::overlap, "fedrun");
    }
    if (has_torch) {
      plan_batch_sizes();
      plan_precisions();
    }
    plan_compression(has_torch);
    plan_scaling(has_torch);
    if (options_.wants(Section::fedavg) && has_program("fedavg_bench")) plan_fedavg();
    if (options_.quick && options_.models.size() < 3) {
      skip("resnet18 and resnet50", "--quick leaves them out; --models adds them");
    }
    return std::move(plan_);
  }

 private:
  void skip(std::string what, std::string why) { plan_.skipped.push_back({std::move(what), std::move(why)}); }

  bool wants_training_program() const {
    return std::ranges::any_of(options_.sections, [](Section section) {
      return section != Section::collectives && section != Section::fedavg;
    });
  }

  bool has_program(const std::string& program) {
    if (programs_.has(program)) return true;
    const bool matters = program != "training_bench" || wants_training_program();
    if (matters) {
      skip(fmt::format("what {} measures", program),
           fmt::format("{} is not beside fedrun: this build has no LibTorch", program));
    }
    return false;
  }

  Words launch(int ranks) const {
    Words words = {(programs_.directory / "fedrun").string()};
    words.insert(words.end(), options_.launch_words.begin(), options_.launch_words.end());
    const auto add = [&](std::string flag, std::string value) {
      words.push_back(std::move(flag));
      words.push_back(std::move(value));
    };
    add("-np", std::to_string(ranks));
    add("--device", site_.on_gpus ? "cuda" : "cpu");
    // The same for every number of ranks, or few ranks would have more cores each, and nothing could be compared.
    if (const auto threads = setting("FEDRUN_THREADS")) {
      add("--threads", *threads);
    } else if (!site_.on_gpus) {
      add("--threads", std::to_string(std::max(site_.cores / site_.most_ranks_of_a_host(), 1)));
    }
    add("--timeout", std::to_string(options_.launch.timeout.value_or(std::chrono::seconds(900)).count()));
    words.emplace_back("--no-prefix");
    return words;
  }

  std::optional<std::string> setting(const std::string& name) const {
    for (const auto& [variable, value] : options_.launch.settings) {
      if (variable == name) return value;
    }
    return std::nullopt;
  }

  Step& add(Section section, std::string name, int ranks, const std::string& program, const Words& arguments) {
    Step step{.section = section, .name = std::move(name), .ranks = ranks, .hosts = site_.hosts(ranks)};
    step.command = launch(ranks);
    step.command.push_back((programs_.directory / program).string());
    step.command.insert(step.command.end(), arguments.begin(), arguments.end());
    step.command.insert(step.command.end(), {"--json", "-"});
    return plan_.steps.emplace_back(std::move(step));
  }

  // Sizes from the smallest to the largest, by a factor.
  Words collective(const std::string& kinds, const std::string& smallest, const std::string& largest,
                   int factor) const {
    return {"--collective", kinds,   "-b", smallest,
            "-e",           largest, "-f", std::to_string(factor),
            "-w",           "2",     "-n", options_.quick ? "5" : "15"};
  }

  void plan_collectives() {
    if (!options_.wants(Section::collectives)) return;
    if (site_.ranks == 1) return skip("collectives", "one rank has nobody to talk to; pass -np 2 or more");
    const std::string largest = options_.quick ? "4M" : site_.on_gpus ? "1G" : "64M";
    add(Section::collectives, fmt::format("collectives by size on {}", named(site_.ranks)), site_.ranks,
        "allreduce_bench",
        collective("allreduce,reduce_scatter,allgather,broadcast,alltoall", "1K", largest, options_.quick ? 16 : 4));
  }

  Words training(const std::string& model, const std::string& systems, const std::string& batch_sizes) const {
    const ModelEffort effort = suite::effort(model, options_, site_);
    return {"--model",      model,
            "--systems",    systems,
            "--batch-size", batch_sizes,
            "--steps",      std::to_string(effort.steps),
            "--warmup",     std::to_string(effort.warmup),
            "--rounds",     std::to_string(effort.rounds)};
  }
  Words training(const std::string& model, const std::string& systems) const {
    return training(model, systems, std::to_string(batch_size(model, site_)));
  }

  void plan_training(Section section, const std::string& systems) {
    for (const std::string& model : options_.models) {
      add(section, fmt::format("{} on {}", model, named(site_.ranks)), site_.ranks, "training_bench",
          training(model, systems));
    }
  }

  // The large ones would take most of the time and show the same.
  std::vector<std::string> swept_models() const {
    std::vector<std::string> models = options_.models;
    if (!site_.on_gpus) std::erase(models, "resnet50");
    if (!site_.on_gpus && options_.quick) std::erase(models, "resnet18");
    return models;
  }
  void skip_unswept(const std::string& what) {
    for (const std::string& model : options_.models) {
      const auto swept = swept_models();
      if (std::ranges::find(swept, model) == swept.end()) {
        skip(fmt::format("{}: {}", what, model), "too slow on a CPU for a sweep; training has it");
      }
    }
  }

  void plan_batch_sizes() {
    if (!options_.wants(Section::batch)) return;
    for (const std::string& model : swept_models()) {
      const int middle = batch_size(model, site_);
      add(Section::batch, fmt::format("batch sizes of {}", model), site_.ranks, "training_bench",
          training(model, "fedrun", fmt::format("{},{},{}", std::max(middle / 4, 1), middle, 4 * middle)));
    }
    skip_unswept("batch sizes");
  }

  void plan_precisions() {
    if (!options_.wants(Section::precision)) return;
    for (const std::string& model : swept_models()) {
      if (!site_.on_gpus && !site_.computes_bf16 && model != "convnet") {
        skip(fmt::format("precisions: {}", model),
             "no instructions for bf16 on this CPU, where large models take minutes for a step; convnet shows it");
        continue;
      }
      Words words = training(model, "fedrun");
      words.insert(words.end(), {"--precision", site_.on_gpus ? "f32,f16,bf16" : "f32,bf16"});
      add(Section::precision, fmt::format("precisions of {}", model), site_.ranks, "training_bench", words);
    }
    if (!site_.on_gpus) skip("precision f16", "few CPUs compute in it; bf16 is measured");
    skip_unswept("precisions");
  }

  void plan_compression(bool has_torch) {
    if (!options_.wants(Section::compression)) return;
    if (site_.ranks == 1) return skip("compression", "one rank sends nothing; pass -np 2 or more");
    if (site_.hosts(site_.ranks) == 1 && !site_.on_gpus) {
      skip("bytes saved by compression",
           "inside a host the CPU's ranks share their memory: nothing travels, so nothing is compressed");
    } else {
      for (const char* wire : {"none", "f16", "bf16"}) {
        Words words = collective("allreduce", "64K", options_.quick ? "4M" : "64M", options_.quick ? 8 : 4);
        if (std::string(wire) != "none") words.insert(words.end(), {"--wire", wire});
        add(Section::compression, fmt::format("allreduce, wire {}", wire), site_.ranks, "allreduce_bench", words);
      }
    }
    if (!has_torch) return;
    for (const std::string& model : swept_models()) {
      if (model == "convnet" && options_.models.size() > 1) continue;  // has too few parameters to show anything
      Words words = training(model, "fedrun");
      words.insert(words.end(), {"--compression", "none,fp16,bf16"});
      add(Section::compression, fmt::format("compression of {}", model), site_.ranks, "training_bench", words);
    }
  }

  void plan_scaling(bool has_torch) {
    if (!options_.wants(Section::scaling)) return;
    if (site_.ranks == 1) return skip("scaling", "there is one rank; pass -np 2 or more");
    const std::vector<int> counts = rank_counts(site_, options_.quick);
    int multiple = 1;
    for (const int ranks : counts) multiple = std::lcm(multiple, ranks);
    for (const int ranks : counts) {
      if (ranks > 1) {
        add(Section::scaling, fmt::format("allreduce on {}", named(ranks)), ranks, "allreduce_bench",
            collective("allreduce", "64K", options_.quick ? "4M" : "16M", options_.quick ? 64 : 16));
      }
      for (const std::string& model : swept_models()) {
        if (!has_torch || (model == "mlp" && options_.quick && options_.models.size() > 1)) continue;
        const int weak = batch_size(model, site_);
        const int strong = (weak * site_.ranks + multiple - 1) / multiple * multiple;  // of all ranks together
        const std::string sizes =
            strong / ranks == weak ? std::to_string(weak) : fmt::format("{},{}", weak, strong / ranks);
        add(Section::scaling, fmt::format("{} on {}", model, named(ranks)), ranks, "training_bench",
            training(model, "fedrun", sizes))
            .notes = {{"weak_batch_size", weak}, {"strong_batch_size_of_all", strong}};
      }
    }
    if (has_torch) skip_unswept("scaling");
  }

  void plan_fedavg() {
    const std::string groups = fmt::format("{}", fmt::join(group_counts(site_.ranks), ","));
    const auto add_rounds = [&](const char* workloads, const char* turns) {
      add(Section::fedavg, fmt::format("federated rounds, {}", workloads), site_.ranks, "fedavg_bench",
          {"--workload", workloads, "--groups", groups, "--turns", turns});
    };
    if (options_.quick) return add_rounds("lr-10", "2");
    add_rounds("lr-10,lr-100", "5");
    add_rounds("cnn", "2");
  }

  const Options& options_;
  const Site& site_;
  const Programs& programs_;
  Plan plan_;
};

}  // namespace

int Site::hosts(int count) const {
  const auto end = host_of_rank.begin() + std::min<std::ptrdiff_t>(count, std::ssize(host_of_rank));
  return std::max(static_cast<int>(std::set(host_of_rank.begin(), end).size()), 1);
}

int Site::most_ranks_of_a_host() const {
  std::map<std::string, int> ranks_of_host;
  int most = 1;
  for (const std::string& host : host_of_rank) most = std::max(most, ++ranks_of_host[host]);
  return most;
}

std::vector<int> rank_counts(const Site& site, bool quick) {
  std::set<int> counts = {1, site.ranks};
  if (quick) return {counts.begin(), counts.end()};
  for (int count = 2; count < site.ranks; count *= 2) counts.insert(count);
  for (int count = 1; count < site.ranks; ++count) {
    if (site.hosts(count + 1) > site.hosts(count)) counts.insert(count);
  }
  return {counts.begin(), counts.end()};
}

std::vector<int> group_counts(int ranks) {
  std::vector<int> counts;
  for (int count = 1; count <= ranks; count *= 2) {
    if (ranks % count == 0) counts.push_back(count);
  }
  if (counts.back() != ranks) counts.push_back(ranks);
  return counts;
}

Plan make_plan(const Options& options, const Site& site, const Programs& programs) {
  return Planner(options, site, programs).plan();
}

}  // namespace fedrun::bench::suite
