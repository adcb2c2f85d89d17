// The small models on which the federated literature reports its results, layer by layer as it describes them.
#pragma once

#include <fedrun/models/chain.h>

#include <cstdint>

namespace fedrun::models {

// Images are (N, channels, height, width), outputs (N, classes) and not normalised, unless something else is said.

// sigmoid(Linear(inputs, classes)) on samples of any shape: cross entropy is taken of the sigmoid, which is what the
// published accuracy of logistic regression on MNIST comes from. 7,850 parameters for MNIST.
Chain make_logistic_regression(std::int64_t inputs = 784, std::int64_t classes = 10);

// McMahan's CNN for 28×28 grey images: two 5×5 convolutions of 32 and 64 channels, each with ReLU and 2×2 max-pooling,
// then 512 units. 1,663,370 parameters for ten classes.
Chain make_mcmahan_cnn(std::int64_t classes = 10);

// The CNN of "Adaptive Federated Optimization" for 28×28 grey images: two 3×3 convolutions of 32 and 64 channels
// without padding, one max-pooling, dropout, 128 units. 1,199,882 parameters for ten classes.
Chain make_dropout_cnn(std::int64_t classes = 10);

// Two 5×5 convolutions of 6 and 16 channels without padding, then 120 and 84 units, for 28×28 grey images. 44,426
// parameters for ten classes.
Chain make_simple_cnn(std::int64_t classes = 10);

// MobileNet, version 1, with a stem of stride 1 for 32×32 images: thirteen pairs of a depthwise 3×3 and a 1×1
// convolution. 3,217,226 parameters for ten classes.
Chain make_mobilenet(std::int64_t classes = 10);

}  // namespace fedrun::models
