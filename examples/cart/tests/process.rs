//! The program itself, run as the platform runs it behind a sidecar.
#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

struct Cart {
    program: Child,
    port: u16,
}

impl Cart {
    fn start(env: &[(&str, &str)]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let program = Command::new(env!("CARGO_BIN_EXE_ankka-example-cart"))
            .env_clear()
            .env("ANKKA_PROCESS_PORT", port.to_string())
            .envs(env.iter().copied())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let cart = Self { program, port };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(10), "the program does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        cart
    }

    fn send(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: cart\r\n\r\n").unwrap();
        stream
    }

    /// The answer up to the end of the connection, which the server closes because it is asked to.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: cart\r\nConnection: close\r\n\r\n").unwrap();
        rest(stream)
    }

    fn terminate(&self) {
        kill(Pid::from_raw(self.program.id().cast_signed()), Signal::SIGTERM).unwrap();
    }
}

impl Drop for Cart {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn rest(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn it_says_who_it_is() {
    let cart = Cart::start(&[("HOSTNAME", "cart-0")]);
    let answer = cart.get("/");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with(r#"{"instance":"cart-0","peers":1,"service":"cart"}"#), "{answer}");
}

#[test]
fn a_variable_is_shown_byte_for_byte_and_only_if_it_is_listed() {
    let dollars = "$ $$ $(HOME) $$(HOME) ${HOME} $HOME \\$ é";
    let cart = Cart::start(&[("CART_SHOW", "PRICE, ABSENT"), ("PRICE", dollars), ("SECRET", "s")]);
    assert_eq!(cart.get("/env/PRICE").split_once("\r\n\r\n").unwrap().1, dollars);
    for hidden in ["/env/SECRET", "/env/ABSENT", "/env/"] {
        assert!(cart.get(hidden).starts_with("HTTP/1.1 404 "), "{hidden}");
    }
}

#[test]
fn told_to_stop_it_finishes_what_it_began_serves_newcomers_and_then_ends_well() {
    let mut cart = Cart::start(&[]);
    let slow = cart.send("/slow?ms=1500");
    thread::sleep(Duration::from_millis(200));
    cart.terminate();
    thread::sleep(Duration::from_millis(200));

    // No `Connection: close` from the client: reading to the end proves that the server closes.
    let newcomer = rest(cart.send("/"));
    assert!(newcomer.starts_with("HTTP/1.1 200 OK\r\n"), "{newcomer}");
    assert!(newcomer.to_lowercase().contains("\r\nconnection: close\r\n"), "{newcomer}");

    let slow = rest(slow);
    assert!(slow.ends_with("1500 ms\n"), "{slow}");
    assert!(cart.program.try_wait().unwrap().is_none(), "it left while it had just been asked");
    assert!(cart.program.wait().unwrap().success());
}

#[test]
fn a_malformed_setting_is_refused_with_what_is_allowed() {
    let output = Command::new(env!("CARGO_BIN_EXE_ankka-example-cart"))
        .env_clear()
        .env("ANKKA_PROCESS_PORT", "70000")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("ANKKA_PROCESS_PORT is '70000'; it must be a whole number from 1 to 65535"), "{said}");
}

#[test]
fn without_a_database_it_says_which_variable_is_missing() {
    let cart = Cart::start(&[]);
    let answer = cart.get("/database");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.ends_with("ANKKA_DB_HOST is not set: the service has no database\n"), "{answer}");
}
