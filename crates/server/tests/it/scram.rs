//! A client's half of SCRAM-SHA-256 (RFC 7677), as the tests need it.

use ring::{digest, hmac, pbkdf2};

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// An exchange.
pub(crate) struct Scram {
    name: String,
    password: String,
    head: &'static str,
    binding: Vec<u8>,
    proof: String,
}

impl Scram {
    /// `head`: what the first message begins with; `binding`: the data of the channel.
    pub(crate) fn new(name: &str, password: &str, head: &'static str, binding: &[u8]) -> Self {
        Self {
            name: name.to_owned(),
            password: password.to_owned(),
            head,
            binding: binding.to_vec(),
            proof: String::new(),
        }
    }

    fn bare(&self) -> String {
        format!("n={},r=nonce", self.name)
    }

    /// The first message.
    pub(crate) fn first(&self) -> String {
        format!("{}{}", self.head, self.bare())
    }

    /// The last message, after the server's challenge.
    pub(crate) fn last(&mut self, challenge: &str) -> String {
        let part = |name: &str| challenge.split(',').find_map(|part| part.strip_prefix(name)).unwrap();
        let rounds = part("i=").parse().unwrap();
        let mut salted = [0; 32];
        let salt = decode(part("s="));
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, self.password.as_bytes(), &mut salted);
        let client_key = sign(&salted, b"Client Key");
        let stored_key = digest::digest(&digest::SHA256, &client_key);
        let channel = encode(&[self.head.as_bytes(), &self.binding].concat());
        let said = format!("c={channel},r={}", part("r="));
        let all = format!("{},{challenge},{said}", self.bare());
        let signature = sign(stored_key.as_ref(), all.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        let server_key = sign(&salted, b"Server Key");
        self.proof = format!("v={}", encode(&sign(&server_key, all.as_bytes())));
        format!("{said},p={}", encode(&proof))
    }

    /// What the server must prove.
    pub(crate) fn server_proof(&self) -> &str {
        &self.proof
    }
}

fn sign(key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_usize, |word, byte| word << 8 | usize::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = BASE64[word >> (18 - 6 * place) & 63];
            text.push(if place > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let digits: Vec<usize> =
        text.bytes().filter_map(|byte| BASE64.iter().position(|digit| *digit == byte)).collect();
    for chunk in digits.chunks(4) {
        let word = chunk.iter().fold(0, |word, digit| word << 6 | digit) << (6 * (4 - chunk.len()));
        let all = [word >> 16, word >> 8, word].map(|byte| u8::try_from(byte & 255).unwrap());
        bytes.extend_from_slice(&all[..chunk.len() - 1]);
    }
    bytes
}
