//! The programs of the platform that no package of the operating system brings, made once, into the cache: built from Go modules or
//! from a crate, or taken from a Python package, as `tools/` pins them.

use std::{
    fs::File,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::{
    digest::hex,
    paths::{Paths, workspace},
    progress, run,
    run::Run,
};

/// One folder of `tools/` and how to make its programs.
struct Tool {
    name: &'static str,
    /// C is wanted for what Kubernetes' own releases build with it.
    cgo: bool,
    /// Beside `-s -w`.
    ldflags: &'static str,
    /// From nothing, on two cores.
    duration: &'static str,
    /// A program whose package has another name.
    rename: Option<(&'static str, &'static str)>,
    /// Files of its modules that are wanted beside its programs.
    files: &'static [Files],
    /// Where the program is in the Python package that `requirements.txt` names, when there is nothing to build.
    packaged: Option<&'static str>,
    /// A program of our own, in the folder itself: what it is built from beside the pins.
    source: Option<&'static str>,
    /// It is a crate, which `crate.txt` names, and this is what `cargo install` is told of it.
    installed: Option<&'static [&'static str]>,
}

/// The object store. Optimised little: with its own settings its build would take four times as long.
const GARAGE: [&str; 8] = [
    "--no-default-features",
    "--features=bundled-libs,lmdb",
    "--config",
    "profile.release.opt-level=1",
    "--config",
    "profile.release.lto='off'",
    "--config",
    "profile.release.codegen-units=16",
];

/// Files of a module, below one of its folders.
#[derive(Debug)]
struct Files {
    module: &'static str,
    folder: &'static str,
    names: &'static [&'static str],
}

/// The resources of the Gateway API that Contour watches.
pub(crate) const GATEWAY_API: [&str; 8] = [
    "gateway.networking.k8s.io_backendtlspolicies.yaml",
    "gateway.networking.k8s.io_gatewayclasses.yaml",
    "gateway.networking.k8s.io_gateways.yaml",
    "gateway.networking.k8s.io_grpcroutes.yaml",
    "gateway.networking.k8s.io_httproutes.yaml",
    "gateway.networking.k8s.io_referencegrants.yaml",
    "gateway.networking.k8s.io_tcproutes.yaml",
    "gateway.networking.k8s.io_tlsroutes.yaml",
];
/// Contour's own resources.
pub(crate) const CONTOUR_API: [&str; 1] = ["01-crds.yaml"];

/// What kwok does to nodes and pods.
pub(crate) const KWOK_STAGES: [&str; 5] = [
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
];

const TOOLS: [Tool; 11] = [
    Tool {
        cgo: true,
        ldflags: "-X k8s.io/component-base/version.gitVersion=v1.36.3 \
                  -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36",
        ..Tool::plain("kubernetes", "8 to 14 minutes")
    },
    Tool { rename: Some(("server", "etcd")), ..Tool::plain("etcd", "about 80 s") },
    Tool::plain("containerd", "about 2 minutes"),
    Tool::plain("cni", "about 20 s"),
    Tool::plain("helm", "2 to 3 minutes"),
    Tool::plain("coredns", "2 to 3 minutes"),
    Tool {
        files: &[Files { module: "sigs.k8s.io/kwok", folder: "kustomize/stage", names: &KWOK_STAGES }],
        ..Tool::plain("kwok", "2 to 3 minutes")
    },
    Tool {
        files: &[
            Files { module: "sigs.k8s.io/gateway-api", folder: "config/crd/experimental", names: &GATEWAY_API },
            Files { module: "github.com/projectcontour/contour", folder: "examples/contour", names: &CONTOUR_API },
        ],
        ..Tool::plain("contour", "2 to 3 minutes")
    },
    Tool { packaged: Some("envoy/_bin/envoy"), ..Tool::plain("envoy", "some seconds") },
    Tool { source: Some("main.go"), ..Tool::plain("kstatus", "about 20 s") },
    Tool { installed: Some(&GARAGE), ..Tool::plain("garage", "6 to 25 minutes") },
];

impl Tool {
    const fn plain(name: &'static str, duration: &'static str) -> Self {
        Self {
            name,
            cgo: false,
            ldflags: "",
            duration,
            rename: None,
            files: &[],
            packaged: None,
            source: None,
            installed: None,
        }
    }

    fn module(&self) -> PathBuf {
        workspace().join("e2e/tools").join(self.name)
    }

    fn flags(&self) -> [String; 4] {
        [
            "-trimpath".into(),
            "-buildvcs=false".into(),
            "-ldflags".into(),
            format!("-s -w {}", self.ldflags).trim_end().into(),
        ]
    }

    fn is_of_go(&self) -> bool {
        self.packaged.is_none() && self.installed.is_none()
    }

    /// Folder of its programs in the cache: its name says everything the build depends on.
    fn folder(&self, cache: &Path) -> Result<PathBuf> {
        let mut digest = Sha256::new();
        let pins: &[&str] = match (self.packaged, self.installed) {
            (Some(_), _) => &["requirements.txt"],
            (_, Some(_)) => &["crate.txt"],
            _ => &["go.mod", "go.sum"],
        };
        for file in pins.iter().chain(&self.source) {
            let file = self.module().join(file);
            digest.update(std::fs::read(&file).with_context(|| format!("failed to read {}", file.display()))?);
            digest.update([0]);
        }
        let mut files = self.files.iter();
        match self.installed {
            Some(arguments) => digest.update(format!("{arguments:?}")),
            None => digest.update(format!("{:?} {} {:?} {:?}", self.flags(), self.cgo, self.rename, files.next())),
        }
        files.for_each(|files| digest.update(format!("{files:?}")));
        Ok(cache.join("tools").join(format!("{}-{}", self.name, hex(digest, 8))))
    }

    /// Builds into a folder beside the final one, then renames: what is found in the cache is always whole.
    async fn build(&self, folder: &Path) -> Result<()> {
        let parent = folder.parent().context("the folder lies in the cache")?;
        std::fs::create_dir_all(parent).with_context(|| format!("failed to create {}", parent.display()))?;
        let temporary = parent.join("building"); // nobody else builds: the cache is locked
        if temporary.exists() {
            std::fs::remove_dir_all(&temporary).context("failed to remove what an interrupted build left")?;
        }
        let bin = temporary.join("bin");
        match (self.packaged, self.installed) {
            (Some(program), _) => self.unpack(program, &bin).await?,
            (_, Some(arguments)) => self.install(arguments, &temporary).await?,
            _ => self.compile(&bin).await?,
        }
        std::fs::rename(&temporary, folder).with_context(|| format!("failed to put {} in place", folder.display()))
    }

    /// Builds its programs into `bin`.
    async fn compile(&self, bin: &Path) -> Result<()> {
        Run::new("go")
            .args(["build"])
            .args(self.flags())
            .args(["-o".as_ref(), bin.join("").as_os_str(), if self.source.is_some() { "." } else { "tool" }.as_ref()])
            .dir(&self.module())
            .env("CGO_ENABLED", if self.cgo { "1" } else { "0" })
            .env("GOWORK", "off")
            .limit(Duration::from_hours(1))
            .text()
            .await
            .with_context(|| format!("failed to build {} from {}", self.name, self.module().display()))?;
        if let Some((built, wanted)) = self.rename {
            std::fs::rename(bin.join(built), bin.join(wanted))?;
        }
        for files in self.files {
            files.copy(&self.module(), bin).await?;
        }
        Ok(())
    }

    /// Builds its crate into `bin` below `root`, from the versions that the crate's own lock file pins.
    async fn install(&self, arguments: &[&str], root: &Path) -> Result<()> {
        let pin = self.module().join("crate.txt");
        let name = std::fs::read_to_string(&pin).with_context(|| format!("failed to read {}", pin.display()))?;
        let target = root.join("target");
        Run::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["install", "--locked", "--no-track", name.trim()])
            .args(arguments)
            .args(["--root".as_ref(), root.as_os_str(), "--target-dir".as_ref(), target.as_os_str()])
            // Not the workspace, whose own settings are for its own crates.
            .dir(root.parent().context("the folder lies in the cache")?)
            .limit(Duration::from_hours(1))
            .text()
            .await
            .with_context(|| format!("failed to build {}", name.trim()))?;
        std::fs::remove_dir_all(&target).context("failed to remove what the build left")
    }

    /// Takes `program` out of its Python package into `bin`.
    async fn unpack(&self, program: &str, bin: &Path) -> Result<()> {
        let folder = bin.parent().context("the programs lie in a folder")?.join("package");
        let python = |args: &[&str]| Run::new("python3").args(["-m"]).args(args).limit(Duration::from_mins(10));
        python(&["pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"])
            .args(["--requirement".as_ref(), self.module().join("requirements.txt").as_os_str()])
            .args(["--dest".as_ref(), folder.as_os_str()])
            .text()
            .await
            .with_context(|| format!("failed to fetch {}; it takes Python 3 with pip", self.name))?;
        let wheel = std::fs::read_dir(&folder)?.next().context("pip fetched nothing")??.path();
        python(&["zipfile", "--extract"]).args([&wheel, &folder]).text().await?;
        std::fs::create_dir_all(bin)?;
        let target = bin.join(self.name);
        std::fs::rename(folder.join(program), &target)
            .with_context(|| format!("{} holds no {program}", wheel.display()))?;
        std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o755))?;
        std::fs::remove_dir_all(&folder).context("failed to remove the unpacked package")
    }
}

impl Files {
    /// Copies them into `target`, by their names below the module's folder.
    async fn copy(&self, module: &Path, target: &Path) -> Result<()> {
        let list = Run::new("go").args(["list", "-m", "-f", "{{.Dir}}", self.module]).dir(module).env("GOWORK", "off");
        let folder = PathBuf::from(list.text().await?.trim()).join(self.folder);
        for name in self.names {
            let content = std::fs::read(folder.join(name))
                .with_context(|| format!("failed to read {name} of {}", self.module))?;
            crate::paths::write(&target.join(name), content)?;
        }
        Ok(())
    }
}

/// Folders of the built programs.
#[derive(Clone, Debug)]
pub struct Tools {
    folders: Vec<(&'static str, PathBuf)>,
}

impl Tools {
    /// Where the programs are, or will be once built.
    ///
    /// # Errors
    /// When a pinned module file cannot be read.
    pub fn locate(paths: &Paths) -> Result<Self> {
        let folders =
            TOOLS.iter().map(|tool| Ok((tool.name, tool.folder(&paths.cache)?.join("bin")))).collect::<Result<_>>()?;
        Ok(Self { folders })
    }

    /// Builds those of these tools that are not in the cache yet, one after another, saying so. Commands that want the same wait for
    /// each other. No names mean all tools.
    ///
    /// # Errors
    /// When Go is missing or a build fails: the error ends with the last lines of the build.
    pub async fn build(paths: &Paths, names: &[&str]) -> Result<Self> {
        let tools = Self::locate(paths)?;
        let wanted = |tool: &&Tool| names.is_empty() || names.contains(&tool.name);
        let missing = |tool: &&Tool| wanted(tool) && tool.folder(&paths.cache).is_ok_and(|folder| !folder.exists());
        if !TOOLS.iter().any(|tool| missing(&tool)) {
            return Ok(tools);
        }
        if TOOLS.iter().any(|tool| missing(&tool) && tool.is_of_go()) && run::find("go").is_none() {
            bail!(
                "the programs of the local platform are built with Go, which is not installed: install Go 1.26 or later"
            );
        }
        std::fs::create_dir_all(&paths.cache)?;
        let lock = File::create(paths.cache.join("tools.lock"))?;
        let _held = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock))
            .await?
            .context("failed to lock the cache")?;
        for tool in TOOLS.iter().filter(missing) {
            let hint = format!("{} on two cores, only this once", tool.duration);
            progress::step(&format!("building {}", tool.name), Some(&hint), tool.build(&tool.folder(&paths.cache)?))
                .await?;
        }
        Ok(tools)
    }

    /// Folder with the programs of one tool.
    pub fn folder(&self, tool: &str) -> &Path {
        let found = self.folders.iter().find(|(name, _)| *name == tool);
        &found.expect("tools are asked for by the names of the table above").1
    }

    /// Path of one program.
    pub fn program(&self, tool: &str, program: &str) -> PathBuf {
        self.folder(tool).join(program)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test ends where it fails")]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_is_stamped_with_the_version_that_is_pinned() {
        let tool = TOOLS.iter().find(|tool| tool.name == "kubernetes").unwrap();
        let pins = std::fs::read_to_string(tool.module().join("go.mod")).unwrap();
        let pinned = pins.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes ")).unwrap();
        let version = pinned.split(' ').next().unwrap();
        assert!(
            tool.ldflags.contains(&format!("gitVersion={version} ")),
            "{version} is pinned, {} is stamped",
            tool.ldflags
        );
    }

    #[test]
    fn another_pin_or_flag_means_another_folder() {
        let folder = |tool: &Tool| tool.folder(Path::new("/cache")).unwrap();
        let etcd = Tool::plain("etcd", "");
        assert_ne!(folder(&etcd), folder(&Tool { ldflags: "-X a=b", ..Tool::plain("etcd", "") }));
        assert_ne!(folder(&etcd), folder(&Tool { cgo: true, ..Tool::plain("etcd", "") }));
        assert_eq!(folder(&etcd), folder(&Tool::plain("etcd", "another guess")));
        assert!(folder(&etcd).starts_with("/cache/tools"));
    }
}
