#include <fedrun/data/users.h>

namespace fedrun::data {

Users number_users(const SamplesOfUser& train, const SamplesOfUser& test) {
  SamplesOfUser all = train;
  for (const auto& [user, samples] : test) all.try_emplace(user);  // some users only test
  Users users;
  for (const auto& [user, samples] : all) {
    users.names.push_back(user);
    users.clients.train.append(samples);
    const auto tested = test.find(user);
    users.clients.test.append(tested == test.end() ? std::vector<SampleIndex>{} : tested->second);
  }
  return users;
}

}  // namespace fedrun::data
