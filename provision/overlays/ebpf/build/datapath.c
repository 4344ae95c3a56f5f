// The data path of overlay ebpf: a program at each container's veth and at the tunnel carries packets past the host's own
// forwarding. Where to, the host's routes say: one by way of another host leads through the tunnel to that host, one
// without leads to a container of this host's.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <stddef.h>

#define SECTION(name) __attribute__((section(name), used))
#define HELPER(name) __attribute__((kernel_helper(BPF_FUNC_##name)))
#define INLINE static inline __attribute__((always_inline))
#define BIG_ENDIAN_16(constant) __builtin_bswap16(constant)

// bpf-helpers(7)
long bpf_skb_pull_data(struct __sk_buff *, __u32 length) HELPER(skb_pull_data);
long bpf_skb_store_bytes(struct __sk_buff *, __u32 offset, const void *, __u32 length, __u64) HELPER(skb_store_bytes);
long bpf_l3_csum_replace(struct __sk_buff *, __u32 offset, __u64 from, __u64 to, __u64 length) HELPER(l3_csum_replace);
long bpf_skb_set_tunnel_key(struct __sk_buff *, struct bpf_tunnel_key *, __u32 length, __u64) HELPER(skb_set_tunnel_key);
long bpf_fib_lookup(void *, struct bpf_fib_lookup *, int length, __u32) HELPER(fib_lookup);
long bpf_redirect(__u32 interface, __u64) HELPER(redirect);
long bpf_redirect_peer(__u32 interface, __u64) HELPER(redirect_peer);

#define AF_INET 2
#define NETWORK 4098 // the number that the tunnel's packets have
#define TTL_WORD (ETH_HLEN + offsetof(struct iphdr, ttl))
#define CHECKSUM (ETH_HLEN + offsetof(struct iphdr, check))

INLINE struct iphdr *ipv4_of(struct __sk_buff *packet) {
  if (bpf_skb_pull_data(packet, ETH_HLEN + sizeof(struct iphdr)))
    return NULL;
  struct ethhdr *frame = (void *)(long)packet->data;
  struct iphdr *header = (void *)(frame + 1);
  if ((void *)(header + 1) > (void *)(long)packet->data_end || frame->h_proto != BIG_ENDIAN_16(ETH_P_IP))
    return NULL;
  return header;
}

// As every router does; the checksum is mended by what changed.
INLINE void count_hop(struct __sk_buff *packet, struct iphdr *header) {
  __u16 before, after;
  __builtin_memcpy(&before, &header->ttl, sizeof(before)); // the TTL, and the protocol beside it
  after = before - BIG_ENDIAN_16(0x0100);
  bpf_l3_csum_replace(packet, CHECKSUM, before, after, sizeof(after));
  bpf_skb_store_bytes(packet, TTL_WORD, &after, sizeof(after), 0);
}

// Byte by byte, since the compiler has no instruction for all at once; volatile, or it finds out what this is.
INLINE __u32 host_order(__u32 address) {
  union {
    __u32 whole;
    volatile __u8 bytes[4];
  } seen = {address};
  return (__u32)seen.bytes[0] << 24 | seen.bytes[1] << 16 | seen.bytes[2] << 8 | seen.bytes[3];
}

// An initializer would be a call of memset, and there is none; SIZE is a multiple of 8.
INLINE void clear(void *place, int size) {
  __u64 *words = place;
#pragma GCC unroll 16
  for (int i = 0; i < size / 8; i++)
    words[i] = 0;
}

INLINE int into_tunnel(struct __sk_buff *packet, __u32 host, __u32 tunnel) {
  const int used = offsetof(struct bpf_tunnel_key, tunnel_label);
  struct bpf_tunnel_key key;
  clear(&key, used);
  key.tunnel_id = NETWORK;
  key.remote_ipv4 = host_order(host);
  key.tunnel_ttl = 64;
  if (bpf_skb_set_tunnel_key(packet, &key, used, BPF_F_ZERO_CSUM_TX))
    return TC_ACT_SHOT;
  return bpf_redirect(tunnel, 0);
}

INLINE int to_container(struct __sk_buff *packet, const struct bpf_fib_lookup *way) {
  bpf_skb_store_bytes(packet, offsetof(struct ethhdr, h_dest), way->dmac, ETH_ALEN, 0);
  bpf_skb_store_bytes(packet, offsetof(struct ethhdr, h_source), way->smac, ETH_ALEN, 0);
  return bpf_redirect_peer(way->ifindex, 0);
}

// What has no way here, is for the host itself, or is no IPv4 (ARP) is the host's own business.
SECTION("tc/carry") int carry(struct __sk_buff *packet) {
  struct iphdr *header = ipv4_of(packet);
  if (!header || header->ttl < 2)
    return TC_ACT_OK;
  __u32 destination = header->daddr;
  struct bpf_fib_lookup way;
  clear(&way, sizeof(way));
  way.family = AF_INET;
  way.ifindex = packet->ifindex;
  way.tos = header->tos;
  way.ipv4_src = header->saddr;
  way.ipv4_dst = destination;
  long found = bpf_fib_lookup(packet, &way, sizeof(way), 0);
  int leaves = way.ipv4_dst != destination; // the lookup has put the next host there
  if (found != BPF_FIB_LKUP_RET_SUCCESS && !(leaves && found == BPF_FIB_LKUP_RET_NO_NEIGH))
    return TC_ACT_OK;
  count_hop(packet, header);
  return leaves ? into_tunnel(packet, way.ipv4_dst, way.ifindex) : to_container(packet, &way);
}

char terms[] SECTION("license") = "GPL";
