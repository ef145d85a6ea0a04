//! `ankka services port-forward`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use serde_json::json;

use crate::support::objects::{PODS, SERVICES, instance, service, status};
use crate::support::{Fake, Home, Reply, assert_schema};

/// A port that gives back what it is sent.
async fn echo(mut socket: WebSocket) {
    for channel in [0, 1] {
        let port = 8080_u16.to_le_bytes();
        socket.send(Message::Binary([&[channel], &port[..]].concat().into())).await.expect("it listens");
    }
    while let Some(Ok(message)) = socket.recv().await {
        if let Message::Binary(bytes) = message
            && bytes.first() == Some(&0)
        {
            socket.send(Message::Binary(bytes)).await.expect("it listens");
        }
    }
}

/// What a new connection to this address gives back.
fn sent_back(address: &str, text: &str) -> String {
    let mut connection = TcpStream::connect(address).expect("it listens");
    connection.write_all(text.as_bytes()).expect("it takes all");
    let mut answer = vec![0; text.len()];
    connection.read_exact(&mut answer).expect("it answers");
    String::from_utf8(answer).expect("what was sent")
}

#[test]
fn connections_reach_a_ready_instance_also_after_a_rollout() {
    let home = Home::new();
    let rolled = Arc::new(AtomicBool::new(false));
    let shared = rolled.clone();
    let fake = Fake::start(move |request| match request.path.as_str() {
        PODS if shared.load(Ordering::Relaxed) => Reply::list(&[instance("cart-def-ccccc", 5)]),
        PODS => {
            let mut starting = instance("cart-abc-bbbbb", 2);
            starting["status"]["conditions"][0]["status"] = json!("False");
            Reply::list(&[instance("cart-abc-aaaaa", 1), starting])
        }
        path if path.ends_with("/portforward") => Reply::Socket(|socket| Box::pin(echo(socket))),
        path if path == format!("{SERVICES}/cart") => {
            let mut cart = service("cart", 1, &status(1, "Ready", 1, 1));
            cart["spec"]["service"]["port"] = json!(8080);
            Reply::ok(cart)
        }
        other => panic!("{other}"),
    });
    let running = home.start_with(&fake, &["services", "port-forward", "cart", "0:", "-o", "json"]);
    let shown: serde_json::Value = serde_json::from_str(&running.line()).expect("JSON");
    assert_schema("port-forward", &shown);
    assert_eq!(shown["port"], 8080, "the service's own");
    let address = shown["address"].as_str().expect("an address");
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    assert_eq!(sent_back(address, "before"), "before");
    rolled.store(true, Ordering::Relaxed);
    assert_eq!(sent_back(address, "after"), "after");
    let reached: Vec<_> = fake.lines().into_iter().filter(|line| line.ends_with("/portforward")).collect();
    assert_eq!(reached, ["cart-abc-aaaaa", "cart-def-ccccc"].map(|name| format!("GET {PODS}/{name}/portforward")));
}

#[test]
fn without_a_ready_instance_or_a_free_port_it_does_not_start() {
    let home = Home::new();
    let fake = Fake::start(|request| match request.path.as_str() {
        PODS => {
            let mut starting = instance("cart-abc-bbbbb", 2);
            starting["status"]["conditions"][0]["status"] = json!("False");
            Reply::list(&[starting])
        }
        other => panic!("{other}"),
    });
    assert_eq!(
        home.run_with(&fake, &["services", "port-forward", "cart", "8080"]).stderr,
        "error: no instance of service 'cart' is ready\nhint: see why with: ankka services get cart -p shop\n"
    );
    let fake = Fake::start(|_| Reply::list(&[instance("cart-abc-aaaaa", 1)]));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
    let port = taken.local_addr().expect("an address").port();
    let ran = home.run_with(&fake, &["services", "port-forward", "cart", &format!("{port}:9000")]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.starts_with(&format!("error: failed to listen on 127.0.0.1:{port}: ")), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("hint: name another port here, e.g.: ankka services port-forward cart "),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_service_without_http_has_no_port_of_its_own() {
    let home = Home::new();
    let fake = Fake::start(|_| {
        let mut cart = service("cart", 1, &status(1, "Ready", 1, 1));
        cart["spec"]["service"]["http"] = json!(false);
        Reply::ok(cart)
    });
    assert_eq!(
        home.run_with(&fake, &["services", "port-forward", "cart"]).stderr,
        "error: service 'cart' serves no HTTP\nhint: name the port that is meant\n"
    );
}

#[test]
fn a_connection_that_cannot_be_accepted_keeps_no_core_busy() {
    let home = Home::new();
    let fake = Fake::start(|request| match request.path.as_str() {
        PODS => Reply::list(&[instance("cart-abc-aaaaa", 1)]),
        _ => Reply::Silence,
    });
    home.file("kubeconfig", fake.kubeconfig());
    // So few files that a handful of connections uses them up.
    let limited = format!("ulimit -n 24 && exec {} \"$@\"", env!("CARGO_BIN_EXE_ankka"));
    let mut command = Command::new("sh");
    command.args(["-c", &limited, "sh", "services", "port-forward", "cart", "0:9000", "-p", "shop", "-o", "name"]);
    command.args(["--kubeconfig", "kubeconfig"]).env_clear().env("HOME", home.path()).current_dir(home.path());
    let said = File::create(home.path().join("said")).expect("the home can be written to");
    let mut running = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(said).spawn().expect("it starts");
    let mut address = String::new();
    BufReader::new(running.stdout.take().expect("a pipe")).read_line(&mut address).expect("an address");
    let connections: Vec<_> = (0..40).map_while(|_| TcpStream::connect(address.trim()).ok()).collect();
    assert!(connections.len() > 24, "the kernel takes them, whether they are accepted or not");
    thread::sleep(Duration::from_secs(2));
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", running.id())).expect("it still runs");
    running.kill().and_then(|()| running.wait()).expect("it ends");
    let said = std::fs::read_to_string(home.path().join("said")).expect("it is there");
    assert_eq!(said.matches("a connection could not be accepted: ").count(), 1, "{said}");
    // Time on a processor, in hundredths of a second: behind the name in brackets, the twelfth and thirteenth field.
    let fields = stat.rsplit(") ").next().expect("fields").split(' ').skip(11).take(2);
    let busy: u64 = fields.map(|field| field.parse::<u64>().expect("a number")).sum();
    assert!(busy < 100, "{busy} hundredths of a second");
}
