#include <fedrun/collectives/adasum.h>
#include <fedrun/collectives/cast_kernels.h>
#include <fedrun/collectives/equal_parts.h>
#include <fedrun/collectives/reduce_kernels.h>
#include <fedrun/collectives/work_chain.h>
#include <fmt/format.h>

#include <array>
#include <numeric>

namespace fedrun {
namespace {

template <typename T>
double product_of(const T* a, const T* b, std::size_t count) {
  std::array<double, 8> sums{};  // independent, so that the compiler may use wide registers
  std::size_t i = 0;
  for (; i + sums.size() <= count; i += sums.size()) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) {
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
    }
  }
  for (; i < count; ++i) sums[0] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

double product_of(ConstBuffer a, ConstBuffer b) {
  if (a.type == DataType::f64) {
    return product_of(static_cast<const double*>(a.data), static_cast<const double*>(b.data), a.count);
  }
  if (a.type == DataType::f32) {
    return product_of(static_cast<const float*>(a.data), static_cast<const float*>(b.data), a.count);
  }
  std::vector<float> wide_a(a.count);
  std::vector<float> wide_b(b.count);
  cast(a, as_buffer(wide_a));
  cast(b, as_buffer(wide_b));
  return product_of(wide_a.data(), wide_b.data(), a.count);
}

// Each rank receives its part of every vector, which is what the engine does for an allreduce with op adasum; the
// products of the parts are added up; each rank combines its part; the parts are gathered.
class Adasum : public std::enable_shared_from_this<Adasum> {
 public:
  Adasum(Backend& backend, const Operation& operation)
      : backend_(backend),
        input_(operation.input),
        output_(operation.output),
        scale_(operation.reduction.prescale * operation.reduction.postscale),
        ranks_(static_cast<std::size_t>(backend.size())),
        parts_(equal_parts(input_.count, ranks_)),
        own_count_(parts_[static_cast<std::size_t>(backend.rank())]),
        vectors_(ranks_ * own_count_ * size_of(input_.type)),
        combined_(own_count_ * size_of(input_.type)) {}

  std::unique_ptr<Work> start(Operation operation) {
    operation.output = {vectors_.data(), ranks_ * own_count_, input_.type};
    steps_->push_back(backend_.start(std::move(operation), [self = shared_from_this()](std::uint64_t position) {
      self->add_products(fmt::format("{}adasum {}", internal_name, position));
    }));
    return std::make_unique<WorkChain>(steps_);
  }

 private:
  ConstBuffer vector(std::size_t rank) const {
    return {vectors_.data() + rank * own_count_ * size_of(input_.type), own_count_, input_.type};
  }

  void add_products(const std::string& id) {
    products_.resize(ranks_ * ranks_);
    for (std::size_t i = 0; i < ranks_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        products_[i * ranks_ + j] = products_[j * ranks_ + i] = product_of(vector(i), vector(j));
      }
    }
    Operation addition{.kind = Collective::allreduce,
                       .name = id + ".products",
                       .input = as_const_buffer(products_),
                       .output = as_buffer(products_),
                       .reduction = {.op = ReduceOp::sum}};
    steps_->push_back(
        backend_.start(std::move(addition), [self = shared_from_this(), id](std::uint64_t) { self->gather(id); }));
  }

  void gather(const std::string& id) {
    const std::vector<double> coefficients = adasum_coefficients(products_, static_cast<int>(ranks_));
    std::vector<const void*> inputs;
    for (std::size_t rank = 0; rank < ranks_; ++rank) inputs.push_back(vector(rank).data);
    void* const output = combined_.data();
    reduce({.inputs = inputs,
            .outputs = {&output, 1},
            .count = own_count_,
            .type = input_.type,
            .op = ReduceOp::sum,
            .weights = coefficients,
            .factor = scale_});
    Operation gathering{.kind = Collective::allgather,
                        .name = id + ".gather",
                        .input = {combined_.data(), own_count_, input_.type},
                        .output = output_,
                        .counts = parts_};
    // Keeps this, and with it the memory, until the end.
    steps_->push_back(backend_.start(std::move(gathering), [self = shared_from_this()](std::uint64_t) {}));
  }

  Backend& backend_;
  ConstBuffer input_;
  Buffer output_;
  double scale_;
  std::size_t ranks_;
  std::vector<std::size_t> parts_;  // by rank
  std::size_t own_count_;
  std::vector<std::byte> vectors_;   // this rank's part of every rank's vector
  std::vector<std::byte> combined_;  // and of the result
  std::vector<double> products_;
  WorkChain::Steps steps_ = std::make_shared<WorkChain::Steps::element_type>();
};

}  // namespace

std::vector<double> adasum_coefficients(std::span<const double> products, int ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  using Combination = std::vector<double>;  // the coefficients of a vector that is made of the ranks' vectors
  const auto product = [&](const Combination& a, const Combination& b) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < count; ++j) sum += a[i] * b[j] * products[i * count + j];
    }
    return sum;
  };
  std::vector<Combination> level;
  for (std::size_t i = 0; i < count; ++i) level.emplace_back(count, 0.0)[i] = 1;
  while (level.size() > 1) {
    std::vector<Combination> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) {
      const Combination& a = level[i];
      const Combination& b = level[i + 1];
      const double in_common = product(a, b);
      const auto share = [&](double square) { return square > 0 ? 1 - in_common / (2 * square) : 1; };
      const double share_of_a = share(product(a, a));
      const double share_of_b = share(product(b, b));
      Combination& both = next.emplace_back(count);
      for (std::size_t k = 0; k < count; ++k) both[k] = share_of_a * a[k] + share_of_b * b[k];
    }
    if (level.size() % 2 == 1) next.push_back(level.back());
    level = std::move(next);
  }
  return level.front();
}

std::unique_ptr<Work> start_adasum(Backend& backend, const Operation& operation) {
  // shared: the steps under way keep it, also when the user has dropped the Work
  return std::make_shared<Adasum>(backend, operation)->start(operation);
}

}  // namespace fedrun
