#include <fedrun/models/convnet.h>
#include <gtest/gtest.h>

#include "parameter_count.h"

namespace fedrun::models {
namespace {

TEST(ConvNet, HasTheLayersThatItsNameStandsFor) {
  ConvNet model;
  // conv 1→16 (416), BatchNorm (32), conv 16→32 (12,832), BatchNorm (64), linear 1568→10 (15,690).
  EXPECT_EQ(parameter_count(*model), 416 + 32 + 12'832 + 64 + 15'690);
  EXPECT_EQ(parameter_count(*model), 29'034);
}

TEST(ConvNet, MapsImagesToClasses) {
  ConvNet model(7);
  EXPECT_EQ(model->forward(torch::zeros({3, 1, 28, 28})).sizes(), (std::vector<int64_t>{3, 7}));
}

}  // namespace
}  // namespace fedrun::models
