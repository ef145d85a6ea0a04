//! `ankka services exec`.

use axum::extract::ws::{Message, WebSocket};
use serde_json::json;

use crate::support::objects::{PODS, instance};
use crate::support::{Fake, Home, Ran, Reply, Request, assert_schema};

/// Writes to both outputs, gives standard input back, and ends with code 42.
async fn echo(mut socket: WebSocket) {
    let frame = |channel: u8, text: &[u8]| Message::Binary([&[channel], text].concat().into());
    socket.send(frame(1, b"out\n")).await.expect("it listens");
    socket.send(frame(2, b"err\n")).await.expect("it listens");
    while let Some(Ok(Message::Binary(bytes))) = socket.recv().await {
        match bytes.first() {
            Some(0) => socket.send(frame(1, &bytes[1..])).await.expect("it listens"),
            // Standard input is at its end.
            Some(255) => break,
            other => panic!("{other:?}"),
        }
    }
    end(&mut socket).await;
}

/// Ends with code 42 at once.
async fn end(socket: &mut WebSocket) {
    let causes = json!([{ "reason": "ExitCode", "message": "42" }]);
    let status = json!({ "status": "Failure", "reason": "NonZeroExitCode", "details": { "causes": causes } });
    let text = status.to_string();
    socket.send(Message::Binary([&[3], text.as_bytes()].concat().into())).await.expect("it listens");
}

fn cluster(request: &Request) -> Reply {
    let mut starting = instance("cart-abc-aaaaa", 1);
    starting["status"]["conditions"][0]["status"] = json!("False");
    match request.path.as_str() {
        PODS => Reply::list(&[starting, instance("cart-abc-bbbbb", 2), instance("cart-abc-ccccc", 3)]),
        _ if request.query.contains("stdin=true") => Reply::Socket(|socket| Box::pin(echo(socket))),
        _ => Reply::Socket(|mut socket| Box::pin(async move { end(&mut socket).await })),
    }
}

#[test]
fn a_command_ends_as_it_ends_in_the_instance() {
    let (home, fake) = (Home::new(), Fake::start(cluster));
    let ran = home.run_with(&fake, &["services", "exec", "cart", "--", "sh", "-c", "exit 42"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (42, ""), "{}", ran.transcript());
    assert_eq!(ran.stderr, "in instance 'cart-abc-bbbbb'\n", "the oldest that is ready");
    let asked = &fake.requests()[1];
    assert_eq!(asked.path, format!("{PODS}/cart-abc-bbbbb/exec"));
    assert!(asked.query.contains("command=sh&command=-c&command=exit+42"), "{}", asked.query);
    assert!(asked.query.contains("container=service") && !asked.query.contains("tty=true"), "{}", asked.query);
}

#[test]
fn standard_input_is_passed_on_to_its_end() {
    let (home, fake) = (Home::new(), Fake::start(cluster));
    home.file("kubeconfig", fake.kubeconfig());
    let long = "x".repeat(300_000);
    let arguments = ["services", "exec", "-i", "cart", "-p", "shop", "--kubeconfig", "kubeconfig", "--", "cat"];
    let ran = Ran::of(home.command(&arguments).write_stdin(long.clone()));
    assert_eq!(ran.status, 42);
    assert_eq!(ran.stdout, format!("out\n{long}"));
    assert!(ran.stderr.ends_with("err\n"), "{}", ran.stderr);
}

#[test]
fn programs_get_all_that_was_printed_in_one_object() {
    let (home, fake) = (Home::new(), Fake::start(cluster));
    home.file("kubeconfig", fake.kubeconfig());
    let named =
        ["services", "exec", "-i", "cart", "-o", "json", "-p", "shop", "--kubeconfig", "kubeconfig", "--", "cat"];
    let ran = Ran::of(home.command(&named).write_stdin("in"));
    assert_eq!(ran.status, 42, "{}", ran.transcript());
    assert_schema("exec", &ran.json());
    assert_eq!(
        ran.json(),
        json!({
            "instance": "cart-abc-bbbbb", "container": "service", "exitCode": 42, "stdout": "out\nin", "stdoutTruncated": false, "stderr": "err\n", "stderrTruncated": false,
        })
    );
}

#[test]
fn a_connection_that_breaks_is_no_success() {
    let home = Home::new();
    let fake = Fake::start(|request| match request.path.as_str() {
        PODS => Reply::list(&[instance("cart-abc-aaaaa", 1)]),
        _ => Reply::Socket(|socket| Box::pin(async move { drop(socket) })),
    });
    let ran = home.run_with(&fake, &["services", "exec", "cart", "--", "true"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.starts_with("error: the connection to instance 'cart-abc-aaaaa' broke\n"), "{}", ran.stderr);
}

#[test]
fn without_a_running_instance_or_the_right_it_is_said() {
    let home = Home::new();
    let fake = Fake::start(|request| match request.path.as_str() {
        PODS => {
            let mut waiting = instance("cart-abc-aaaaa", 1);
            waiting["status"]["containerStatuses"][0]["state"] = json!({ "waiting": { "reason": "ErrImagePull" } });
            Reply::list(&[waiting])
        }
        other => panic!("{other}"),
    });
    assert_eq!(
        home.run_with(&fake, &["services", "exec", "cart", "--", "true"]).stderr,
        "error: no instance of service 'cart' is running\nhint: see why with: ankka services get cart -p shop\n"
    );
    let fake = Fake::start(|request| {
        let said = "pods \"cart-abc-aaaaa\" is forbidden: User \"ann\" cannot create resource \"pods/exec\"";
        match request.path.as_str() {
            PODS => Reply::list(&[instance("cart-abc-aaaaa", 1)]),
            _ => Reply::status(403, "Forbidden", said, &json!({ "kind": "pods" })),
        }
    });
    assert_eq!(
        home.run_with(&fake, &["services", "exec", "cart", "--", "true"]).stderr,
        "error: failed to run a command in instance 'cart-abc-aaaaa': User \"ann\" cannot create resource \"pods/exec\"\n\
         hint: ask an administrator of the cluster for the role edit in the namespace 'ankka-shop'\n"
    );
}

#[test]
fn a_keyboard_is_not_taken_when_nobody_sees_what_it_types() {
    let fake = Fake::start(|request| match request.path.as_str() {
        PODS => cluster(request),
        _ => Reply::Socket(|mut socket| Box::pin(async move { end(&mut socket).await })),
    });
    let home = Home::new();
    home.file("kubeconfig", fake.kubeconfig());
    // The two ends are files: closed when they are dropped, after the command has ended.
    let keyboard = nix::pty::openpty(None, None).expect("a terminal");
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_ankka"))
        .args(["services", "exec", "cart", "-p", "shop", "--kubeconfig", "kubeconfig", "--", "cat", "/data"])
        .env_clear()
        .env("HOME", home.path())
        .current_dir(home.path())
        .stdin(keyboard.slave)
        .output()
        .expect("it runs");
    assert_eq!(ran.status.code(), Some(42), "{}", String::from_utf8_lossy(&ran.stderr));
    let query = &fake.requests()[1].query;
    assert!(!query.contains("stdin=true") && !query.contains("tty=true"), "{query}");
}

#[test]
fn what_is_cut_off_is_said_to_be() {
    async fn long(mut socket: WebSocket) {
        for (channel, length) in [(1, 700_000), (1, 700_000), (2, 1024 * 1024)] {
            let frame = [&[channel][..], &vec![b'x'; length]].concat();
            socket.send(Message::Binary(frame.into())).await.expect("it listens");
        }
        end(&mut socket).await;
    }
    let fake = Fake::start(|request| match request.path.as_str() {
        PODS => cluster(request),
        _ => Reply::Socket(|socket| Box::pin(long(socket))),
    });
    let ran = Home::new().run_with(&fake, &["services", "exec", "cart", "-o", "json", "--", "cat", "/data"]);
    let json = ran.json();
    assert_schema("exec", &json);
    assert_eq!((&json["stdoutTruncated"], &json["stderrTruncated"]), (&json!(true), &json!(false)));
    for output in ["stdout", "stderr"] {
        assert_eq!(json[output].as_str().map(str::len), Some(1024 * 1024), "{output}");
    }
}
