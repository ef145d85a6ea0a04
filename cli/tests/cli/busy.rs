//! A server that is busy or starting, and what may be sent to it again.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::support::objects::{SERVICES, service, status};
use crate::support::{CART, Fake, Home, Ran, Reply, Stored};

const DATABASE: &str = "/apis/ankka.dev/v1alpha1/namespaces/ankka-shop/ankkadatabases/cart";

fn stored() -> Stored {
    Stored::new(service("cart", 2, &status(2, "Ready", 1, 1)))
}

/// Says at first that it took too long, whatever became of the request.
fn late(code: u16) -> Reply {
    let reason = if code == 504 { "Timeout" } else { "ServiceUnavailable" };
    Reply::status(code, reason, "request did not complete within the allotted duration", &json!({}))
}

/// Stores what it is sent the first time, and says then that it took too long.
fn storing_late(stored: &Stored, code: u16) -> Fake {
    let (kept, asked) = (stored.clone(), AtomicUsize::new(0));
    stored.serve(move |request| match request.path.as_str() {
        DATABASE => Some(Reply::ok(json!({
            "metadata": { "name": "cart" }, "spec": {}, "status": { "phase": "provisioned", "secret": "cart-db" },
        }))),
        _ if request.method == "PATCH" && asked.fetch_add(1, Ordering::Relaxed) == 0 => {
            kept.patch(request);
            Some(late(code))
        }
        _ => None,
    })
}

fn patches(fake: &Fake) -> usize {
    fake.lines().iter().filter(|line| **line == format!("PATCH {SERVICES}/cart")).count()
}

#[test]
fn a_change_that_may_be_stored_already_is_not_asked_for_again() {
    let table: [(&[&str], &str); 2] = [
        (&["restart", "cart"], "/spec/restarts"),
        (&["database", "reissue", "cart"], "/spec/database/credentialGeneration"),
    ];
    for code in [503, 504] {
        for (command, counter) in table {
            let stored = stored();
            let fake = storing_late(&stored, code);
            let ran = Home::new().run_with(&fake, &[&["services"], command].concat());
            assert_eq!(stored.now().pointer(counter), Some(&json!(1)), "{code}: {}", ran.transcript());
            assert_eq!((ran.status, patches(&fake)), (1, 1), "{code}: {}", ran.transcript());
            assert!(ran.stderr.contains("; whether it was changed is not known\n"), "{}", ran.stderr);
            assert!(
                ran.stderr.ends_with("before you try again, with: ankka services history cart -p shop\n"),
                "{}",
                ran.stderr
            );
        }
    }
}

#[test]
fn a_change_whose_answer_was_lost_is_not_said_to_have_failed() {
    // The connection breaks before the answer, and in the middle of it.
    let lost: [fn() -> Reply; 2] = [|| std::panic::resume_unwind(Box::new(())), || Reply::Broken("{".to_owned())];
    for lost in lost {
        let stored = stored();
        let kept = stored.clone();
        let fake = stored.serve(move |request| {
            (request.method == "PATCH").then(|| {
                kept.patch(request);
                lost()
            })
        });
        let ran = Home::new().run_with(&fake, &["services", "restart", "cart"]);
        assert_eq!((ran.status, patches(&fake)), (1, 1), "{}", ran.transcript());
        assert_eq!(stored.now()["spec"]["restarts"], 1);
        assert!(
            ran.stderr.starts_with("error: failed to restart service 'cart': the connection broke: "),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("; whether it was changed is not known\n"), "{}", ran.stderr);
    }
}

#[test]
fn a_change_that_was_turned_away_is_asked_for_again_and_counts_once() {
    let (stored, asked) = (stored(), AtomicUsize::new(0));
    let fake = stored.serve(move |request| {
        let first = request.method == "PATCH" && asked.fetch_add(1, Ordering::Relaxed) == 0;
        first.then(|| Reply::status(429, "TooManyRequests", "too many requests", &json!({})))
    });
    let ran = Home::new().run_with(&fake, &["services", "restart", "cart"]);
    assert_eq!((ran.status, patches(&fake)), (0, 2), "{}", ran.transcript());
    assert_eq!(stored.now()["spec"]["restarts"], 1);
}

#[test]
fn what_means_the_same_the_second_time_is_sent_again() {
    let stored = stored();
    let fake = storing_late(&stored, 504);
    let home = Home::new();
    home.file("service.json", CART.replace("1.4.2", "1.5.0"));
    let ran = home.run_with(&fake, &["services", "apply", "-f", "service.json"]);
    assert_eq!((ran.status, patches(&fake)), (0, 2), "{}", ran.transcript());
    assert_eq!(ran.stdout, "service/cart configured\n");
    let asked = AtomicUsize::new(0);
    let fake = stored.serve(move |_| (asked.fetch_add(1, Ordering::Relaxed) == 0).then(|| late(503)));
    assert_eq!(home.run_with(&fake, &["services", "get", "cart"]).status, 0);
}

/// A proxy that connects everybody to this server.
fn proxy(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).expect("a request");
                head.extend(byte);
            }
            assert!(head.starts_with(b"CONNECT "), "{}", String::from_utf8_lossy(&head));
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").expect("it listens");
            let server = TcpStream::connect(server).expect("it listens");
            let both = [(&client, &server), (&server, &client)];
            for (from, to) in both.map(|(from, to)| (from.try_clone(), to.try_clone())) {
                let (mut from, mut to) = (from.expect("a stream"), to.expect("a stream"));
                thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    address
}

#[test]
fn through_a_proxy_the_same_is_sent_again_and_no_more() {
    let stored = stored();
    let restarting = Arc::new(storing_late(&stored, 504));
    let run = |fake: &Fake, command: &str| {
        let mut kubeconfig: Value = serde_json::from_str(&fake.kubeconfig()).expect("JSON");
        kubeconfig["clusters"][0]["cluster"]["proxy-url"] = json!(format!("http://{}", proxy(fake.address())));
        let home = Home::new();
        home.file("kubeconfig", kubeconfig.to_string());
        Ran::of(&mut home.command(&["services", command, "cart", "-p", "shop", "--kubeconfig", "kubeconfig"]))
    };
    let ran = run(&restarting, "restart");
    assert_eq!((ran.status, patches(&restarting)), (1, 1), "{}", ran.transcript());
    assert_eq!(stored.now()["spec"]["restarts"], 1);
    let asked = AtomicUsize::new(0);
    let fake = stored.serve(move |_| (asked.fetch_add(1, Ordering::Relaxed) == 0).then(|| late(503)));
    let ran = run(&fake, "get");
    assert_eq!((ran.status, fake.lines().len()), (0, 2), "{}", ran.transcript());
}
