#include <fedrun/models/registry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "parameter_count.h"
#include "support/error_text.h"

namespace fedrun::models {
namespace {

using test::usage_error_of;
using testing::ElementsAre;

using Shape = std::vector<int64_t>;

TEST(Registry, ListsItsModels) {
  EXPECT_THAT(model_names(),
              ElementsAre("convnet", "mlp", "lr", "cnn", "cnn_dropout", "simple_cnn", "mobilenet", "rnn", "resnet18",
                          "resnet18_gn", "resnet50", "resnet56", "resnet18_imagenet", "resnet50_imagenet"));
}

TEST(Registry, MakesEveryModelThatItLists) {
  const torch::NoGradGuard no_grad;
  for (const std::string& name : model_names()) {
    SCOPED_TRACE(name);
    Model model = make_model(name);
    Shape batch = {2};
    batch.insert(batch.end(), model.sample_shape().begin(), model.sample_shape().end());
    EXPECT_EQ(model.forward(torch::zeros(batch)).sizes(), (Shape{2, model.classes()}));
    const std::map<std::string, int64_t> special = {
        {"rnn", 90}, {"resnet18_gn", 100}, {"resnet18_imagenet", 1000}, {"resnet50_imagenet", 1000}};
    EXPECT_EQ(model.classes(), special.contains(name) ? special.at(name) : 10);
  }
}

TEST(Registry, KnowsWhatModelsTake) {
  EXPECT_EQ(make_model("mlp").sample_shape(), (Shape{1, 28, 28}));
  EXPECT_EQ(make_model("resnet18").sample_shape(), (Shape{3, 32, 32}));
  EXPECT_EQ(make_model("resnet18_imagenet").sample_shape(), (Shape{3, 224, 224}));
}

TEST(Registry, GivesTheModelOfTheName) {
  EXPECT_EQ(parameter_count(*make_model("convnet")), 29'034);
  EXPECT_EQ(parameter_count(*make_model("mlp")), 20'037'642);
  EXPECT_EQ(parameter_count(*make_model("lr")), 7'850);
  EXPECT_EQ(parameter_count(*make_model("cnn")), 1'663'370);
  EXPECT_EQ(parameter_count(*make_model("cnn_dropout")), 1'199'882);
  EXPECT_EQ(parameter_count(*make_model("simple_cnn")), 44'426);
  EXPECT_EQ(parameter_count(*make_model("mobilenet")), 3'217'226);
  EXPECT_EQ(parameter_count(*make_model("rnn")), 822'570);
  EXPECT_EQ(parameter_count(*make_model("resnet18_gn")), 11'227'812);
  EXPECT_EQ(parameter_count(*make_model("resnet56")), 591'322);
  EXPECT_EQ(parameter_count(*make_model("resnet18")), 11'173'962);
  EXPECT_EQ(parameter_count(*make_model("resnet50")), 23'520'842);
  EXPECT_EQ(parameter_count(*make_model("resnet18_imagenet")), 11'689'512);
  EXPECT_EQ(parameter_count(*make_model("resnet50_imagenet")), 25'557'032);
}

TEST(Registry, TakesTheNumberOfClasses) {
  for (const char* name :
       {"convnet", "mlp", "lr", "cnn", "cnn_dropout", "simple_cnn", "mobilenet", "rnn", "resnet18"}) {
    Model model = make_model(name, {.classes = 3});
    EXPECT_EQ(model.classes(), 3);
    EXPECT_EQ(model->parameters().back().sizes(), (Shape{3})) << name;
  }
}

TEST(Registry, FitsModelsToSamples) {
  const torch::NoGradGuard no_grad;
  Model lr = make_model("lr", {.classes = 3, .sample_shape = Shape{60}});
  EXPECT_EQ(parameter_count(*lr), 183);
  EXPECT_EQ(lr.forward(torch::zeros({2, 60})).sizes(), (Shape{2, 3}));
  Model small = make_model("resnet56", {.sample_shape = Shape{3, 24, 24}});
  EXPECT_EQ(small.forward(torch::zeros({1, 3, 24, 24})).sizes(), (Shape{1, 10}));
  EXPECT_EQ(usage_error_of([] {
              make_model("cnn", {.sample_shape = Shape{3, 32, 32}});
            }),
            "model cnn takes samples of 1 × 28 × 28, not of 3 × 32 × 32: choose another model or data set");
  EXPECT_EQ(usage_error_of([] {
              make_model("mobilenet", {.sample_shape = Shape{1, 28, 28}});
            }),
            "model mobilenet takes samples of 3 × 32 × 32, not of 1 × 28 × 28: choose another model or data set");
}

TEST(Registry, NamesWhatItHasInstead) {
  EXPECT_EQ(usage_error_of([] { make_model("resnet"); }),
            "there is no model 'resnet': choose one of convnet, mlp, lr, cnn, cnn_dropout, simple_cnn, mobilenet, rnn, "
            "resnet18, resnet18_gn, resnet50, resnet56, resnet18_imagenet, resnet50_imagenet");
  EXPECT_EQ(usage_error_of([] { make_model("mlp", {.classes = 0}); }), "model mlp: 0 classes: give 1 or more");
}

}  // namespace
}  // namespace fedrun::models
