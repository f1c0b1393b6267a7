//! Network addresses: `inet` and `cidr` in the binary format; they are kept as their texts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// PostgreSQL's numbers of the families.
const V4: u8 = 2;
const V6: u8 = 3;

/// The binary form of a text; none for what is no address. `network`: it is a `cidr`.
pub(crate) fn binary(text: &str, network: bool) -> Option<Vec<u8>> {
    let (address, bits) = match text.trim().split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
        None => (text.trim(), None),
    };
    let (family, longest, bytes) = match address.parse().ok()? {
        IpAddr::V4(address) => (V4, 32, address.octets().to_vec()),
        IpAddr::V6(address) => (V6, 128, address.octets().to_vec()),
    };
    let bits = bits.unwrap_or(longest);
    if bits > longest {
        return None;
    }
    let length = if family == V4 { 4 } else { 16 };
    Some([&[family, bits, u8::from(network), length][..], &bytes].concat())
}

/// The text of a binary form; none for what is none.
pub(crate) fn text(binary: &[u8]) -> Option<String> {
    let [family, bits, network, length, address @ ..] = binary else { return None };
    let (address, longest) = match *family {
        V4 => (IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(address).ok()?)), 32),
        V6 => (IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?)), 128),
        _ => return None,
    };
    if *bits > longest || usize::from(*length) != binary.len() - 4 {
        return None;
    }
    let whole = *bits == longest && *network == 0;
    Some(if whole { address.to_string() } else { format!("{address}/{bits}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_there_and_back() {
        for address in ["10.0.0.1", "10.1.0.0/16", "::1", "2001:db8::/32", "0.0.0.0/0"] {
            let sent = binary(address, false).unwrap();
            assert_eq!(text(&sent).as_deref(), Some(address));
        }
        assert_eq!(binary("10.0.0.1", false).unwrap(), [2, 32, 0, 4, 10, 0, 0, 1]);
        assert_eq!(text(&binary("10.0.0.0/32", true).unwrap()).as_deref(), Some("10.0.0.0/32"));
        for bad in ["", "10.0.0", "10.0.0.1/33", "::1/129", "x/8"] {
            assert_eq!(binary(bad, false), None, "{bad}");
        }
        for bad in [
            &[2, 32, 0, 4, 10, 0, 0][..],
            &[2, 33, 0, 4, 1, 2, 3, 4],
            &[9, 0, 0, 0],
            &[2, 32, 0, 5, 1, 2, 3, 4],
        ] {
            assert_eq!(text(bad), None, "{bad:?}");
        }
    }
}
