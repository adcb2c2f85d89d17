#include <fedrun/fedrun.h>

#include <cstdio>

int main() {
  fedrun::Session session;
  torch::Tensor value = torch::full({1}, session.rank() + 1.0F);
  session.world().allreduce(fedrun::buffer_of(value, "value"), {.op = fedrun::ReduceOp::sum});
  if (session.rank() == 0) std::printf("%d ranks agree on %.0f\n", session.size(), value.item<double>());
}
