// Writes weights in the safetensors format, which Python and many other programs read without running anybody's code.
#pragma once

#include <fedrun/train/broadcast.h>
#include <torch/torch.h>

#include <filesystem>

namespace fedrun {

// The tensors may have any strides and lie anywhere. The file appears whole or not at all. Throws UsageError for names
// that come twice and types that the format lacks, BackendError when the file cannot be written.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors);

// The same for a module's parameters and buffers.
void write_safetensors(const std::filesystem::path& path, const torch::nn::Module& module);

}  // namespace fedrun
