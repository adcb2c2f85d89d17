// Made-up classification tasks that differ from client to client by two dials: synthetic(α, β) of FedProx.
#pragma once

#include <fedrun/data/feature_set.h>

#include <cstddef>
#include <cstdint>

namespace fedrun::data {

struct SyntheticClientsOptions {
  double alpha = 1;  // how much the clients' models differ
  double beta = 1;   // how much their inputs differ
  std::size_t clients = 30;
  std::uint64_t seed = 0;
};

// Client k has 50 samples and a lognormal(4, 2) number more, of 60 features x ~ N(v_k, Σ), Σ_jj = j^-1.2, and 10
// classes y = argmax(W_k x + b_k). The elements of W_k and b_k are N(u_k, 1), u_k ~ N(0, α²); those of v_k are N(B_k,
// 1), B_k ~ N(0, β²). No client's data depends on how many others there are. To be cut by split_each_client.
FeatureSet make_synthetic_clients(const SyntheticClientsOptions& options = {});

}  // namespace fedrun::data
