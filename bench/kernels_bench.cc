// Times the reduction and cast kernels by themselves, beside hand-written AVX2 loops that do nothing but the work.
#include <benchmark/benchmark.h>
#include <fedrun/collectives/cast_kernels.h>
#include <fedrun/collectives/memory.h>
#include <fedrun/collectives/reduce_kernels.h>

#include <cstring>
#include <numeric>
#include <vector>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace fedrun {
namespace {

// What one rank per buffer would bring, all zero: sums in place must not grow.
struct Buffers {
  Buffers(std::size_t number, std::size_t bytes) {
    for (std::size_t i = 0; i < number; ++i) {
      void* data = memories.emplace_back(allocate_on_heap(bytes)).data();
      std::memset(data, 0, bytes);
      outputs.push_back(data);
      inputs.push_back(data);
    }
  }
  std::vector<Memory> memories;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
};

// algbw of nccl-tests: the bytes of one buffer, however many there are.
void report(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

// Every buffer is input and output, as in an allreduce of allocated memory.
void reduce_in_place(benchmark::State& state, DataType type, ReduceTerms terms) {
  const auto ranks = static_cast<std::size_t>(state.range(0));
  const auto bytes = static_cast<std::size_t>(state.range(1));
  const Buffers buffers(ranks, bytes);
  terms.inputs = buffers.inputs;
  terms.outputs = buffers.outputs;
  terms.type = type;
  terms.count = bytes / size_of(type);
  std::vector<double> weights;
  if (!terms.weights.empty()) {
    weights.resize(ranks);
    std::iota(weights.begin(), weights.end(), 1000);
    terms.weights = weights;
  }
  for (auto _ : state) {
    reduce(terms);
    benchmark::ClobberMemory();
  }
  report(state, bytes);
}

constexpr double some_weight = 2;  // stands for one weight per rank, which reduce_in_place makes up

void cast_between(benchmark::State& state, DataType from, DataType to) {
  const auto count = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  const Buffers buffers(2, count * sizeof(float));
  for (auto _ : state) {
    cast({buffers.inputs[0], count, from}, {buffers.outputs[1], count, to});
    benchmark::ClobberMemory();
  }
  report(state, count * sizeof(float));
}

#ifdef __x86_64__
// The limit for two ranks. noinline, or the compiler would see that the loop is repeated.
__attribute__((target("avx2"), noinline)) void add_two_in_place(float* a, float* b, std::size_t count) {
  for (std::size_t i = 0; i + 32 <= count; i += 32) {
    const __m256 s0 = _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i));
    const __m256 s1 = _mm256_add_ps(_mm256_loadu_ps(a + i + 8), _mm256_loadu_ps(b + i + 8));
    const __m256 s2 = _mm256_add_ps(_mm256_loadu_ps(a + i + 16), _mm256_loadu_ps(b + i + 16));
    const __m256 s3 = _mm256_add_ps(_mm256_loadu_ps(a + i + 24), _mm256_loadu_ps(b + i + 24));
    for (float* to : {a + i, b + i}) {
      _mm256_storeu_ps(to, s0);
      _mm256_storeu_ps(to + 8, s1);
      _mm256_storeu_ps(to + 16, s2);
      _mm256_storeu_ps(to + 24, s3);
    }
  }
}

// The same with stores that bypass the caches.
__attribute__((target("avx2"), noinline)) void add_two_streaming(float* a, float* b, std::size_t count) {
  for (std::size_t i = 0; i + 32 <= count; i += 32) {
    const __m256 s0 = _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i));
    const __m256 s1 = _mm256_add_ps(_mm256_loadu_ps(a + i + 8), _mm256_loadu_ps(b + i + 8));
    const __m256 s2 = _mm256_add_ps(_mm256_loadu_ps(a + i + 16), _mm256_loadu_ps(b + i + 16));
    const __m256 s3 = _mm256_add_ps(_mm256_loadu_ps(a + i + 24), _mm256_loadu_ps(b + i + 24));
    for (float* to : {a + i, b + i}) {
      _mm256_stream_ps(to, s0);
      _mm256_stream_ps(to + 8, s1);
      _mm256_stream_ps(to + 16, s2);
      _mm256_stream_ps(to + 24, s3);
    }
  }
  _mm_sfence();
}

template <auto add>
void limit_of_two_ranks(benchmark::State& state) {
  if (!__builtin_cpu_supports("avx2")) return state.SkipWithError("this CPU has no AVX2");
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Buffers buffers(2, bytes);
  for (auto _ : state) {
    add(static_cast<float*>(buffers.outputs[0]), static_cast<float*>(buffers.outputs[1]), bytes / sizeof(float));
    benchmark::ClobberMemory();
  }
  report(state, bytes);
}
BENCHMARK(limit_of_two_ranks<add_two_in_place>)
    ->Name("limit/f32_sum/ranks:2")
    ->ArgName("bytes")
    ->Arg(64 << 10)
    ->Arg(1 << 20)
    ->Arg(64 << 20);
BENCHMARK(limit_of_two_ranks<add_two_streaming>)
    ->Name("limit_streaming/f32_sum/ranks:2")
    ->ArgName("bytes")
    ->Arg(64 << 10)
    ->Arg(1 << 20)
    ->Arg(64 << 20);
#endif

void all_sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"ranks", "bytes"})->ArgsProduct({{2, 3, 4, 8}, {64 << 10, 1 << 20, 64 << 20}});
}
void two_ranks(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"ranks", "bytes"})->ArgsProduct({{2}, {64 << 10, 1 << 20, 64 << 20}});
}

BENCHMARK_CAPTURE(reduce_in_place, f32_sum, DataType::f32, {})->Apply(all_sizes);
BENCHMARK_CAPTURE(reduce_in_place, f32_average_of_2, DataType::f32, {.divisor = 2})->Apply(two_ranks);
BENCHMARK_CAPTURE(reduce_in_place, f32_average_of_3, DataType::f32, {.divisor = 3})->Apply(two_ranks);
BENCHMARK_CAPTURE(reduce_in_place, f32_weighted, DataType::f32, {.weights = {&some_weight, 1}, .divisor = 2001})
    ->Apply(two_ranks);
BENCHMARK_CAPTURE(reduce_in_place, f32_max, DataType::f32, {.op = ReduceOp::max})->Apply(two_ranks);
BENCHMARK_CAPTURE(reduce_in_place, f16_sum, DataType::f16, {})->Apply(two_ranks);
BENCHMARK_CAPTURE(reduce_in_place, f16_weighted, DataType::f16, {.weights = {&some_weight, 1}, .divisor = 2001})
    ->Apply(two_ranks);
BENCHMARK_CAPTURE(reduce_in_place, bf16_sum, DataType::bf16, {})->Apply(two_ranks);
BENCHMARK_CAPTURE(reduce_in_place, f64_average_of_3, DataType::f64, {.divisor = 3})->Apply(two_ranks);
BENCHMARK_CAPTURE(reduce_in_place, i32_average_of_3, DataType::i32, {.divisor = 3})->Apply(two_ranks);
BENCHMARK_CAPTURE(reduce_in_place, i64_product, DataType::i64, {.op = ReduceOp::product})->Apply(two_ranks);
BENCHMARK_CAPTURE(reduce_in_place, u8_product, DataType::u8, {.op = ReduceOp::product})->Apply(two_ranks);
BENCHMARK_CAPTURE(cast_between, f32_to_f16, DataType::f32, DataType::f16)
    ->ArgName("bytes")
    ->Arg(64 << 10)
    ->Arg(64 << 20);
BENCHMARK_CAPTURE(cast_between, f32_to_bf16, DataType::f32, DataType::bf16)
    ->ArgName("bytes")
    ->Arg(64 << 10)
    ->Arg(64 << 20);
BENCHMARK_CAPTURE(cast_between, f16_to_f32, DataType::f16, DataType::f32)
    ->ArgName("bytes")
    ->Arg(64 << 10)
    ->Arg(64 << 20);
BENCHMARK_CAPTURE(reduce_in_place, f32_sum_small, DataType::f32, {})
    ->ArgNames({"ranks", "bytes"})
    ->ArgsProduct({{2}, {4, 28, 1024}});

}  // namespace
}  // namespace fedrun

BENCHMARK_MAIN();
