#include <fedrun/collectives/timeline_file.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace fedrun {
namespace {

using std::chrono::nanoseconds;

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

double microseconds(nanoseconds time) { return static_cast<double>(time.count()) / 1e3; }

class Writer {
 public:
  explicit Writer(const TimelineOfRank& own) : own_(own) {
    add(fmt::format(R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":{1}}}}})", own.rank,
                    quoted(fmt::format("rank {} on {}", own.rank, own.host))));
    add(fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}})", own.rank));
  }

  void add_event(const TimelineEvent& event) {
    const std::string_view kind = to_string(event.kind);
    const std::string title = event.name.empty() ? std::string(kind) : fmt::format("{} {}", kind, event.name);
    const std::size_t lane = lane_for(event);
    add_span(title, lane, event.submitted, event.finished,
             fmt::format(R"("bytes":{},"group":{},"position":{})", event.bytes, event.group, event.position));
    add_span("wait for ranks", lane, event.submitted, event.all_arrived, "");
    add_span("carry out", lane, event.all_arrived, event.finished, "");
  }

  const std::string& text() const { return text_; }

 private:
  // Operations under way at the same time are shown below each other, each in the first lane that is free.
  std::size_t lane_for(const TimelineEvent& event) {
    const auto free =
        std::ranges::find_if(free_from_, [&](TimelineEvent::Time time) { return time <= event.submitted; });
    const auto lane = static_cast<std::size_t>(free - free_from_.begin());
    if (free == free_from_.end()) free_from_.emplace_back();
    free_from_[lane] = event.finished;
    return lane;
  }

  void add_span(const std::string& title, std::size_t lane, TimelineEvent::Time from, TimelineEvent::Time to,
                const std::string& arguments) {
    const nanoseconds start = from.time_since_epoch() + own_.clock_offset;
    add(fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})", quoted(title),
                    own_.rank, lane, microseconds(start), microseconds(to - from), arguments));
  }

  void add(const std::string& object) {
    if (!text_.empty()) text_ += ",\n";
    text_ += object;
  }

  const TimelineOfRank& own_;
  std::vector<TimelineEvent::Time> free_from_;  // by lane
  std::string text_;
};

std::string objects_of(const TimelineOfRank& own) {
  std::vector<const TimelineEvent*> by_start;
  for (const TimelineEvent& event : own.events) by_start.push_back(&event);
  std::ranges::stable_sort(by_start, {}, &TimelineEvent::submitted);
  Writer writer(own);
  for (const TimelineEvent* event : by_start) writer.add_event(*event);
  return writer.text();
}

void write_file(const std::string& objects, const std::string& path) {
  std::ofstream file(path);
  file << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" << objects << "\n]}\n";
  file.close();
  if (!file) throw BackendError(fmt::format("cannot write the timeline to {}: {}", path, std::strerror(errno)));
}

std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

}  // namespace

// Nobody leaves a barrier before everybody has entered it. So this rank left after rank 0 entered, and rank 0 left
// after this rank entered: two bounds for the difference of their clocks, and many barriers make them tight.
nanoseconds find_clock_offset(Communicator& world) {
  constexpr std::size_t rounds = 32;
  std::vector<std::int64_t> entered(rounds);
  std::vector<std::int64_t> left(rounds);
  for (std::size_t i = 0; i < rounds; ++i) {
    entered[i] = now();
    world.barrier();
    left[i] = now();
  }
  std::vector<std::int64_t> entered_by_0 = entered;
  std::vector<std::int64_t> left_by_0 = left;
  world.broadcast(entered_by_0);
  world.broadcast(left_by_0);
  std::int64_t lower = entered_by_0[0] - left[0];
  std::int64_t upper = left_by_0[0] - entered[0];
  for (std::size_t i = 1; i < rounds; ++i) {
    lower = std::max(lower, entered_by_0[i] - left[i]);
    upper = std::min(upper, left_by_0[i] - entered[i]);
  }
  const bool may_be_one_clock = lower <= 0 && 0 <= upper;  // as it is on one host
  return nanoseconds(may_be_one_clock ? 0 : lower + (upper - lower) / 2);
}

void check_timeline_path(Communicator& world, const std::string& path) {
  std::int32_t problem = 0;
  if (world.rank() == 0 && !std::ofstream(path)) problem = errno;
  world.broadcast(std::span(&problem, 1));
  if (problem == 0) return;
  throw UsageError(
      fmt::format("rank 0 cannot write the timeline to '{}': {}; choose another file", path, std::strerror(problem)));
}

void write_timeline(Communicator& world, const TimelineOfRank& own, const std::string& path) {
  const std::string objects = objects_of(own);
  const std::vector<std::size_t> counts = world.gather_counts(objects.size());
  std::size_t total = 0;
  for (const std::size_t count : counts) total += count;
  std::string all(world.rank() == 0 ? total : 0, ' ');
  world.gather({objects.data(), objects.size(), DataType::u8}, {all.data(), all.size(), DataType::u8}, counts);
  if (world.rank() != 0) return;
  std::size_t end = 0;
  std::string joined;
  for (const std::size_t count : counts) {
    if (end != 0) joined += ",\n";
    joined.append(all, end, count);
    end += count;
  }
  write_file(joined, path);
}

void write_timeline_alone(const TimelineOfRank& own, const std::string& path) {
  write_file(objects_of(own), fmt::format("{}.rank{}", path, own.rank));
}

}  // namespace fedrun
