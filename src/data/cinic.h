// Reads CINIC-10, which is a folder of PNG files for each class: CIFAR-10's images and downscaled ones of ImageNet.
#pragma once

#include <fedrun/data/image_set.h>

#include <filesystem>

namespace fedrun::data {

enum class CinicSplit { train, valid, test };  // of 90,000 images each

// Takes all files *.png of train/airplane to test/truck, in the order of class and name, which is the order that
// FedML's partitions count in. Throws UsageError that lists the folders in which there is none; train and test are
// looked for together, because who asks for one will ask for the other. Throws UsageError also for an image that is
// damaged or not of 32 × 32 pixels. 90,000 images take 276 MB.
ImageSet load_cinic10(const std::filesystem::path& directory, CinicSplit split);

}  // namespace fedrun::data
