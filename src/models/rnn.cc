#include <fedrun/models/rnn.h>

#include <tuple>

namespace fedrun::models {
namespace {

constexpr std::int64_t embedding_dimensions = 8;
constexpr std::int64_t units = 256;

}  // namespace

CharacterRnnImpl::CharacterRnnImpl(std::int64_t characters)
    : embedding_(register_module(
          "embedding",
          torch::nn::Embedding(torch::nn::EmbeddingOptions(characters, embedding_dimensions).padding_idx(0)))),
      lstm_(register_module(
          "lstm",
          torch::nn::LSTM(torch::nn::LSTMOptions(embedding_dimensions, units).num_layers(2).batch_first(true)))),
      classifier_(register_module("classifier", torch::nn::Linear(units, characters))) {}

torch::Tensor CharacterRnnImpl::forward(const torch::Tensor& texts) {
  const torch::Tensor states = std::get<0>(lstm_->forward(embedding_->forward(texts.to(torch::kInt64))));
  return classifier_->forward(states.select(1, -1));
}

}  // namespace fedrun::models
