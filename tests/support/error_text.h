// Lets tests compare the words of an error, which are as much a part of it as its type.
#pragma once

#include <fedrun/core/error.h>

#include <string>

namespace fedrun::test {

template <typename ExpectedError, typename Action>
std::string text_of(Action action) {
  try {
    action();
  } catch (const ExpectedError& error) {
    return error.what();
  }
  return "no error";
}

template <typename Action>
std::string usage_error_of(Action action) {
  return text_of<UsageError>(action);
}
template <typename Action>
std::string mismatch_error_of(Action action) {
  return text_of<MismatchError>(action);
}

}  // namespace fedrun::test
