#include "training_flags.h"

#include <fedrun/models/registry.h>
#include <fmt/ranges.h>

#include "flag_reader.h"

namespace fedrun::bench {
namespace {

cxxopts::Options describe_flags() {
  cxxopts::Options options(
      "training_bench", "Trains models on random data and shows where the time of a step goes; run it under fedrun.");
  const auto text = [](const char* standard) { return cxxopts::value<std::string>()->default_value(standard); };
  const auto list = [](const char* standard) {
    return cxxopts::value<std::vector<std::string>>()->default_value(standard);
  };
  // clang-format off
  options.add_options()
    ("model", fmt::format("list of {}", fmt::join(models::model_names(), ", ")), list("convnet,mlp,resnet18"))
    ("systems", "list of fedrun, independent (no communication) and alone (one rank, the others wait)", list("fedrun,independent,alone"))
    ("device", "auto, cpu or cuda: where the model is trained; auto: on the GPU of each rank, where the run has them", text("auto"))
    ("batch-size", "list of samples per rank and step; default 100 for convnet, 32 for mlp, 16 for others", cxxopts::value<std::vector<std::string>>())
    ("precision", "list of f32, f16 and bf16: the type of the model's parameters and of its input", list("f32"))
    ("steps", "timed steps per system and round", text("10"))
    ("warmup", "untimed steps before each of them", text("2"))
    ("rounds", "how often the systems take turns", text("3"))
    ("compression", "list of none, fp16, bf16, fp16-feedback and bf16-feedback", list("none"))
    ("sharded", "each rank steps its part of the parameters")
    ("optimizer", "sgd (momentum 0.9), adam or adamw", text("sgd"))
    ("announce-first-step", "say when the first step is over, for whoever times the launch")
    ("json", "also write results to this file, or with - among the output, one JSON object per line", cxxopts::value<std::string>());
  // clang-format on
  return options;
}

int parse_positive(std::string_view text) { return parse_integer(text, 1, 1'000'000); }

}  // namespace

std::optional<TrainingFlags> read_training_flags(int argc, char** argv, int rank) {
  cxxopts::Options options = describe_flags();
  const auto parsed = parse_flags(options, argc, argv, rank);
  if (!parsed) return std::nullopt;
  const FlagReader reader("training_bench", *parsed);
  TrainingFlags flags;
  flags.models = (*parsed)["model"].as<std::vector<std::string>>();
  flags.systems = reader.list<System>(
      "systems", {{"fedrun", System::fedrun}, {"independent", System::independent}, {"alone", System::alone}});
  flags.device = reader.device();
  if (reader.has("batch-size")) {
    flags.batch_sizes =
        reader.each("batch-size", [](std::string_view text) -> std::int64_t { return parse_positive(text); });
  }
  flags.precisions = reader.list<Precision>(
      "precision",
      {{"f32", {"f32", torch::kFloat32}}, {"f16", {"f16", torch::kFloat16}}, {"bf16", {"bf16", torch::kBFloat16}}});
  flags.steps = reader.read("steps", parse_positive);
  flags.warmup = reader.read("warmup", [](std::string_view text) { return parse_integer(text, 0, 1'000'000); });
  flags.rounds = reader.read("rounds", parse_positive);
  flags.compressions =
      reader.list<std::shared_ptr<Compression>>("compression", {{"none", Compression::none},
                                                                {"fp16", Compression::fp16},
                                                                {"bf16", Compression::bf16},
                                                                {"fp16-feedback", Compression::fp16_with_feedback()},
                                                                {"bf16-feedback", Compression::bf16_with_feedback()}});
  flags.sharded = reader.has("sharded");
  flags.optimizer = reader.word<std::string>("optimizer", {{"sgd", "sgd"}, {"adam", "adam"}, {"adamw", "adamw"}});
  flags.announces_first_step = reader.has("announce-first-step");
  if (reader.has("json")) flags.json_path = reader.text("json");
  return flags;
}

}  // namespace fedrun::bench
