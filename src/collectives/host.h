// What all groups of one process share: the other processes of this host, the memory that they see, and the waiting.
#pragma once

#include <fedrun/collectives/device_group.h>
#include <fedrun/collectives/group.h>
#include <fedrun/collectives/links.h>
#include <fedrun/collectives/peers.h>
#include <fedrun/collectives/scheduler.h>
#include <fedrun/collectives/segments.h>
#include <fedrun/collectives/timeline.h>

#include <functional>
#include <memory>

namespace fedrun {

using MakeLinks = std::function<std::unique_ptr<Links>(const Group&, std::size_t longest_record_bytes)>;

struct HostOptions {
  bool may_reach_ordinary_memory = true;  // else memory that is not from allocate() is staged
  WaitOptions wait{};
  MakeLinks make_links{};                // collective over the group; for runs on several hosts
  std::shared_ptr<Timeline> timeline{};  // shared with whoever turns it on and off
  DeviceOptions devices{};
};

struct Host {
  Host(const Gather& gather, const Group& world, const HostOptions& options)
      : peers(gather, world.rank, world.host_of, options.may_reach_ordinary_memory),
        segments(peers),
        scheduler(peers, options.wait),
        make_links(options.make_links),
        timeline(options.timeline ? options.timeline : std::make_shared<Timeline>()),
        devices(options.devices) {}

  Peers peers;
  Segments segments;
  Scheduler scheduler;
  MakeLinks make_links;
  std::shared_ptr<Timeline> timeline;
  DeviceOptions devices;
  std::uint64_t groups_led = 0;  // for the ids of groups that this process is the first rank of
};

}  // namespace fedrun
