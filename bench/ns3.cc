// The dumbbell of topologies/queue-lengths.yaml in ns-3: senders, a router, one receiver behind a slow link with a drop-tail
// queue. Prints a JSON document: each flow's goodput, the queue's median, its drops, and each congestion window over time.
//
// A frame has 1514 bytes in a lab, and 1502 in ns-3, whose point-to-point header has 2 bytes: rate and queue are scaled so that
// the same number of full segments passes, and waits.
#include <algorithm>
#include <iostream>
#include <sstream>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

const double FRAME = 1502.0 / 1514.0;
const double EVERY_S = 0.1;

struct Flow {
  std::string algorithm;
  double start_s = 0;
  Ptr<PacketSink> sink;
  uint64_t received_before = 0;
  std::vector<double> window;
  double now = 0;
};

std::vector<Flow> flows;
std::vector<double> waiting_bytes;
uint64_t dropped = 0;
double omit_s = 0;

void Dropped(Ptr<const Packet>) {
  if (Simulator::Now().GetSeconds() >= omit_s) dropped++;
}

void Changed(uint32_t flow, uint32_t, uint32_t bytes) { flows[flow].now = bytes; }

void Watch(uint32_t flow) {
  std::ostringstream path;
  path << "/NodeList/" << flow << "/$ns3::TcpL4Protocol/SocketList/0/CongestionWindow";
  Config::ConnectWithoutContext(path.str(), MakeBoundCallback(&Changed, flow));
}

void Look(Ptr<Queue<Packet>> queue) {
  for (auto &flow : flows) flow.window.push_back(flow.now);
  if (Simulator::Now().GetSeconds() >= omit_s) waiting_bytes.push_back(queue->GetNBytes());
  Simulator::Schedule(Seconds(EVERY_S), &Look, queue);
}

void Begin() {
  for (auto &flow : flows) flow.received_before = flow.sink->GetTotalRx();
}

}  // namespace

int main(int argc, char *argv[]) {
  std::string algorithms = "LinuxReno", starts = "0";
  double rate_mbit = 10, rtt_ms = 40, queue_bytes = 50000, seconds = 60;
  CommandLine line;
  line.AddValue("algorithms", "names of ns-3's congestion controls, with commas: one flow each", algorithms);
  line.AddValue("starts", "the flows' starts, s, with commas", starts);
  line.AddValue("rate", "of the slow link, Mbit/s", rate_mbit);
  line.AddValue("rtt", "of the path, ms", rtt_ms);
  line.AddValue("queue", "of the slow link, bytes of frames of 1514", queue_bytes);
  line.AddValue("omit", "seconds that do not count", omit_s);
  line.AddValue("seconds", "seconds that count", seconds);
  line.Parse(argc, argv);

  std::istringstream names(algorithms), times(starts);
  for (std::string name, at; std::getline(names, name, ',');) {
    Flow flow;
    flow.algorithm = name;
    flow.start_s = std::getline(times, at, ',') ? std::stod(at) : 0;
    flows.push_back(flow);
  }

  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(6 << 20));
  Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

  NodeContainer senders, ends;
  senders.Create(flows.size());
  ends.Create(2);
  InternetStackHelper stack;
  stack.Install(senders);
  stack.Install(ends);

  PointToPointHelper fast, slow;
  fast.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(100e6 * FRAME))));
  fast.SetChannelAttribute("Delay", TimeValue(MilliSeconds(2)));
  slow.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate_mbit * 1e6 * FRAME))));
  slow.SetChannelAttribute("Delay", TimeValue(MicroSeconds(uint64_t(1000 * (rtt_ms / 2 - 2)))));
  slow.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(BYTES, uint32_t(queue_bytes * FRAME))));

  Ipv4AddressHelper addresses;
  auto bottleneck = slow.Install(ends);
  addresses.SetBase("10.0.0.0", "255.255.255.0");
  TrafficControlHelper none;
  auto at = addresses.Assign(bottleneck);
  none.Uninstall(bottleneck);
  for (uint32_t i = 0; i < flows.size(); i++) {
    auto pair = fast.Install(senders.Get(i), ends.Get(0));
    std::ostringstream base;
    base << "10.1." << i << ".0";
    addresses.SetBase(base.str().c_str(), "255.255.255.0");
    addresses.Assign(pair);
    none.Uninstall(pair);
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();

  for (uint32_t i = 0; i < flows.size(); i++) {
    TypeId control = TypeId::LookupByName("ns3::Tcp" + flows[i].algorithm);
    senders.Get(i)->GetObject<TcpL4Protocol>()->SetAttribute("SocketType", TypeIdValue(control));
    InetSocketAddress target(at.GetAddress(1), 5201 + i);
    BulkSendHelper bulk("ns3::TcpSocketFactory", target);
    bulk.SetAttribute("MaxBytes", UintegerValue(0));
    bulk.Install(senders.Get(i)).Start(Seconds(flows[i].start_s));
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5201 + i));
    auto sinks = sink.Install(ends.Get(1));
    flows[i].sink = DynamicCast<PacketSink>(sinks.Get(0));
    Simulator::Schedule(Seconds(flows[i].start_s + 0.001), &Watch, i);
  }
  auto queue = DynamicCast<PointToPointNetDevice>(bottleneck.Get(0))->GetQueue();
  // A device says that its queue is full before it drops, and the layer above drops.
  ends.Get(0)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext("TcDrop", MakeCallback(&Dropped));
  Simulator::Schedule(Seconds(EVERY_S), &Look, queue);
  Simulator::Schedule(Seconds(omit_s), &Begin);
  Simulator::Stop(Seconds(omit_s + seconds));
  Simulator::Run();

  std::nth_element(waiting_bytes.begin(), waiting_bytes.begin() + waiting_bytes.size() / 2, waiting_bytes.end());
  std::cout << "{\"queue_ms\": " << waiting_bytes[waiting_bytes.size() / 2] * 8 / (rate_mbit * 1e6 * FRAME) * 1000
            << ", \"dropped\": " << dropped << ", \"every_s\": " << EVERY_S << ", \"flows\": [";
  for (uint32_t i = 0; i < flows.size(); i++) {
    auto &flow = flows[i];
    double mbit = (flow.sink->GetTotalRx() - flow.received_before) * 8 / seconds / 1e6;
    std::cout << (i ? ", " : "") << "{\"algorithm\": \"" << flow.algorithm << "\", \"mbit\": " << mbit << ", \"cwnd_bytes\": [";
    for (size_t k = 0; k < flow.window.size(); k++) std::cout << (k ? ", " : "") << flow.window[k];
    std::cout << "]}";
  }
  std::cout << "]}" << std::endl;
  Simulator::Destroy();
  return 0;
}
