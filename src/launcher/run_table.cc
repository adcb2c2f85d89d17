#include <fedrun/launcher/run_table.h>
#include <fmt/format.h>

#include <algorithm>

namespace fedrun::launcher {
namespace {

std::string device_of(const RunPlan& plan, const RankPlace& place) {
  return plan.gpus.empty() ? "cpu" : fmt::format("cuda:{}", plan.gpus[static_cast<size_t>(place.rank)]);
}

const char* describe(Binding binding) {
  switch (binding) {
    case Binding::core:
      return "each rank to cores of its own";
    case Binding::socket:
      return "each rank to one socket";
    case Binding::none:
      break;
  }
  return "none";
}

}  // namespace

std::string run_table(const RunPlan& plan) {
  size_t width = std::string_view("host").size();
  for (const RankPlace& place : plan.ranks) width = std::max(width, place.host.size());
  std::string text = fmt::format("{:>5}  {:<{}}  {:>10}  {}\n", "rank", "host", width, "local rank", "device");
  for (const RankPlace& place : plan.ranks) {
    text += fmt::format("{:>5}  {:<{}}  {:>10}  {}\n", place.rank, place.host, width, place.local_rank,
                        device_of(plan, place));
  }
  text += fmt::format("threads per rank: {}\n",
                      plan.threads ? fmt::format("{}", *plan.threads) : "the cores of its host divided by its ranks");
  return text + fmt::format("binding: {}\n", describe(plan.binding));
}

}  // namespace fedrun::launcher
