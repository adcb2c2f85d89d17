// Reads MNIST, or a relative with the same files such as Fashion-MNIST, from a directory.
#pragma once

#include <fedrun/data/image_set.h>

#include <filesystem>

namespace fedrun::data {

enum class MnistSplit { train, test };

// Takes the files under the names they have on the web, plain or gzip: train-images-idx3-ubyte[.gz] and so on, also
// with a dot in place of the second hyphen. Throws UsageError that lists what was looked for when something is missing.
ImageSet load_mnist(const std::filesystem::path& directory, MnistSplit split);

}  // namespace fedrun::data
