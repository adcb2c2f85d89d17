// Checks what a partition promises: who has what, that files keep it, and what is said about files that do not.
#include <fedrun/data/partition.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "idx_files.h"
#include "support/error_text.h"

namespace fedrun::data {
namespace {

using test::usage_error_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Samples = std::vector<SampleIndex>;

Partition partition_of(const std::vector<Samples>& lists) {
  Partition partition;
  for (const Samples& list : lists) partition.append(list);
  return partition;
}

class PartitionFile : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& text) const {
    return directory_.write("map.txt", Bytes(text.begin(), text.end()));
  }
  std::string error_of(const std::string& text) const {
    return usage_error_of([&] { read_partition(write(text), 10); });
  }

  TemporaryDirectory directory_;
};

TEST(Partition, KnowsItsClients) {
  const Partition partition = partition_of({{3, 1, 4}, {}, {1, 5}});
  EXPECT_EQ(partition.clients(), 3u);
  EXPECT_EQ(partition.samples(), 5u);
  EXPECT_THAT(partition.samples_of(0), ElementsAre(3, 1, 4));
  EXPECT_THAT(partition.samples_of(1), IsEmpty());
  EXPECT_THAT(partition.samples_of(2), ElementsAre(1, 5));
  EXPECT_EQ(usage_error_of([&] { partition.samples_of(3); }), "client 3 was asked for, but the partition has 3");
}

TEST(Partition, HashesContentAndBorders) {
  EXPECT_EQ(partition_of({{1, 2}, {3}}).hash(), partition_of({{1, 2}, {3}}).hash());
  EXPECT_NE(partition_of({{1, 2}, {3}}).hash(), partition_of({{1}, {2, 3}}).hash());
  EXPECT_NE(partition_of({{1, 2}, {3}}).hash(), partition_of({{2, 1}, {3}}).hash());
  EXPECT_NE(partition_of({{}}).hash(), partition_of({{}, {}}).hash());
  EXPECT_EQ(Partition().hash(), 0xcbf29ce484222325u) << "the hash of nothing, as FNV-1a defines it";
}

TEST(Partition, SplitsEachClient) {
  const SplitPartition split = split_each_client(partition_of({{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {11}}), 0.9);
  EXPECT_THAT(split.train.samples_of(0), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(split.test.samples_of(0), ElementsAre(9, 10));
  EXPECT_THAT(split.train.samples_of(1), IsEmpty());
  EXPECT_THAT(split.test.samples_of(1), ElementsAre(11));
  EXPECT_THAT(usage_error_of([] { split_each_client({}, 1.5); }), HasSubstr("choose from 0 to 1"));
}

TEST_F(PartitionFile, KeepsAPartition) {
  const Partition partition = partition_of({{3, 1, 4}, {}, {9}});
  const auto path = directory_.path() / "map.json";
  write_partition(partition, path);
  EXPECT_EQ(read_partition(path, 10), partition);
}

TEST_F(PartitionFile, ReadsWhatFedmlWrites) {
  const Partition partition = read_partition(write("{\n1: [\n7, 8\n],\n0: [\n 0,  2,\n 5],\n}\n"), 10);
  EXPECT_EQ(partition, partition_of({{0, 2, 5}, {7, 8}}));
}

TEST_F(PartitionFile, SaysWhereItGoesWrong) {
  EXPECT_THAT(error_of("{\n\"0\": [1,\n x]}"),
              AllOf(HasSubstr("map.txt, line 3: "), HasSubstr("expected the number of a sample but found 'x'"),
                    HasSubstr("a partition looks like")));
  EXPECT_THAT(error_of("{\"0\": [10]}"), HasSubstr("sample 10 was asked for, but the data set has 10"));
  EXPECT_THAT(error_of("{\"0\": [-1]}"), HasSubstr("found '-'"));
  EXPECT_THAT(error_of("{\"0\": [1], \"0\": [2]}"), HasSubstr("client 0 comes a second time"));
  EXPECT_THAT(error_of("{\"0\": [1], \"2\": [2]}"), HasSubstr("has no client 1, but a client 2"));
  EXPECT_THAT(error_of("{\"0\": [1"), HasSubstr("found the end"));
  EXPECT_THAT(error_of("[1]"), HasSubstr("expected '{' but found '['"));
  EXPECT_THAT(error_of("{\"0\": [1]} 5"), HasSubstr("something follows"));
  EXPECT_THAT(error_of("{}"), HasSubstr("has no clients"));
  EXPECT_THAT(error_of(""), HasSubstr("line 1"));
  EXPECT_THAT(usage_error_of([&] { read_partition(directory_.path() / "none", 1); }), HasSubstr("No such file"));
  EXPECT_THAT(test::text_of<BackendError>([&] { write_partition({}, directory_.path() / "no" / "map"); }),
              HasSubstr("cannot write the partition to"));
}

}  // namespace
}  // namespace fedrun::data
