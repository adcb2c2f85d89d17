#include <fedrun/collectives/equal_parts.h>
#include <fedrun/collectives/streams.h>

#include <cmath>

namespace fedrun {
namespace {

// Rank r gets the r-th part of every rank's vector, one after the other; adasum.cc goes on from there.
std::vector<Stream> adasum_streams(std::uint64_t count, int ranks) {
  std::vector<Stream> streams;
  std::uint64_t first_in = 0;
  const std::vector<std::size_t> parts = equal_parts(count, static_cast<std::size_t>(ranks));
  for (int to = 0; to < ranks; ++to) {
    const std::uint64_t part = parts[static_cast<std::size_t>(to)];
    for (int from = 0; from < ranks; ++from) {
      streams.push_back({from, to, first_in, static_cast<std::uint64_t>(from) * part, part});
    }
    first_in += part;
  }
  return streams;
}

// Before they are added up, not after: who scales down fears that the sum overflows.
void scale_inputs(double prescale, ReducePlan& plan) {
  if (prescale == 1) return;
  if (plan.weights.empty()) plan.weights.assign(plan.sources.size(), 1);
  for (double& weight : plan.weights) weight *= prescale;
}

}  // namespace

int first_taking_part(const Board& board, std::uint64_t position, int ranks) {
  int rank = 0;
  while (rank + 1 < ranks && board.call(position, rank).terms.has_joined) ++rank;
  return rank;
}

void list_streams(const Board& board, std::uint64_t position, int ranks, std::vector<Stream>& streams) {
  const int speaker = first_taking_part(board, position, ranks);
  const CallTerms& terms = board.call(position, speaker).terms;
  streams.clear();
  switch (terms.kind) {
    case Collective::allreduce:
      if (terms.op == ReduceOp::adasum) {
        streams = adasum_streams(terms.count, ranks);
      } else {
        streams.push_back({.count = terms.count});
      }
      break;
    case Collective::broadcast:
      streams.push_back({.from = terms.root, .count = terms.count});
      break;
    case Collective::reduce_scatter:
      for (std::uint64_t to = 0, first = 0; to < static_cast<std::uint64_t>(ranks); ++to) {
        const std::uint64_t count = board.counts(position, speaker)[to];
        streams.push_back({.to = static_cast<int>(to), .first_in = first, .count = count});
        first += count;
      }
      break;
    case Collective::allgather:
    case Collective::gather: {
      const int to = terms.kind == Collective::gather ? terms.root : Stream::everyone;
      std::uint64_t first = 0;
      for (int from = 0; from < ranks; ++from) {
        const std::uint64_t count = board.call(position, from).terms.count;
        streams.push_back({.from = from, .to = to, .first_out = first, .count = count});
        first += count;
      }
      break;
    }
    case Collective::alltoall: {
      std::vector<std::uint64_t> first_out(static_cast<std::size_t>(ranks), 0);
      for (int from = 0; from < ranks; ++from) {
        std::uint64_t first_in = 0;
        for (int to = 0; to < ranks; ++to) {
          const std::uint64_t count = board.sent(position, from, to);
          std::uint64_t& first = first_out[static_cast<std::size_t>(to)];
          streams.push_back({from, to, first_in, first, count});
          first_in += count;
          first += count;
        }
      }
      break;
    }
    case Collective::barrier:
    case Collective::join:
      break;
  }
  std::erase_if(streams, [](const Stream& stream) { return stream.count == 0; });
}

void plan_reduction(const Board& board, std::uint64_t position, int ranks, ReducePlan& plan) {
  const CallTerms& terms = board.call(position, first_taking_part(board, position, ranks)).terms;
  plan.sources.clear();
  plan.weights.clear();
  plan.op = terms.op;
  plan.postscale = terms.postscale;
  plan.divisor = 1;
  double total = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const CallTerms& theirs = board.call(position, rank).terms;
    // A rank that counts for nothing is left out: 0 times infinity would be NaN.
    if (theirs.has_joined || theirs.weight == 0) continue;
    plan.sources.push_back(rank);
    if (terms.is_weighted) plan.weights.push_back(theirs.weight);
    total += theirs.weight;
  }
  if (terms.op == ReduceOp::average && total != 0) plan.divisor = total;
  if (terms.op == ReduceOp::average || terms.op == ReduceOp::sum) return scale_inputs(terms.prescale, plan);
  // These are not linear: scale the result instead.
  if (terms.prescale < 0 && terms.op == ReduceOp::min) plan.op = ReduceOp::max;
  if (terms.prescale < 0 && terms.op == ReduceOp::max) plan.op = ReduceOp::min;
  const double power = terms.op == ReduceOp::product ? static_cast<double>(plan.sources.size()) : 1;
  plan.postscale *= std::pow(terms.prescale, power);
}

}  // namespace fedrun
