//! Container images without a registry: made from programs of this machine, kept in the cache, imported into containerd.
//!
//! There is nothing to start from: an image holds one program, the libraries it is linked to, and what the C library needs to look up
//! names.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::{containerd, layout::Layout};
use crate::{
    paths::{Paths, workspace},
    run::Run,
};

/// The image that holds a pod's namespaces open.
pub(crate) const PAUSE: &str = "docker.io/local/pause:1";

/// User and group that programs run as: nobody's.
const USER: &str = "65532:65532";

/// How the C library looks up names: in `/etc/hosts`, then by DNS.
const NAME_LOOKUP: &str = "hosts: files dns\n";

/// An image in the cache.
#[derive(Clone, Debug)]
pub struct Image {
    /// Its full name with tag, e.g. `docker.io/local/cart:0.2.0`.
    pub reference: String,
    /// Hexadecimal digest of what it holds, 16 digits: another one means another program.
    pub digest: String,
    archive: PathBuf,
}

/// Makes an image that runs `program` as its only one, or finds it in the cache.
///
/// `reference` is a function of the digest, so that the tag may contain it.
///
/// # Errors
/// When the program or a library it needs cannot be read, or buildah fails.
pub async fn of_program(paths: &Paths, program: &Path, reference: impl FnOnce(&str) -> String) -> Result<Image> {
    let name = program.file_name().and_then(|name| name.to_str()).context("a program has a name")?;
    let inside = format!("/usr/bin/{name}");
    let mut files = libraries(program).await?;
    files.push((program.to_owned(), inside.clone()));
    let mut digest = Sha256::new();
    for (outside, inside) in &files {
        digest.update(inside);
        digest.update(std::fs::read(outside).with_context(|| format!("failed to read {}", outside.display()))?);
    }
    let digest = hex(digest);
    let image = Image { reference: reference(&digest), archive: archive(paths, name, &digest), digest };
    if !image.archive.exists() {
        build(paths, &image, name, &files, &inside).await?;
    }
    Ok(image)
}

/// Makes the pause image from its source, or finds it in the cache.
pub(crate) async fn pause(paths: &Paths) -> Result<Image> {
    let source = workspace().join("e2e/images/pause/pause.c");
    let content = std::fs::read(&source).with_context(|| format!("failed to read {}", source.display()))?;
    let digest = hex(Sha256::new_with_prefix(content));
    let image = Image { reference: PAUSE.to_owned(), archive: archive(paths, "pause", &digest), digest };
    if !image.archive.exists() {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("pause");
        let arguments = [Path::new("-static"), Path::new("-Os"), Path::new("-o"), &program, &source];
        Run::new("gcc").args(arguments).text().await.context("failed to compile the pause program")?;
        build(paths, &image, "pause", &[(program, "/pause".to_owned())], "/pause").await?;
    }
    Ok(image)
}

/// Imports an image into containerd. Returns whether that changed anything.
pub(crate) async fn import(layout: &Layout, image: &Image) -> Result<bool> {
    let record = layout.file("images").join(image.reference.replace(['/', ':'], "_"));
    if std::fs::read_to_string(&record).is_ok_and(|digest| digest == image.digest) {
        return Ok(false);
    }
    containerd::ctr(layout)
        .args(["images", "import", "--snapshotter", containerd::snapshotter(&layout.paths.state)])
        .args([&image.archive])
        .limit(Duration::from_secs(120))
        .text()
        .await
        .with_context(|| format!("failed to import {}", image.reference))?;
    crate::paths::write(&record, &image.digest)?;
    Ok(true)
}

fn archive(paths: &Paths, name: &str, digest: &str) -> PathBuf {
    paths.cache.join("images").join(format!("{name}-{digest}.tar"))
}

fn hex(digest: Sha256) -> String {
    digest.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Builds with storage of its own that goes with the build; the archive appears whole, and replaces those of earlier contents.
async fn build(paths: &Paths, image: &Image, name: &str, files: &[(PathBuf, String)], entrypoint: &str) -> Result<()> {
    let folder = paths.cache.join("images");
    std::fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
    let temporary = tempfile::Builder::new().prefix("build-").tempdir_in(&folder)?;
    let context = temporary.path().join("context");
    for (outside, inside) in files {
        let target = context.join("root").join(inside.trim_start_matches('/'));
        std::fs::create_dir_all(target.parent().context("a file has a folder")?)?;
        std::fs::copy(outside, &target).with_context(|| format!("failed to copy {}", outside.display()))?;
    }
    crate::paths::write(&context.join("root/etc/nsswitch.conf"), NAME_LOOKUP)?;
    crate::paths::write(
        &context.join("Containerfile"),
        format!("FROM scratch\nCOPY root /\nUSER {USER}\nENTRYPOINT [\"{entrypoint}\"]\n"),
    )?;

    let buildah = || {
        let storage = |name: &str| temporary.path().join(name).display().to_string();
        Run::new("buildah")
            .args(["--storage-driver".to_owned(), "vfs".to_owned()])
            .args(["--root".to_owned(), storage("storage"), "--runroot".to_owned(), storage("run")])
            .limit(Duration::from_secs(180))
    };
    buildah()
        .args(["bud", "--isolation", "chroot", "--timestamp", "0", "--tag", &image.reference])
        .args([&context])
        .text()
        .await
        .with_context(|| format!("failed to build {}", image.reference))?;
    let unfinished = temporary.path().join("image.tar");
    buildah()
        .args(["push", "--disable-compression", &image.reference])
        .args([format!("oci-archive:{}:{}", unfinished.display(), image.reference)])
        .text()
        .await
        .with_context(|| format!("failed to write {}", image.reference))?;

    for earlier in std::fs::read_dir(&folder)?.flatten() {
        let file = earlier.file_name().to_string_lossy().into_owned();
        if file.strip_suffix(".tar").and_then(|file| file.rsplit_once('-')).is_some_and(|(other, _)| other == name) {
            std::fs::remove_file(earlier.path()).ok();
        }
    }
    std::fs::rename(unfinished, &image.archive).with_context(|| format!("failed to write {}", image.archive.display()))
}

/// The libraries `program` is linked to, and those the C library loads to look up names; outside and inside the image alike.
async fn libraries(program: &Path) -> Result<Vec<(PathBuf, String)>> {
    let printed = Run::new("ldd").args([program]).output().await?;
    let mut libraries: Vec<_> = linked(&String::from_utf8_lossy(&printed.stdout)).into_iter().map(PathBuf::from).collect();
    if let Some(folder) = libraries.iter().find(|file| file.ends_with("libc.so.6")).and_then(|file| file.parent()) {
        let lookup = ["libnss_dns.so.2", "libnss_files.so.2"].map(|name| folder.join(name));
        libraries.extend(lookup.into_iter().filter(|file| file.exists()));
    }
    Ok(libraries.into_iter().map(|file| (file.clone(), file.display().to_string())).collect())
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
        let expected = ["/lib/x86_64-linux-gnu/libgcc_s.so.1", "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(linked(printed), expected);
        assert_eq!(linked("\tstatically linked\n"), Vec::<&str>::new());
    }
}
