//! Passwords that are derived instead of remembered.
//!
//! A password is a function of a key, which is kept by the server itself, and of the login's name. So whoever writes a
//! Secret or sets a role's password again writes the same one, and Secrets never have to be read.

use std::fmt;

use ankka_crds::digest::hex;
use aws_lc_rs::hmac;

/// Letters and digits of a password: beyond 238 bits, and nothing that a URL or a shell would read otherwise.
const LENGTH: usize = 40;

const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Bytes of a key.
const KEY: usize = 32;

/// The key that all passwords on one server are derived from.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordKey([u8; KEY]);

impl PasswordKey {
    /// The one that is written as these hexadecimal digits; none when it is not one.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        let mut key = [0; KEY];
        if digits.len() != 2 * KEY {
            return None;
        }
        for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(key))
    }

    /// Tells one key from another, and nothing else about it.
    pub fn fingerprint(&self) -> String {
        hex(&self.derive("fingerprint", "", 0).as_ref()[..6])
    }

    /// The password of a login.
    pub fn password(&self, login: &str) -> Password {
        let mut text = String::with_capacity(LENGTH);
        for block in 0.. {
            for byte in self.derive("password", login, block).as_ref() {
                // What is left of 256 after the last whole multiple of 62 would make some characters likelier.
                let index = usize::from(*byte);
                if index < 4 * ALPHABET.len() {
                    text.push(char::from(ALPHABET[index % ALPHABET.len()]));
                }
                if text.len() == LENGTH {
                    return Password(text);
                }
            }
        }
        unreachable!("blocks do not end")
    }

    fn derive(&self, purpose: &str, name: &str, block: u32) -> hmac::Tag {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        hmac::sign(&key, format!("ankka/{purpose}/{block}/{name}").as_bytes())
    }
}

impl fmt::Debug for PasswordKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PasswordKey({})", self.fingerprint())
    }
}

/// A password. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// What the login says, for the Secret and the server alone.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What the server keeps instead: made here, so that the password is in no statement and no log of the server.
    pub fn verifier(&self) -> String {
        postgres_protocol::password::scram_sha_256(self.0.as_bytes())
    }
}

impl From<String> for Password {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password(…)")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn key(byte: u8) -> PasswordKey {
        PasswordKey([byte; KEY])
    }

    #[test]
    fn two_hundred_passwords_are_forty_letters_and_digits_and_no_two_the_same() {
        let passwords: BTreeSet<String> =
            (0..200).map(|number| key(7).password(&format!("shop.s{number}")).expose().to_owned()).collect();
        assert_eq!(passwords.len(), 200);
        let used: BTreeSet<char> = passwords.iter().flat_map(|password| password.chars()).collect();
        assert_eq!(used.len(), 62, "every letter and digit is used, and nothing else");
        assert!(used.iter().all(char::is_ascii_alphanumeric), "{used:?}");
        assert!(passwords.iter().all(|password| password.len() == 40));
    }

    #[test]
    fn a_password_follows_from_key_and_login_alone() {
        assert_eq!(key(1).password("shop.cart"), key(1).password("shop.cart"));
        assert_ne!(key(1).password("shop.cart"), key(2).password("shop.cart"));
        assert_ne!(key(1).password("shop.cart"), key(1).password("shop.cart#1"));
        // Written down: a change of the derivation would change every password there is.
        assert_eq!(key(1).password("shop.cart").expose(), "EXZ6ZqEe7XXXchyO0WL7n6ly6ONZvONME8xLF3cr");
        assert_eq!(key(1).fingerprint(), "bac411b7b4d7");
    }

    #[test]
    fn a_key_is_read_and_never_shown() {
        let made = PasswordKey::from_hex(&"0a".repeat(KEY)).expect("a key");
        assert_eq!(made, key(10));
        assert!(!format!("{made:?}").contains("0a0a"));
        assert!(!format!("{:?}", made.password("a")).contains(made.password("a").expose()));
        for broken in ["", "00", &"0".repeat(63), &"g".repeat(64)] {
            assert_eq!(PasswordKey::from_hex(broken), None);
        }
    }
}
