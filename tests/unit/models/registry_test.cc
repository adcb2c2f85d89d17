#include <fedrun/models/registry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parameter_count.h"
#include "support/error_text.h"

namespace fedrun::models {
namespace {

using test::usage_error_of;
using testing::ElementsAre;

using Shape = std::vector<int64_t>;

TEST(Registry, ListsItsModels) {
  EXPECT_THAT(model_names(),
              ElementsAre("convnet", "mlp", "resnet18", "resnet50", "resnet18_imagenet", "resnet50_imagenet"));
}

TEST(Registry, MakesEveryModelThatItLists) {
  const torch::NoGradGuard no_grad;
  for (const std::string& name : model_names()) {
    SCOPED_TRACE(name);
    Model model = make_model(name);
    Shape batch = {2};
    batch.insert(batch.end(), model.sample_shape().begin(), model.sample_shape().end());
    EXPECT_EQ(model.forward(torch::zeros(batch)).sizes(), (Shape{2, model.classes()}));
    EXPECT_EQ(model.classes(), name.ends_with("imagenet") ? 1000 : 10);
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
  EXPECT_EQ(parameter_count(*make_model("resnet18")), 11'173'962);
  EXPECT_EQ(parameter_count(*make_model("resnet50")), 23'520'842);
  EXPECT_EQ(parameter_count(*make_model("resnet18_imagenet")), 11'689'512);
  EXPECT_EQ(parameter_count(*make_model("resnet50_imagenet")), 25'557'032);
}

TEST(Registry, TakesTheNumberOfClasses) {
  for (const char* name : {"convnet", "mlp", "resnet18"}) {
    Model model = make_model(name, {.classes = 3});
    EXPECT_EQ(model.classes(), 3);
    EXPECT_EQ(model->parameters().back().sizes(), (Shape{3})) << name;
  }
}

TEST(Registry, NamesWhatItHasInstead) {
  EXPECT_EQ(usage_error_of([] { make_model("resnet"); }),
            "there is no model 'resnet': choose one of convnet, mlp, resnet18, resnet50, resnet18_imagenet, "
            "resnet50_imagenet");
  EXPECT_EQ(usage_error_of([] { make_model("mlp", {.classes = 0}); }), "model mlp: 0 classes: give 1 or more");
}

}  // namespace
}  // namespace fedrun::models
