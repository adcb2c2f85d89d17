// The parts of the suite, which users choose by name and which are the chapters of the page.
#pragma once

#include <array>
#include <string_view>

namespace fedrun::bench::suite {

enum class Section { collectives, training, overlap, batch, precision, compression, scaling, fedavg };

struct SectionName {
  Section section;
  std::string_view name;   // as in --only
  std::string_view title;  // on the page
};

constexpr std::array section_names = {
    SectionName{Section::collectives, "collectives", "Collectives by size"},
    SectionName{Section::training, "training", "Training throughput"},
    SectionName{Section::overlap, "overlap", "Communication behind backward"},
    SectionName{Section::batch, "batch", "Batch size"},
    SectionName{Section::precision, "precision", "Precision of the model"},
    SectionName{Section::compression, "compression", "Compression of gradients"},
    SectionName{Section::scaling, "scaling", "Strong and weak scaling"},
    SectionName{Section::fedavg, "fedavg", "Federated averaging with groups of ranks"},
};

constexpr std::string_view name_of(Section section) { return section_names[static_cast<std::size_t>(section)].name; }
constexpr std::string_view title_of(Section section) { return section_names[static_cast<std::size_t>(section)].title; }

}  // namespace fedrun::bench::suite
