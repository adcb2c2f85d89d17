// The recurrent network that guesses the next character of Shakespeare.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace fedrun::models {

// An embedding of 8 dimensions, two layers of LSTM with 256 units, and a linear layer on the last state: McMahan's
// model in FedML's form. 822,570 parameters for 90 characters.
class CharacterRnnImpl : public torch::nn::Module {
 public:
  explicit CharacterRnnImpl(std::int64_t characters = 90);

  // (N, length) numbers of characters, of any type → (N, characters), not normalised.
  torch::Tensor forward(const torch::Tensor& texts);

 private:
  torch::nn::Embedding embedding_;
  torch::nn::LSTM lstm_;
  torch::nn::Linear classifier_;
};

TORCH_MODULE(CharacterRnn);

}  // namespace fedrun::models
