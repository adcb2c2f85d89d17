// `fedrun bench`: what it measures, by which commands, and what it leaves out.
#include <fedrun/core/error.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "../../bench/suite/plan.h"
#include "support/error_text.h"

namespace fedrun::bench::suite {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int cores = 4;

Site site_of(std::vector<std::string> host_of_rank, bool on_gpus = false) {
  Site site{.ranks = static_cast<int>(host_of_rank.size()), .host_of_rank = std::move(host_of_rank), .cores = cores};
  site.on_gpus = on_gpus;
  if (!on_gpus) site.why_no_gpus = "there are none";
  return site;
}

Programs all_programs() {
  return {"/opt/bin", [](const std::string&) { return true; }};
}

Plan plan_of(const std::vector<std::string>& arguments, const Site& site, const Programs& programs = all_programs()) {
  return make_plan(parse_options(arguments), site, programs);
}

std::vector<std::string> skipped(const Plan& plan) {
  std::vector<std::string> what;
  for (const Skipped& skip : plan.skipped) what.push_back(skip.what);
  return what;
}

std::string value_after(const Step& step, const std::string& flag) {
  const auto found = std::ranges::find(step.command, flag);
  return found == step.command.end() ? "" : *(found + 1);
}

TEST(SuiteOptions, TakesItsOwnFlagsAndThoseOfALaunch) {
  const Options options =
      parse_options({"-np", "4", "--quick", "-H", "a:2,b:2", "--out=there", "--only", "scaling,collectives", "-x",
                     "A=b c", "--device", "cpu", "--threads", "2", "--timeout", "60"});
  EXPECT_TRUE(options.quick);
  EXPECT_EQ(options.out, "there");
  EXPECT_THAT(options.sections, ElementsAre(Section::collectives, Section::scaling));
  EXPECT_THAT(options.launch_words, ElementsAre("-H", "a:2,b:2", "-x", "A=b c"));
  EXPECT_EQ(options.launch.ranks, 4);
  EXPECT_EQ(options.launch.timeout, std::chrono::seconds(60));
}

TEST(SuiteOptions, LeavesResnetsOutWhenQuick) {
  EXPECT_THAT(parse_options({}).models, ElementsAre("convnet", "mlp", "resnet18", "resnet50"));
  EXPECT_THAT(parse_options({"--quick"}).models, ElementsAre("convnet", "mlp"));
  EXPECT_THAT(parse_options({"--quick", "--models", "resnet50"}).models, ElementsAre("resnet50"));
}

TEST(SuiteOptions, RefusesWhatMakesNoSense) {
  const auto refusal = [](std::vector<std::string> arguments) {
    return test::usage_error_of([&] { parse_options(arguments); });
  };
  EXPECT_THAT(refusal({"--only", "allreduce"}), HasSubstr("--only: 'allreduce' is not one of collectives, training"));
  EXPECT_THAT(refusal({"--models", "vgg"}), HasSubstr("--models: 'vgg' is not one of convnet"));
  EXPECT_THAT(refusal({"--out"}), HasSubstr("--out needs a value"));
  EXPECT_THAT(refusal({"--quick=1"}), HasSubstr("--quick takes no value"));
  EXPECT_THAT(refusal({"--hostfil", "x"}), HasSubstr("did you mean --hostfile"));
  EXPECT_THAT(refusal({"--timestamps"}), HasSubstr("the suite has no use for it"));
  EXPECT_THAT(refusal({"./train"}), HasSubstr("unexpected argument './train'"));
  EXPECT_THAT(refusal({"-np", "0"}), HasSubstr("-np"));
  EXPECT_THAT(refusal({"--device", "tpu"}), HasSubstr("--device"));
}

TEST(SuitePlan, EveryLaunchSaysWhereAndHow) {
  const Plan plan = plan_of({"-np", "2", "--bind", "core"}, site_of({"here", "here"}));
  ASSERT_FALSE(plan.steps.empty());
  for (const Step& step : plan.steps) {
    EXPECT_EQ(step.command[0], "/opt/bin/fedrun");
    EXPECT_EQ(value_after(step, "--bind"), "core");
    EXPECT_EQ(value_after(step, "-np"), std::to_string(step.ranks));
    EXPECT_EQ(value_after(step, "--device"), "cpu");
    EXPECT_EQ(value_after(step, "--threads"), "2") << "the same, whatever the number of ranks";
    EXPECT_EQ(value_after(step, "--json"), "-");
    EXPECT_EQ(step.hosts, 1);
  }
}

TEST(SuitePlan, HasEverySection) {
  const Plan plan = plan_of({}, site_of({"a", "a", "b", "b"}));
  for (const SectionName& known : section_names) {
    if (known.section == Section::overlap) continue;  // is in what training measures
    EXPECT_TRUE(std::ranges::any_of(plan.steps, [&](const Step& step) { return step.section == known.section; }))
        << known.name;
  }
}

TEST(SuitePlan, MeasuresOverlapByItselfWhereTrainingIsNotAskedFor) {
  const Plan plan = plan_of({"--only", "overlap", "--models", "mlp"}, site_of({"a", "a"}));
  ASSERT_EQ(plan.steps.size(), 1);
  EXPECT_EQ(plan.steps[0].section, Section::overlap);
  EXPECT_EQ(value_after(plan.steps[0], "--systems"), "fedrun");
}

TEST(SuitePlan, ScalesOverRanksAndWholeHosts) {
  EXPECT_THAT(rank_counts(site_of({"a", "a", "a", "b", "b", "b"}), false), ElementsAre(1, 2, 3, 4, 6));
  EXPECT_THAT(rank_counts(site_of({"a", "a", "a", "b", "b", "b"}), true), ElementsAre(1, 6));
  EXPECT_THAT(rank_counts(site_of({"a"}), false), ElementsAre(1));
  const Plan plan = plan_of({"--only", "scaling", "--models", "convnet"}, site_of({"a", "a", "a", "b", "b", "b"}));
  for (const Step& step : plan.steps) {
    EXPECT_EQ(step.hosts, step.ranks > 3 ? 2 : 1) << step.name;
    if (step.notes.empty()) continue;  // a collective
    const int weak = step.notes.at("weak_batch_size");
    const int strong = step.notes.at("strong_batch_size_of_all");
    EXPECT_EQ(strong % step.ranks, 0);
    EXPECT_EQ(value_after(step, "--batch-size"),
              strong / step.ranks == weak ? std::to_string(weak)
                                          : std::to_string(weak) + "," + std::to_string(strong / step.ranks));
  }
}

TEST(SuitePlan, DividesRanksIntoEqualGroups) {
  EXPECT_THAT(group_counts(1), ElementsAre(1));
  EXPECT_THAT(group_counts(4), ElementsAre(1, 2, 4));
  EXPECT_THAT(group_counts(6), ElementsAre(1, 2, 6));
  EXPECT_THAT(group_counts(3), ElementsAre(1, 3));
}

TEST(SuitePlan, SaysWhatItLeavesOut) {
  EXPECT_THAT(skipped(plan_of({}, site_of({"a", "a"}))),
              testing::AllOf(Contains("GPUs"), Contains("several hosts"), Contains("bytes saved by compression"),
                             Contains("precision f16")));
  EXPECT_THAT(skipped(plan_of({}, site_of({"a"}))), testing::AllOf(Contains("collectives"), Contains("scaling")));
  Site modern = site_of({"a", "a"});
  EXPECT_THAT(skipped(plan_of({}, modern)), Contains("precisions: mlp"));
  modern.computes_bf16 = true;
  EXPECT_THAT(skipped(plan_of({}, modern)), Not(Contains("precisions: mlp")));
  const Plan two_hosts = plan_of({"--only", "compression"}, site_of({"a", "b"}));
  EXPECT_THAT(skipped(two_hosts), Not(Contains("bytes saved by compression")));
  EXPECT_EQ(value_after(two_hosts.steps[1], "--wire"), "f16");
}

TEST(SuitePlan, LeavesTrainingOutOfABuildWithoutTorch) {
  const Programs programs{"/opt/bin", [](const std::string& program) { return program == "allreduce_bench"; }};
  const Plan plan = plan_of({}, site_of({"a", "a"}), programs);
  EXPECT_THAT(skipped(plan),
              testing::AllOf(Contains("what training_bench measures"), Contains("what fedavg_bench measures")));
  for (const Step& step : plan.steps) EXPECT_THAT(step.command, Contains("/opt/bin/allreduce_bench"));
  EXPECT_THAT(plan_of({"--only", "training"}, site_of({"a"}), programs).steps, IsEmpty());
}

TEST(SuitePlan, UsesGpusForAllOfIt) {
  const Plan plan = plan_of({}, site_of({"a", "a"}, true));
  for (const Step& step : plan.steps) {
    EXPECT_EQ(value_after(step, "--device"), "cuda") << step.name;
    EXPECT_EQ(value_after(step, "--threads"), "") << "each rank has its share of the cores";
    EXPECT_EQ(value_after(step, "--precision"), step.section == Section::precision ? "f32,f16,bf16" : "");
  }
  EXPECT_THAT(skipped(plan), Not(Contains("GPUs")));
}

}  // namespace
}  // namespace fedrun::bench::suite
