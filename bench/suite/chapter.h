// A part of the page: what was measured, as plots with a table under them.
#pragma once

#include <string>
#include <vector>

#include "rows.h"

namespace fedrun::bench::suite {

struct Figure {
  std::string title{};
  std::string svg{};
  bool is_small = false;
};

struct Table {
  std::vector<std::string> head{};
  std::vector<std::vector<std::string>> rows{};
};

struct Chapter {
  Section section = Section::collectives;
  std::string text{};  // how to read it
  std::vector<Figure> figures{};
  std::vector<Table> tables{};
};

// Only those for which there are rows, in the order of the sections.
std::vector<Chapter> make_chapters(const Rows& rows);

// One for each section; without figures where there are no rows.
Chapter collectives_chapter(const Rows& rows);
Chapter training_chapter(const Rows& rows);
Chapter overlap_chapter(const Rows& rows);
Chapter batch_chapter(const Rows& rows);
Chapter precision_chapter(const Rows& rows);
Chapter compression_chapter(const Rows& rows);
Chapter scaling_chapter(const Rows& rows);
Chapter fedavg_chapter(const Rows& rows);

}  // namespace fedrun::bench::suite
