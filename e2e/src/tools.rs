//! The programs of a Kubernetes cluster, built from Go modules that `tools/` pins, once, into the cache.

use std::{
    fs::File,
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

/// One module of `tools/` and how to build it.
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
    /// Files of the module that are wanted beside its programs.
    files: Option<Files>,
}

/// Files of a module, below one of its folders.
#[derive(Debug)]
struct Files {
    module: &'static str,
    folder: &'static str,
    names: &'static [&'static str],
}

/// What kwok does to nodes and pods.
pub(crate) const KWOK_STAGES: [&str; 5] = [
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
];

const TOOLS: [Tool; 7] = [
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
        files: Some(Files { module: "sigs.k8s.io/kwok", folder: "kustomize/stage", names: &KWOK_STAGES }),
        ..Tool::plain("kwok", "2 to 3 minutes")
    },
];

impl Tool {
    const fn plain(name: &'static str, duration: &'static str) -> Self {
        Self { name, cgo: false, ldflags: "", duration, rename: None, files: None }
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

    /// Folder of its programs in the cache: its name says everything the build depends on.
    fn folder(&self, cache: &Path) -> Result<PathBuf> {
        let mut digest = Sha256::new();
        for file in ["go.mod", "go.sum"] {
            let file = self.module().join(file);
            digest.update(std::fs::read(&file).with_context(|| format!("failed to read {}", file.display()))?);
            digest.update([0]);
        }
        digest.update(format!("{:?} {} {:?} {:?}", self.flags(), self.cgo, self.rename, self.files));
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
        Run::new("go")
            .args(["build"])
            .args(self.flags())
            .args(["-o".as_ref(), bin.join("").as_os_str(), "tool".as_ref()])
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
        if let Some(files) = &self.files {
            files.copy(&self.module(), &bin).await?;
        }
        std::fs::rename(&temporary, folder).with_context(|| format!("failed to put {} in place", folder.display()))
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
        if run::find("go").is_none() {
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
