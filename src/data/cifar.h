// Reads CIFAR-10 and CIFAR-100 in their binary form: a label or two, then 3 × 32 × 32 bytes, image after image.
#pragma once

#include <fedrun/data/image_set.h>

#include <filesystem>

namespace fedrun::data {

enum class CifarKind { cifar10, cifar100 };  // cifar100 has a coarse label before the fine one, which is the one used
enum class CifarSplit { train, test };

// Takes the files under the names that they have in the archives, plain or gzip: data_batch_1.bin to data_batch_5.bin
// and test_batch.bin, or train.bin and test.bin. Throws UsageError that lists what was looked for when something is
// missing.
ImageSet load_cifar(const std::filesystem::path& directory, CifarKind kind, CifarSplit split);

// Adds the images of one file; throws UsageError when it is missing, damaged or of another kind.
void append_cifar_file(const std::filesystem::path& path, CifarKind kind, ImageSet& set);

// What append_cifar_file adds to: no images yet.
ImageSet empty_cifar_set(CifarKind kind);

}  // namespace fedrun::data
