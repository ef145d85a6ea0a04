//! A certificate that somebody else keeps in a folder (cert-manager, by a mounted Secret).

use std::{path::Path, time::Duration};

use super::{Moment, keeper::Outcome, material, serving::Serving};

/// Mounted Secrets are swapped by a link, which a watch on the file does not see: the content is looked at instead.
const EVERY: Duration = Duration::from_secs(2);

/// Reads `tls.crt` and `tls.key` in `folder` again and again, and serves them whenever they changed. A pair that is
/// missing, broken or half written leaves the one before in use. Never ends.
pub async fn keep(folder: &Path, serving: &Serving, report: impl Fn(&Outcome)) {
    let mut served = None;
    let mut told = None;
    loop {
        match load(folder, serving, &mut served).await {
            Ok(leaf_not_after) => {
                told = None;
                // Whom the API server trusts is not ours to see in this mode.
                report(&Outcome { trusted: true, leaf_not_after, ..Outcome::default() });
            }
            Err(error) => {
                let error = error.to_string();
                if told.as_ref() != Some(&error) {
                    tracing::warn!(folder = %folder.display(), error, "failed to load the certificate; the one before stays in use");
                    told = Some(error);
                }
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

type Pair = (Vec<u8>, Vec<u8>);

/// Serves what is in the folder, unless it is `served` already. When the certificate expires.
async fn load(folder: &Path, serving: &Serving, served: &mut Option<Pair>) -> std::io::Result<Option<Moment>> {
    let (certificate, key) = (folder.join("tls.crt"), folder.join("tls.key"));
    let pair = (read(&certificate).await?, read(&key).await?);
    if served.as_ref() != Some(&pair) {
        serving.load(&pair.0, &pair.1)?;
        tracing::info!(folder = %folder.display(), "serving a new certificate");
    }
    let (certificate, _) = served.insert(pair);
    Ok(material::not_after(certificate))
}

async fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    tokio::fs::read(path)
        .await
        .map_err(|error| std::io::Error::new(error.kind(), format!("failed to read {}: {error}", path.display())))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test ends where it fails")]
mod tests {
    use super::*;
    use crate::certificates::{material::Minter, now, protocol::Mint};

    fn pair() -> Pair {
        let mut mint = Minter { dns_names: vec!["localhost".to_owned()] };
        let authority = mint.authority(now(), now() + 1_000_000).unwrap();
        let leaf = mint.leaf(&authority, now(), now() + 500_000).unwrap();
        (leaf.certificate.into_bytes(), leaf.key.into_bytes())
    }

    #[tokio::test]
    async fn a_new_pair_is_picked_up_and_a_half_written_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (serving, mut served) = (Serving::default(), None);
        assert!(load(folder.path(), &serving, &mut served).await.unwrap_err().to_string().contains("tls.crt"));
        let put = |pair: &Pair| {
            std::fs::write(folder.path().join("tls.crt"), &pair.0).unwrap();
            std::fs::write(folder.path().join("tls.key"), &pair.1).unwrap();
        };
        let (first, second) = (pair(), pair());
        put(&first);
        assert!(load(folder.path(), &serving, &mut served).await.unwrap().is_some());
        let before = serving.first().await.get_inner();
        put(&(second.0.clone(), first.1.clone()));
        assert!(load(folder.path(), &serving, &mut served).await.is_err());
        assert!(std::sync::Arc::ptr_eq(&before, &serving.first().await.get_inner()));
        put(&second);
        assert!(load(folder.path(), &serving, &mut served).await.is_ok());
        assert!(!std::sync::Arc::ptr_eq(&before, &serving.first().await.get_inner()));
        assert_eq!(served, Some(second));
    }
}
