// Tensors as rows, and what ranks must tell each other before they can exchange rows.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/train/tensor_collectives.h>

#include <string_view>
#include <vector>

namespace fedrun {

// A tensor without dimensions becomes one row.
torch::Tensor as_rows(const torch::Tensor& tensor);

// An uninitialised tensor that has rows like those of `rows`.
torch::Tensor make_rows_like(const torch::Tensor& rows, std::int64_t count);

// The numbers of elements in that many rows.
std::vector<std::size_t> element_counts(const torch::Tensor& rows, const Splits& splits);

// The splits themselves, or equal ones if there are none; throws UsageError where they do not fit the rows.
Splits check_splits(const Communicator& group, std::string_view operation, const torch::Tensor& rows,
                    const Splits& splits);

// Collective: how many rows each rank brings, for each of the tensors. Throws MismatchError that shows two ranks'
// tensors where anything but the number of rows differs.
std::vector<Splits> exchange_row_counts(Communicator& group, std::string_view operation, const Tensors& tensors,
                                        std::string_view name);

// Collective: how many rows each rank sends to this one, which sends its own as the splits say.
Splits exchange_splits(Communicator& group, std::string_view operation, const torch::Tensor& rows, const Splits& splits,
                       std::string_view name);

}  // namespace fedrun
