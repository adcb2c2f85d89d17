#include <fedrun/collectives/disagreement.h>
#include <fedrun/collectives/grouped.h>
#include <fedrun/collectives/streams.h>
#include <fmt/format.h>

#include <cstring>

namespace fedrun {
namespace {

// Adasum takes several steps, and not all of them are reductions.
bool may_be_answered(const CallTerms& terms) {
  return (terms.kind == Collective::allreduce || terms.kind == Collective::reduce_scatter) &&
         terms.op != ReduceOp::adasum;
}

bool counts_may_differ(Collective kind) {
  return kind == Collective::allgather || kind == Collective::gather || kind == Collective::alltoall;
}

bool agree_in_words(const CallTerms& a, const CallTerms& b) {
  return a.kind == b.kind && a.type == b.type && a.wire == b.wire && a.op == b.op && a.root == b.root &&
         a.is_weighted == b.is_weighted && a.is_group == b.is_group && a.is_on_device == b.is_on_device &&
         a.prescale == b.prescale && a.postscale == b.postscale &&
         ((counts_may_differ(a.kind) && !a.is_group) || a.count == b.count);
}

std::string describe_reduction(const CallTerms& terms) {
  std::string text = fmt::format("{}{}", to_string(terms.op), terms.is_weighted ? ", weighted" : "");
  if (terms.prescale != 1) text += fmt::format(", prescale {}", terms.prescale);
  if (terms.postscale != 1) text += fmt::format(", postscale {}", terms.postscale);
  if (terms.wire != terms.type) text += fmt::format(", {} on the wire", to_string(terms.wire));
  return text;
}

std::string with_article(Collective kind) {
  const std::string_view name = to_string(kind);
  return fmt::format("{} {}", name.front() == 'a' ? "an" : "a", name);
}

// What may differ between calls that agree in words: the digest tells that something does, not what.
std::string_view possible_differences(Collective kind) {
  switch (kind) {
    case Collective::allreduce:
    case Collective::broadcast:
    case Collective::alltoall:
      return "their tensors differ in shape";
    case Collective::reduce_scatter:
      return "their tensors differ in shape, or they give different numbers of elements for the ranks";
    default:
      return "they give different numbers of elements for the ranks";
  }
}

// Names a pair of ranks that expect different numbers of elements from each other.
std::string find_different_splits(const Board& board, std::uint64_t position, int ranks) {
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      const std::uint64_t sent = board.sent(position, from, to);
      const std::uint64_t expected = board.expected(position, to, from);
      if (sent == expected) continue;
      return fmt::format(
          "operation {} of this group, an alltoall: rank {} sends {} elements to rank {}, which expects {}", position,
          from, sent, to, expected);
    }
  }
  return {};
}

// Of calls that differ in nothing but their digests.
std::string describe_difference(const Call& theirs, const Call& other, int rank, int other_rank) {
  if (!theirs.terms.is_group) return std::string(possible_differences(theirs.terms.kind));
  if (!theirs.terms.is_inlined) return "their buffers differ in type, size or shape";
  for (std::size_t i = 0; i < theirs.terms.count; ++i) {
    GroupMember a;
    GroupMember b;
    std::memcpy(&a, theirs.inline_data + i * sizeof a, sizeof a);
    std::memcpy(&b, other.inline_data + i * sizeof b, sizeof b);
    if (a.type == b.type && a.count == b.count) continue;
    return fmt::format("buffer {} has {} {} on rank {} and {} {} on rank {}", i, std::uint64_t{a.count},
                       to_string(static_cast<DataType>(a.type)), rank, std::uint64_t{b.count},
                       to_string(static_cast<DataType>(b.type)), other_rank);
  }
  return std::string(possible_differences(theirs.terms.kind));
}

}  // namespace

std::string describe_call(const Call& call) {
  const CallTerms& terms = call.terms;
  if (terms.has_joined) return "join";
  if (terms.is_group) {
    const std::string reduction = describe_reduction(terms);
    return fmt::format("a grouped {}{} of {} buffers{}", to_string(terms.kind),
                       terms.kind == Collective::allgather ? "" : fmt::format(" ({})", reduction), terms.count,
                       terms.is_named ? fmt::format(" named '{}'", call.name) : "");
  }
  std::string text = with_article(terms.kind);
  switch (terms.kind) {
    case Collective::allreduce:
    case Collective::reduce_scatter:
      text += fmt::format(" ({}) of {} {}", describe_reduction(terms), terms.count, to_string(terms.type));
      break;
    case Collective::broadcast:
      text += fmt::format(" of {} {} from rank {}", terms.count, to_string(terms.type), terms.root);
      break;
    case Collective::gather:
      text += fmt::format(" of {} at rank {}", to_string(terms.type), terms.root);
      break;
    case Collective::allgather:
    case Collective::alltoall:
      text += fmt::format(" of {}", to_string(terms.type));
      break;
    case Collective::barrier:
    case Collective::join:
      break;
  }
  if (terms.is_named) text += fmt::format(" named '{}'", call.name);
  if (terms.is_on_device) text += " on a GPU";
  return text;
}

std::string find_disagreement(const Board& board, std::uint64_t position, int ranks) {
  const int first = first_taking_part(board, position, ranks);
  const Call& theirs = board.call(position, first);
  for (int rank = 0; rank < ranks; ++rank) {
    const Call& other = board.call(position, rank);
    if (other.terms.has_joined) {
      if (may_be_answered(theirs.terms)) continue;
      return fmt::format(
          "operation {} of this group: rank {} calls {}, but rank {} has joined: until all ranks have, only reductions "
          "can be carried out",
          position, first, describe_call(theirs), rank);
    }
    if (!agree_in_words(theirs.terms, other.terms)) {
      return fmt::format("operation {} of this group: rank {} calls {}, rank {} calls {}", position, first,
                         describe_call(theirs), rank, describe_call(other));
    }
    if (theirs.terms.digest == other.terms.digest) continue;
    return fmt::format("operation {} of this group: ranks {} and {} call {}, but {}", position, first, rank,
                       describe_call(theirs), describe_difference(theirs, other, first, rank));
  }
  return theirs.terms.kind == Collective::alltoall ? find_different_splits(board, position, ranks) : std::string();
}

}  // namespace fedrun
