// Things of any size between ranks: text, numbers, and everything that Torch can pickle.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/train/byte_exchange.h>
#include <fedrun/train/object_bytes.h>

#include <string>
#include <vector>

namespace fedrun {

// Both are collective. An object is a std::string, a number or bool, a std::vector of them, or what a torch::IValue can
// hold: a Tensor, std::vector<Tensor>, c10::Dict, c10::List, a tuple of such, or an IValue itself. All ranks use the
// same type, or every rank throws MismatchError. What comes back is a copy that shares nothing with the argument. Where
// an object cannot be sent, such as an IValue that cannot be pickled, every rank throws UsageError that names the rank.

// The root's object. What the others bring does not matter.
template <typename Object>
Object broadcast_object(Communicator& group, const Object& object, const BroadcastOptions& options = {}) {
  return object_of_bytes<Object>(broadcast_bytes(
      group, {"broadcast_object", name_of_object_type<Object>()}, [&] { return bytes_of_object(object); }, options));
}
inline std::string broadcast_object(Communicator& group, const char* text, const BroadcastOptions& options = {}) {
  return broadcast_object(group, std::string(text), options);
}

// Every rank's object, in rank order. They may differ in size and, inside IValues, in type.
template <typename Object>
std::vector<Object> allgather_object(Communicator& group, const Object& object, const ExchangeOptions& options = {}) {
  std::vector<Object> objects;
  for (const std::string& bytes : allgather_bytes(
           group, {"allgather_object", name_of_object_type<Object>()}, [&] { return bytes_of_object(object); },
           options)) {
    objects.push_back(object_of_bytes<Object>(bytes));
  }
  return objects;
}
inline std::vector<std::string> allgather_object(Communicator& group, const char* text,
                                                 const ExchangeOptions& options = {}) {
  return allgather_object(group, std::string(text), options);
}

}  // namespace fedrun
