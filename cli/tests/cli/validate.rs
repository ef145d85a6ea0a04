//! `ankka services validate`.

use insta::assert_snapshot;

use crate::support::{CART, Home, Ran, assert_schema};

const EIGHT: &str = r#"{
  "name": "Cart",
  "service": {
    "image": "",
    "hosting": "vm",
    "port": 0,
    "env": [
      { "name": "A", "value": "x", "secretKeyRef": { "name": "s", "key": "k" } },
      { "name": "" }
    ],
    "resources": { "instanceType": "xl", "autoscaling": { "minInstances": 0, "targetCpuPercent": 101 } }
  }
}
"#;

fn validate(text: impl AsRef<[u8]>, arguments: &[&str]) -> Ran {
    let home = Home::new();
    home.file("service.json", text);
    home.run(&[&["services", "validate", "-f", "service.json"], arguments].concat())
}

#[test]
fn every_problem_is_shown_in_the_file() {
    assert_snapshot!(validate(EIGHT, &[]).transcript());
}

#[test]
fn every_problem_is_printed_for_programs() {
    let ran = validate(EIGHT, &["-o", "json"]);
    assert_snapshot!(ran.transcript());
    assert_schema("validate", &ran.json());
}

#[test]
fn a_valid_descriptor_ends_with_status_0() {
    let ran = validate(CART, &[]);
    assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", "service.json is valid\n"));
    let ran = validate(CART, &["-o", "json"]);
    assert_eq!(ran.stdout, "{\"valid\":true,\"problems\":[]}\n");
    assert_schema("validate", &ran.json());
}

#[test]
fn standard_input_is_read_for_a_dash() {
    let home = Home::new();
    let ran = Ran::of(
        home.command(&["services", "validate", "-f", "-"])
            .write_stdin(r#"{"name":"cart","service":{"image":"i:1","port":70000}}"#),
    );
    assert_snapshot!(ran.transcript());
}

#[test]
fn what_is_far_too_large_is_not_read_to_the_end() {
    let ran = validate(vec![b' '; 17 << 20], &[]);
    assert_eq!(ran.status, 1);
    let said =
        "error: failed to read 'service.json': it goes on after 16777216 bytes, and a descriptor has at most 1048576\n";
    assert_eq!(ran.stderr, said);
}

#[test]
fn what_cannot_be_read_is_named() {
    let home = Home::new();
    assert_snapshot!(home.run(&["services", "validate", "-f", "nothing.json"]).transcript(), @r"
    status: 1
    ----- stdout -----
    ----- stderr -----
    error: failed to read 'nothing.json': no such file or directory
    ");
    let folder = home.run(&["services", "validate", "-f", "."]);
    assert_eq!(folder.stderr, "error: failed to read '.': is a directory\n");
    let ran = home.run(&["services", "validate", "-f", "nothing.json", "-o", "json"]);
    assert_eq!(ran.status, 1);
    assert_schema("error", &ran.error());
}

#[test]
fn an_empty_file_is_a_problem_with_a_place() {
    assert_snapshot!(validate("", &[]).transcript());
}

#[test]
fn bytes_that_are_not_text_have_a_place_too() {
    assert_snapshot!(validate(b"{\"name\":\"cart\",\n\"service\":{\"image\":\"\xff\"}}", &[]).transcript());
}

#[test]
fn columns_are_those_an_editor_shows() {
    let ran = validate(
        "\u{feff}{ \"name\": \"1cart\",\r\n  \"service\": { \"labels\": { \"ä\": \"b\" }, \"image\": \"i:1\", \"port\": 0 } }\r\n",
        &[],
    );
    assert_snapshot!(ran.transcript());
}

#[test]
fn a_project_is_judged_with_the_descriptor() {
    let ran = validate(CART, &["-p", "Shop"]);
    assert_eq!(ran.status, 1);
    assert_eq!(
        ran.stderr,
        "error: project id 'Shop' is invalid: lowercase letters, digits and '-', starting with a letter\n"
    );
}

#[test]
fn a_bad_command_line_ends_with_status_2() {
    let home = Home::new();
    for arguments in [
        &["services", "validate"][..],
        &["services", "validate", "-f", "x", "-o", "yaml"],
        &["services", "frobnicate"],
        &["services", "apply", "-f", "x", "--wait=soon"],
        &["services", "apply", "-f", "x", "--wait=1m", "--no-wait"],
        &["config", "set", "colour", "red"],
    ] {
        let ran = home.run(arguments);
        assert_eq!(ran.status, 2, "{arguments:?}: {}", ran.transcript());
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn nothing_is_coloured_in_a_pipe_or_when_colour_is_not_wanted() {
    let home = Home::new();
    home.file("service.json", EIGHT);
    let arguments = ["services", "validate", "-f", "service.json"];
    let escape = '\u{1b}';
    assert!(!home.run(&arguments).stderr.contains(escape));
    let forced = Ran::of(home.command(&arguments).env("CLICOLOR_FORCE", "1"));
    assert!(forced.stderr.contains(escape), "colour can be asked for");
    let unwanted = Ran::of(home.command(&arguments).env("NO_COLOR", "1"));
    assert!(!unwanted.stderr.contains(escape));
}

#[test]
fn the_whole_corpus_is_answered_as_written_beside_it() {
    let home = Home::new();
    let cases: Vec<_> = ankka_crds::corpus::cases()
        .into_iter()
        .filter(|case| case.layers.contains(&ankka_crds::corpus::Layer::File) && case.context().installation.is_none())
        .collect();
    assert!(cases.len() > 50, "only {} cases", cases.len());
    for case in cases {
        home.file("service.json", &case.text);
        let mut arguments = vec!["services", "validate", "-f", "service.json", "-o", "json"];
        let context = case.context();
        if let Some(project) = context.project {
            arguments.extend(["-p", project]);
        }
        let ran = home.run(&arguments);
        let expected: Vec<_> = case
            .problems
            .iter()
            .map(|problem| {
                serde_json::json!({
                    "message": problem.message, "path": problem.path,
                    "line": problem.line, "column": problem.column,
                })
            })
            .collect();
        let answer = serde_json::json!({ "valid": expected.is_empty(), "problems": expected });
        assert_eq!(ran.json(), answer, "{}", case.name);
        assert_eq!(ran.status, i32::from(!expected.is_empty()), "{}", case.name);

        // People are shown the same messages at the same places.
        let text = home.run(&[&["services", "validate", "-f", "service.json"], &arguments[6..]].concat()).stderr;
        for problem in &case.problems {
            let place = format!("--> service.json:{}:{}", problem.line, problem.column);
            assert!(text.contains(&place), "{}: {place} is not in {text}", case.name);
        }
    }
}
