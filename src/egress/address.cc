#include "egress/address.h"

#include <algorithm>
#include <array>

#include "egress/origin.h"

namespace cofferdam::egress {
namespace {

struct Block {
  std::array<std::uint8_t, 16> prefix;
  unsigned bits;
  AddressKind kind;
};

// IANA's special-purpose registries; the first match counts.
constexpr Block kIpv4Blocks[] = {
    {{0}, 8, AddressKind::reserved},
    {{10}, 8, AddressKind::private_use},
    {{100, 64}, 10, AddressKind::private_use},
    {{127}, 8, AddressKind::loopback},
    {{169, 254}, 16, AddressKind::link_local},
    {{172, 16}, 12, AddressKind::private_use},
    {{192, 0, 0}, 24, AddressKind::reserved},
    {{192, 0, 2}, 24, AddressKind::reserved},
    {{192, 88, 99}, 24, AddressKind::reserved},
    {{192, 168}, 16, AddressKind::private_use},
    {{198, 18}, 15, AddressKind::reserved},
    {{198, 51, 100}, 24, AddressKind::reserved},
    {{203, 0, 113}, 24, AddressKind::reserved},
    {{224}, 4, AddressKind::multicast},
    {{240}, 4, AddressKind::reserved},
};
constexpr Block kIpv6Blocks[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, AddressKind::loopback},
    {{0xfe, 0x80}, 10, AddressKind::link_local},
    {{0xfe, 0xc0}, 10, AddressKind::private_use},
    {{0xfc}, 7, AddressKind::private_use},
    {{0xff}, 8, AddressKind::multicast},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, AddressKind::reserved},
    {{0x20, 0x01, 0x00}, 23, AddressKind::reserved},
    {{0x20}, 3, AddressKind::global},  // 2000::/3 is all that is given out
};
// Prefixes behind which an IPv4 address stands, and where in the 16 bytes.
struct Embedding {
  std::array<std::uint8_t, 16> prefix;
  unsigned bits;
  std::size_t offset;
};
constexpr Embedding kEmbeddings[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, 12},  // ::ffff:a.b.c.d
    {{0x00, 0x64, 0xff, 0x9b}, 96, 12},                    // NAT64, 64:ff9b::/96
    {{0x20, 0x02}, 16, 2},                                 // 6to4
    {{0}, 96, 12},                                         // ::a.b.c.d, deprecated
};

bool in_prefix(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> prefix, unsigned bits) {
  for (unsigned i = 0; i < bits; ++i) {
    unsigned difference = static_cast<unsigned>(bytes[i / 8]) ^ static_cast<unsigned>(prefix[i / 8]);
    if (((difference >> (7U - i % 8U)) & 1U) != 0) return false;
  }
  return true;
}

AddressKind classify_ipv4(std::span<const std::uint8_t> bytes) {
  for (const Block& block : kIpv4Blocks) {
    if (in_prefix(bytes, block.prefix, block.bits)) return block.kind;
  }
  return AddressKind::global;
}

}  // namespace

const char* address_kind_name(AddressKind kind) {
  switch (kind) {
    case AddressKind::global:
      return "global";
    case AddressKind::loopback:
      return "loopback";
    case AddressKind::private_use:
      return "private";
    case AddressKind::link_local:
      return "link-local";
    case AddressKind::multicast:
      return "multicast";
    case AddressKind::reserved:
      break;
  }
  return "reserved";
}

AddressKind classify_address(std::span<const std::uint8_t> bytes) {
  if (bytes.size() == 4) return classify_ipv4(bytes);
  if (bytes.size() != 16) return AddressKind::reserved;
  // ::1 and :: would match the deprecated ::a.b.c.d form.
  if (in_prefix(bytes, kIpv6Blocks[0].prefix, kIpv6Blocks[0].bits)) return AddressKind::loopback;
  for (const Embedding& embedding : kEmbeddings) {
    if (in_prefix(bytes, embedding.prefix, embedding.bits)) {
      return classify_ipv4(bytes.subspan(embedding.offset, 4));
    }
  }
  for (const Block& block : kIpv6Blocks) {
    if (in_prefix(bytes, block.prefix, block.bits)) return block.kind;
  }
  return AddressKind::reserved;
}

bool may_dial(AddressKind kind, std::string_view host) {
  if (kind == AddressKind::global) return true;
  if (kind == AddressKind::multicast || kind == AddressKind::reserved) return false;
  if (host == "localhost") return kind == AddressKind::loopback;
  auto literal = parse_address_literal(host);
  return literal.has_value() && classify_address(*literal) == kind;
}

bool in_range(std::span<const std::uint8_t> bytes, const AddressRange& range) {
  return bytes.size() == range.prefix.size() && in_prefix(bytes, range.prefix, range.bits);
}

bool address_allowed(const AddressRule& rule, std::span<const std::uint8_t> bytes, std::string_view host) {
  const AddressKind kind = classify_address(bytes);
  if (rule.kind == AddressRule::Kind::origin) return may_dial(kind, host);
  if (rule.kind == AddressRule::Kind::proxy) return kind == AddressKind::private_use || may_dial(kind, host);
  if (rule.ranges.empty()) return kind == AddressKind::global;
  return std::any_of(rule.ranges.begin(), rule.ranges.end(),
                     [&](const AddressRange& range) { return in_range(bytes, range); });
}

}  // namespace cofferdam::egress
