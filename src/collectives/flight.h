// An operation of this rank that is under way.
#pragma once

#include <fedrun/collectives/backend.h>
#include <fedrun/collectives/device_group.h>
#include <fedrun/collectives/run.h>
#include <fedrun/collectives/segments.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

namespace fedrun {

struct Flight {
  static constexpr std::uint64_t no_position = ~std::uint64_t{0};

  explicit Flight(Operation what, std::uint64_t its_key = 0, std::uint64_t its_position = no_position)
      : operation(std::move(what)), key(its_key), position(its_position) {}

  Operation operation;
  std::uint64_t key;       // what the ranks match it by
  std::uint64_t position;  // in the order of the group, once it has one
  Backend::Then then{};
  std::optional<Places> places{};       // where this rank's elements lie, once that has been looked up
  bool has_name = false;                // that nothing else may have now
  bool is_answer = false;               // of a rank that has joined: it brings nothing and takes nothing
  std::unique_ptr<Run> run{};           // once every rank has arrived
  std::unique_ptr<DeviceRun> device{};  // of elements on a GPU, instead of the run
  bool is_agreed = false;               // on devices: every rank has arrived, and it waits for its turn
  bool is_launched = false;             // and this has come
  DeviceWay way = DeviceWay::direct;    // on devices
  // On devices, of what goes through host memory: what this rank brings comes there, is worked on by the run, and goes
  // back.
  enum class HostStep { coming, there, worked_on, returning, going_back } step = HostStep::coming;
  Segments::BlockLoan input_block{};  // where memory is staged
  Segments::BlockLoan output_block{};
  Segments::BlockLoan window_block{};
  std::chrono::steady_clock::time_point submitted = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point all_arrived{};
  bool finished = false;
  std::exception_ptr problem{};
};

}  // namespace fedrun
