//! `ankka services render`.

use ankka_crds::{AnkkaService, Context, GROUP, ServiceSpec, VERSION, descriptor};
use clap::ValueEnum;
use kube::Resource;
use serde::Serialize;

use super::apply::refused;
use crate::args::Global;
use crate::error::{Exit, Outcome};
use crate::input::Input;
use crate::output;
use crate::settings::Settings;

/// Prints the resource that `ankka services apply` would store, the same bytes for the same descriptor.
#[derive(clap::Args)]
pub(crate) struct RenderArgs {
    /// Descriptor to render, or `-` for standard input
    #[arg(short, long, value_name = "FILE")]
    file: Input,

    /// How the resource is printed
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
}

/// How the resource is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// As YAML
    #[default]
    Yaml,
    /// As JSON
    Json,
}

impl RenderArgs {
    /// Whether errors are JSON too.
    pub(crate) fn json(&self) -> bool {
        self.output == Format::Json
    }
}

/// The resource as people keep it in git: what they ask for and nothing that the cluster adds.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<'a> {
    api_version: String,
    kind: &'a str,
    metadata: Metadata<'a>,
    spec: Spec<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
    namespace: &'a str,
}

#[derive(Serialize)]
struct Spec<'a> {
    service: &'a ServiceSpec,
}

/// Prints the resource.
pub(crate) fn render(args: &RenderArgs, global: &Global) -> Outcome {
    let text = args.file.read()?;
    let project = Settings::load()?.selected(global.project.as_deref())?;
    let context = Context { project: Some(&project.id), installation: None };
    let descriptor = match descriptor::read(&text, context) {
        Ok(descriptor) => descriptor,
        Err(problems) => return refused(&args.file, &text, &problems, args.json()),
    };
    let manifest = Manifest {
        api_version: format!("{GROUP}/{VERSION}"),
        kind: &AnkkaService::kind(&()),
        metadata: Metadata { name: &descriptor.name, namespace: &project.namespace },
        spec: Spec { service: &descriptor.service },
    };
    match args.output {
        Format::Yaml => output::yaml(&manifest)?,
        Format::Json => output::json(&manifest)?,
    }
    Ok(Exit::Success)
}
