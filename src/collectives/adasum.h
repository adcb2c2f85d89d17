// Adasum: a sum that averages what the ranks' vectors have in common and adds what they do not.
#pragma once

#include <fedrun/collectives/backend.h>

#include <memory>
#include <span>
#include <vector>

namespace fedrun {

// Of two vectors it is
//
//     (1 - a·b / 2|a|²) a + (1 - a·b / 2|b|²) b
//
// which is their sum if they are orthogonal and their average if they are equal. More ranks are combined in pairs,
// level by level: ranks 0 and 1, 2 and 3, …, then the results; one without a partner waits for the next level.
//
// Whatever comes out is Σ cᵢ·xᵢ, and the coefficients depend on nothing but the products xᵢ·xⱼ, so the vectors need not
// be combined pair by pair: `products` holds xᵢ·xⱼ at [i · ranks + j].
std::vector<double> adasum_coefficients(std::span<const double> products, int ranks);

// Starts an allreduce with op adasum, whose arguments have been checked.
std::unique_ptr<Work> start_adasum(Backend& backend, const Operation& operation);

}  // namespace fedrun
