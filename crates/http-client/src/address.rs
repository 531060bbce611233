//! Address checks against server-side request forgery.
//!
//! An agent's card and a redirect are written by third parties. Unless the owner of an agent has allowed private addresses, only addresses
//! on the public internet are called. The addresses where clouds keep the credentials of their machines are never called.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses that a request may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Public addresses only.
    Public,
    /// Loopback and private networks as well.
    Private,
}

/// IPv6 addresses where clouds hand out the credentials of the machine we run on.
const METADATA_V6: [Ipv6Addr; 5] = [
    // Amazon: instances, and tasks of containers.
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    // Google.
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    // Scaleway.
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
    // Link-local, as some clouds map 169.254.169.254.
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

/// Names that clouds resolve to a metadata address.
const METADATA_NAMES: [&str; 7] = [
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "metadata.azure.com",
    "metadata.tencentyun.com",
    "metadata.platformequinix.com",
    "instance-data.ec2.internal",
];

// === impl Reach ===

impl Reach {
    /// Reason why `address` must not be called, as words that follow "… is"; none if it may be called.
    pub fn forbids(self, address: IpAddr) -> Option<&'static str> {
        if is_metadata(address) {
            return Some("a cloud's metadata address, which is never called");
        }
        match self {
            Self::Private => None,
            Self::Public => describe_non_public(unwrap_v4(address)),
        }
    }
}

/// True if a cloud's metadata service has this name, spelt as [`normalize_host`](crate::egress_rules::normalize_host) spells it.
pub(crate) fn is_metadata_name(host: &str) -> bool {
    METADATA_NAMES.contains(&host)
}

/// True if an address is a cloud's metadata service, or translates to one by any way of writing IPv4 in IPv6.
fn is_metadata(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_metadata_v4(v4),
        IpAddr::V6(v6) => {
            METADATA_V6.contains(&v6) || embedded_v4(v6).into_iter().flatten().any(is_metadata_v4)
        }
    }
}

const fn is_metadata_v4(address: Ipv4Addr) -> bool {
    match address.octets() {
        // Amazon and most others, with the clocks and name servers beside them; Amazon's tasks of containers.
        [169, 254, 169 | 170, _] => true,
        // Scaleway; Tencent.
        [169, 254, 42, 42] | [169, 254, 0, 23] => true,
        // Alibaba; Oracle; Azure's wire server.
        [100, 100, 100, 200] | [192, 0, 0, 192] | [168, 63, 129, 16] => true,
        _ => false,
    }
}

/// Every IPv4 address that an IPv6 address could be translated to.
fn embedded_v4(address: Ipv6Addr) -> [Option<Ipv4Addr>; 3] {
    let s = address.segments();
    let tail = join_v4(s[6], s[7]);
    match s {
        // Mapped, compatible, NAT64.
        [0, 0, 0, 0, 0, 0xffff | 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            [Some(tail), None, None]
        }
        // NAT64 of a network's own: behind a prefix of 48 bits, with eight bits left out, or of 96.
        [0x64, 0xff9b, 1, high, middle, low, ..] => {
            let split = join_v4(high, (middle & 0xff) << 8 | low >> 8);
            [Some(split), Some(tail), None]
        }
        // 6to4.
        [0x2002, high, low, ..] => [Some(join_v4(high, low)), None, None],
        // Teredo: the server, and the client with its bits turned over.
        [0x2001, 0, high, low, ..] => [Some(join_v4(high, low)), Some(join_v4(!s[6], !s[7])), None],
        // ISATAP.
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => [Some(tail), None, None],
        _ => [None, None, None],
    }
}

/// The IPv4 address that an IPv6 address stands for, if it stands for one: mapped, compatible, NAT64, 6to4.
fn unwrap_v4(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let s = v6.segments();
    let tail = || IpAddr::V4(join_v4(s[6], s[7]));
    match s {
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => tail(),
        [0, 0, 0, 0, 0, 0, high, _] if high != 0 => tail(),
        [0x2002, high, low, ..] => IpAddr::V4(join_v4(high, low)),
        _ => address,
    }
}

fn join_v4(high: u16, low: u16) -> Ipv4Addr {
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    Ipv4Addr::new(a, b, c, d)
}

fn describe_non_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => describe_non_public_v4(v4),
        IpAddr::V6(v6) => describe_non_public_v6(v6),
    }
}

fn describe_non_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [0, ..] => Some("an unspecified address"),
        [127, ..] => Some("a loopback address"),
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] => Some("a private address"),
        [169, 254, ..] => Some("a link-local address"),
        [100, 64..=127, ..] => Some("a carrier-grade NAT address"),
        [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [198, 18 | 19, ..] => {
            Some("a reserved address")
        }
        [224..=239, ..] => Some("a multicast address"),
        [240..=255, ..] => Some("a reserved address"),
        _ => None,
    }
}

fn describe_non_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    if address.is_loopback() {
        return Some("a loopback address");
    }
    if address.is_unspecified() {
        return Some("an unspecified address");
    }
    match address.segments() {
        [0xfc00..=0xfdff, ..] => Some("a unique local address"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xfec0..=0xfeff, ..] => Some("a site-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x2001, 0 | 0xdb8, ..] | [0x64, 0xff9b, ..] | [0x100, 0, 0, 0, ..] => Some("a reserved address"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forbidden(text: &str) -> Option<&'static str> {
        Reach::Public.forbids(text.parse().unwrap())
    }

    #[test]
    fn public_addresses_may_be_called() {
        for text in
            ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
        {
            assert_eq!(forbidden(text), None, "{text}");
        }
    }

    #[test]
    fn addresses_that_are_not_public_are_named_for_what_they_are() {
        for (text, word) in [
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("::1", "loopback"),
            ("::ffff:127.0.0.1", "loopback"),
            ("64:ff9b::7f00:1", "loopback"),
            ("2002:7f00:1::", "loopback"),
            ("10.1.2.3", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.0.1", "private"),
            ("::ffff:192.168.0.1", "private"),
            ("::10.0.0.1", "private"),
            ("2002:c0a8:1::1", "private"),
            ("169.254.0.1", "link-local"),
            ("fe80::1", "link-local"),
            ("fec0::1", "site-local"),
            ("fd12:3456::1", "unique local"),
            ("fc00::1", "unique local"),
            ("100.64.0.1", "carrier-grade"),
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("::", "unspecified"),
            ("224.0.0.1", "multicast"),
            ("ff02::1", "multicast"),
            ("255.255.255.255", "reserved"),
            ("192.0.0.8", "reserved"),
            ("192.0.2.1", "reserved"),
            ("198.18.0.1", "reserved"),
            ("198.51.100.1", "reserved"),
            ("203.0.113.9", "reserved"),
            ("2001:db8::1", "reserved"),
            ("2001::1", "reserved"),
            ("64:ff9b:1::1", "reserved"),
            ("100::1", "reserved"),
        ] {
            assert!(forbidden(text).is_some_and(|why| why.contains(word)), "{text}: {:?}", forbidden(text));
        }
    }

    #[test]
    fn private_addresses_may_be_called_when_that_is_meant() {
        for text in ["127.0.0.1", "10.0.0.1", "::1", "fd00::1", "169.254.7.7"] {
            assert_eq!(Reach::Private.forbids(text.parse().unwrap()), None, "{text}");
        }
    }

    #[test]
    fn metadata_addresses_are_never_called() {
        for text in [
            "169.254.169.254",
            "169.254.169.123",
            "169.254.169.253",
            "169.254.170.2",
            "169.254.170.23",
            "169.254.42.42",
            "169.254.0.23",
            "100.100.100.200",
            "192.0.0.192",
            "168.63.129.16",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:42::42",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "::ffff:0:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b::169.254.170.2",
            "64:ff9b:1:a9fe:a9:fe00::",
            "64:ff9b:1::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "2001:0:a9fe:a9fe::1",
            "2001:0:101:101::5601:5601",
            "fe80::5efe:a9fe:a9fe",
            "::ffff:168.63.129.16",
        ] {
            for reach in [Reach::Private, Reach::Public] {
                let why = reach.forbids(text.parse().unwrap());
                assert!(why.is_some_and(|why| why.contains("metadata")), "{text}: {why:?}");
            }
        }
    }

    #[test]
    fn names_of_metadata_services_are_known() {
        assert!(is_metadata_name("metadata.google.internal") && is_metadata_name("metadata.goog"));
        assert!(!is_metadata_name("metadata.example.com"));
    }
}
