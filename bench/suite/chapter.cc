#include "chapter.h"

namespace fedrun::bench::suite {

std::vector<Chapter> make_chapters(const Rows& rows) {
  std::vector<Chapter> chapters;
  for (auto* make : {collectives_chapter, training_chapter, overlap_chapter, batch_chapter, precision_chapter,
                     compression_chapter, scaling_chapter, fedavg_chapter}) {
    Chapter chapter = make(rows);
    if (!chapter.figures.empty()) chapters.push_back(std::move(chapter));
  }
  return chapters;
}

}  // namespace fedrun::bench::suite
