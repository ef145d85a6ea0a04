//! Container images without a registry: programs of this machine, packed by the Dockerfile that describes the images for a
//! registry too, kept in the cache, imported into containerd.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::{containerd, layout::Layout};
use crate::{
    digest::hex,
    paths::{self, workspace},
    run::{self, Run},
};

/// The image that holds a pod's namespaces open.
pub(crate) const PAUSE: &str = "docker.io/local/pause:1";

/// Programs beside the example service in the image for tests; the first is what they are started by.
const BENCH: [&str; 4] = ["sh", "cat", "sleep", "stty"];

/// Where an ELF file names the processor it is for, and one that is not this machine's (RISC-V).
const ELF_PROCESSOR: usize = 18;
const FOREIGN_PROCESSOR: [u8; 2] = 243_u16.to_le_bytes();

/// Archives kept of each image; older ones are removed.
const KEPT: usize = 4;

/// Files that the C library needs to look up names and users, as the Dockerfile's first stage makes them.
const SYSTEM: [(&str, &str); 3] = [
    ("root/etc/nsswitch.conf", "hosts: files dns\n"),
    ("root/etc/passwd", "nonroot:x:65532:65532::/:/sbin/nologin\n"),
    ("root/etc/group", "nonroot:x:65532:\n"),
];

/// What goes into one image.
#[derive(Clone, Debug)]
pub struct Packing {
    dockerfile: PathBuf,
    target: String,
    /// Where files come from, and where they go below the folder that stands for the Dockerfile's first stage.
    files: Vec<(PathBuf, String)>,
    digest: String,
}

impl Packing {
    /// One program of this machine, as `target` of `helm/images/Dockerfile` wants it: with the libraries it is linked to.
    ///
    /// # Errors
    /// When the program or a library cannot be read.
    pub async fn of_program(target: &str, program: &Path) -> Result<Self> {
        let name = program.file_name().and_then(|name| name.to_str()).context("a program has a name")?;
        let mut files = vec![(program.to_owned(), format!("image/bin/{name}"))];
        files.extend(
            libraries(program).await?.into_iter().map(|file| (file.clone(), format!("image/root{}", file.display()))),
        );
        let authorities = PathBuf::from("/etc/ssl/certs/ca-certificates.crt");
        if authorities.exists() {
            files.push((authorities, "image/root/etc/ssl/certs/ca-certificates.crt".to_owned()));
        }
        Self::new(workspace().join("helm/images/Dockerfile"), target, files)
    }

    /// The example service with a shell beside it, for tests.
    ///
    /// # Errors
    /// When a program is not installed, or it or a library cannot be read.
    pub async fn workbench(cart: &Path) -> Result<Self> {
        let mut files = vec![(cart.to_owned(), "image/bin/cart".to_owned())];
        for name in BENCH {
            let program = run::find(name).with_context(|| format!("{name} is not installed"))?;
            files.push((program, format!("image/bin/{name}")));
        }
        let mut needed = BTreeSet::new();
        for (program, _) in &files {
            needed.extend(libraries(program).await?);
        }
        files.extend(needed.into_iter().map(|file| (file.clone(), format!("image/root{}", file.display()))));
        Self::new(workspace().join("e2e/images/workbench/Dockerfile"), "workbench", files)
    }

    /// The pause image with a program in `folder` that is for another processor, for tests.
    ///
    /// # Errors
    /// As [`Packing::of_program`].
    pub async fn foreign(folder: &Path) -> Result<Self> {
        let Self { dockerfile, target, files, .. } = Self::pause(folder).await?;
        let program = folder.join("pause");
        let mut bytes = std::fs::read(&program).context("failed to read the pause program")?;
        bytes[ELF_PROCESSOR..][..2].copy_from_slice(&FOREIGN_PROCESSOR);
        std::fs::write(&program, bytes).context("failed to write the program for another processor")?;
        Self::new(dockerfile, &target, files)
    }

    /// The pause program, compiled in `folder`.
    async fn pause(folder: &Path) -> Result<Self> {
        let sources = workspace().join("e2e/images/pause");
        let program = folder.join("pause");
        let arguments = [Path::new("-static"), Path::new("-Os"), Path::new("-o"), &program, &sources.join("pause.c")];
        Run::new("gcc").args(arguments).text().await.context("failed to compile the pause program")?;
        Self::new(sources.join("Dockerfile"), "pause", vec![(program, "image/bin/pause".to_owned())])
    }

    fn new(dockerfile: PathBuf, target: &str, files: Vec<(PathBuf, String)>) -> Result<Self> {
        let mut digest = Sha256::new();
        let recipe = (dockerfile.clone(), target.to_owned());
        for (outside, inside) in std::iter::once(&recipe).chain(&files) {
            digest.update(inside);
            digest.update(std::fs::read(outside).with_context(|| format!("failed to read {}", outside.display()))?);
        }
        Ok(Self { dockerfile, target: target.to_owned(), files, digest: hex(digest, 8) })
    }

    /// 16 hexadecimal digits that change with anything the image holds.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// Makes the pause image and imports it.
pub(crate) async fn import_pause(layout: &Layout) -> Result<()> {
    let folder = tempfile::tempdir()?;
    import(layout, &Packing::pause(folder.path()).await?, PAUSE).await.map(drop)
}

/// Makes the image, unless it is in the cache, and imports it under `reference`, unless the node has it. Returns whether it had
/// not.
pub(crate) async fn import(layout: &Layout, packing: &Packing, reference: &str) -> Result<bool> {
    let plain = reference.replace(['/', ':'], "_");
    let record = layout.file("images").join(&plain);
    if std::fs::read_to_string(&record).is_ok_and(|digest| digest == packing.digest) {
        return Ok(false);
    }
    let archive =
        layout.paths.cache.join("images").join(&packing.target).join(format!("{plain}-{}.tar", packing.digest));
    if !archive.exists() {
        build(layout, packing, reference, &archive).await.with_context(|| format!("failed to make {reference}"))?;
    }
    containerd::ctr(layout)
        .args(["images", "import", "--snapshotter", containerd::snapshotter(&layout.paths.state)])
        .args([&archive])
        .limit(Duration::from_mins(2))
        .text()
        .await
        .with_context(|| format!("failed to import {reference}"))?;
    paths::write(&record, &packing.digest)?;
    Ok(true)
}

/// Builds with storage of its own that goes with the build, or with the platform; the archive appears whole.
async fn build(layout: &Layout, packing: &Packing, reference: &str, archive: &Path) -> Result<()> {
    let folder = archive.parent().context("an archive lies in a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    let builds = layout.file("builds");
    std::fs::create_dir_all(&builds)?;
    let temporary = tempfile::tempdir_in(builds)?;
    let (stage, nothing) = (temporary.path().join("stage"), temporary.path().join("nothing"));
    std::fs::create_dir_all(&nothing)?;
    for (outside, inside) in &packing.files {
        let target = stage.join(inside);
        std::fs::create_dir_all(target.parent().context("a file has a folder")?)?;
        std::fs::copy(outside, &target).with_context(|| format!("failed to copy {}", outside.display()))?;
    }
    for (inside, content) in SYSTEM {
        paths::write(&stage.join("image").join(inside), content)?;
    }

    let buildah = |args: &[&str]| {
        let storage = |name: &str| temporary.path().join(name).display().to_string();
        Run::new("buildah")
            .args(["--storage-driver", "vfs", "--root", &storage("storage"), "--runroot", &storage("run")])
            .args(args)
            .limit(Duration::from_mins(3))
    };
    let random = temporary.path().file_name().context("a temporary folder has a name")?.display().to_string();
    let unfinished = archive.with_extension(format!("{random}.partial"));
    let (Some(dockerfile), Some(stage), Some(nothing), Some(tar)) =
        (packing.dockerfile.to_str(), stage.to_str(), nothing.to_str(), unfinished.to_str())
    else {
        bail!("the paths of the checkout and of the cache have to be UTF-8");
    };
    buildah(&["bud", "--isolation", "chroot", "--timestamp", "0", "--file", dockerfile])
        .args(["--build-context", &format!("build={stage}"), "--target", &packing.target, "--tag", reference, nothing])
        .text()
        .await?;
    buildah(&["push", "--disable-compression", reference, &format!("oci-archive:{tar}:{reference}")]).text().await?;
    std::fs::rename(&unfinished, archive).with_context(|| format!("failed to write {}", archive.display()))?;
    remove_old(folder)
}

/// Removes all but the latest archives.
fn remove_old(folder: &Path) -> Result<()> {
    let written =
        |path: &PathBuf| path.metadata().and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut archives: Vec<_> = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    archives.sort_by_key(|path| std::cmp::Reverse(written(path)));
    for old in archives.iter().skip(KEPT) {
        std::fs::remove_file(old).with_context(|| format!("failed to remove {}", old.display()))?;
    }
    Ok(())
}

/// The libraries `program` is linked to, and those the C library loads to look up names.
async fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let printed = Run::new("ldd").args([program]).output().await?;
    let mut libraries: Vec<_> =
        linked(&String::from_utf8_lossy(&printed.stdout)).into_iter().map(PathBuf::from).collect();
    if let Some(folder) = libraries.iter().find(|file| file.ends_with("libc.so.6")).and_then(|file| file.parent()) {
        let lookup = ["libnss_dns.so.2", "libnss_files.so.2"].map(|name| folder.join(name));
        libraries.extend(lookup.into_iter().filter(|file| file.exists()));
    }
    Ok(libraries)
}

/// Paths in what `ldd` prints: `name => /path (address)`, or `/path (address)` for the loader. Nothing for a static program.
fn linked(printed: &str) -> Vec<&str> {
    let paths = printed.lines().filter_map(|line| {
        let (path, _) = line.split_once(" => ").map_or(line, |(_, path)| path).trim().rsplit_once(" (")?;
        path.starts_with('/').then_some(path)
    });
    paths.collect()
}

#[cfg(test)]
mod tests {
    use super::linked;

    #[test]
    fn libraries_and_the_loader_are_found_and_what_the_kernel_brings_is_not() {
        let printed = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x00007f)\n\
            \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected =
            ["/lib/x86_64-linux-gnu/libgcc_s.so.1", "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(linked(printed), expected);
        assert_eq!(linked("\tstatically linked\n"), Vec::<&str>::new());
    }
}
