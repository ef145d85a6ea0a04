//! Two replicas behind real TLS on loopback, while their leaf and their authority are replaced again and again. Time is
//! ours: the keepers and the client's idea of the present move together, hundreds of seconds in a few.
#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use ankka_webhook::{
    Settings,
    certificates::{
        Lifetimes, Moment,
        keeper::{Cluster, Configuration, Keeper, Outcome, Stored},
        material::Minter,
        secret::{self, Data},
        serving::Serving,
    },
    server::{App, admission},
};
use http_body_util::{BodyExt, Full};
use hyper::{Request, body::Bytes, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use k8s_openapi::ByteString;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    time_provider::TimeProvider,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const NAME: &str = "ankka-webhook.ankka-system.svc";
const LIFETIMES: Lifetimes = Lifetimes { authority: 78_000, leaf: 6_000, overlap: 3_000 };
const TICK: Moment = 500;

/// The Secret and both configurations, with versions, and the bundle as it was a tick ago.
#[derive(Clone, Default)]
struct Fake(Arc<Mutex<Objects>>);

#[derive(Default)]
struct Objects {
    version: u64,
    secret: (u64, Data),
    configurations: [(u64, Vec<u8>); 2],
    /// What an API server that has not heard of the newest change goes by.
    late: Vec<u8>,
}

const KINDS: [&str; 2] = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];

impl Fake {
    fn with<T>(&self, act: impl FnOnce(&mut Objects) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }

    fn edit(&self, act: impl FnOnce(&mut Data)) {
        self.with(|objects| {
            objects.version += 1;
            objects.secret.0 = objects.version;
            act(&mut objects.secret.1);
        });
    }
}

impl Cluster for Fake {
    type Error = std::convert::Infallible;

    async fn configurations(&self) -> Result<Vec<Configuration>, Self::Error> {
        tokio::task::yield_now().await;
        Ok(self.with(|objects| {
            let read = |index: usize| {
                let (version, bundle) = &objects.configurations[index];
                let bundles =
                    ["services.ankka.dev", "projects.ankka.dev"].map(|name| (name.to_owned(), bundle.clone()));
                Configuration { kind: KINDS[index], version: version.to_string(), bundles: bundles.to_vec() }
            };
            vec![read(0), read(1)]
        }))
    }

    async fn secret(&self) -> Result<Stored, Self::Error> {
        tokio::task::yield_now().await;
        Ok(self.with(|objects| Stored {
            version: objects.secret.0.to_string(),
            data: objects.secret.1.clone(),
            object: None,
        }))
    }

    async fn put_secret(&self, read: &Stored, data: Data) -> Result<bool, Self::Error> {
        tokio::task::yield_now().await;
        if self.with(|objects| objects.secret.0.to_string() != read.version) {
            return Ok(false);
        }
        self.edit(|stored| *stored = data);
        Ok(true)
    }

    async fn put_bundle(&self, read: &Configuration, bundle: &str) -> Result<bool, Self::Error> {
        tokio::task::yield_now().await;
        Ok(self.with(|objects| {
            objects.version += 1;
            let version = objects.version;
            let stored = &mut objects.configurations[usize::from(read.kind == KINDS[1])];
            let current = stored.0.to_string() == read.version;
            if current {
                *stored = (version, bundle.as_bytes().to_vec());
            }
            current
        }))
    }
}

#[derive(Clone, Debug, Default)]
struct Clock(Arc<AtomicI64>);

impl Clock {
    fn now(&self) -> Moment {
        self.0.load(Ordering::SeqCst)
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_millis(self.now().try_into().unwrap())))
    }
}

struct Replica {
    keeper: Keeper<Fake>,
    address: SocketAddr,
}

impl Replica {
    async fn pass(&mut self, now: Moment) -> Outcome {
        for _ in 0..40 {
            let outcome = self.keeper.pass(now).await.unwrap();
            if !outcome.wrote {
                return outcome;
            }
        }
        panic!("a replica never settles");
    }

    /// A replica that serves, started as `run` starts one.
    async fn start(cluster: &Fake, clock: &Clock) -> Self {
        let serving = Serving::default();
        let minter = Minter { dns_names: vec![NAME.to_owned()] };
        let mut replica = Self {
            keeper: Keeper::new(cluster.clone(), LIFETIMES, minter, serving.clone()),
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        replica.pass(clock.now()).await;
        let config = tokio::time::timeout(Duration::from_secs(5), serving.first()).await.expect("a first certificate");
        let settings = Settings::read(|name| (name == "POD_NAMESPACE").then(|| "ankka-system".to_owned())).unwrap();
        let listener = std::net::TcpListener::bind(replica.address).unwrap();
        replica.address = listener.local_addr().unwrap();
        let server = axum_server::from_tcp_rustls(listener, config).unwrap();
        tokio::spawn(server.serve(admission(App::new(settings)).into_make_service()));
        replica
    }
}

type Connection = SendRequest<Full<Bytes>>;

/// A connection as an API server with this `caBundle` opens it; and the certificate it was shown.
async fn connect(address: SocketAddr, bundle: &[u8], clock: &Clock) -> std::io::Result<(Connection, Vec<u8>)> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_details(provider, Arc::new(clock.clone()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from(NAME).unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let shown = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    Ok((sender, shown))
}

async fn review(connection: &mut Connection) {
    let body = r#"{"request":{"uid":"u","operation":"CREATE","object":
        {"metadata":{"name":"cart","namespace":"ankka-shop"},"spec":{"service":{"image":"i:1"}}}}}"#;
    let request = Request::post("/validate/services").header("host", NAME).body(Full::from(body)).unwrap();
    connection.ready().await.expect("a kept connection is not cut");
    let response = connection.send_request(request).await.expect("a review is answered");
    let answer = response.into_body().collect().await.unwrap().to_bytes();
    assert!(answer.windows(14).any(|bytes| bytes == br#""allowed":true"#), "{answer:?}");
}

/// One review on a new connection to each replica, by an API server that has heard of everything and one that has not.
async fn fresh(cluster: &Fake, addresses: &[SocketAddr], clock: &Clock) -> Vec<Vec<u8>> {
    let bundles = cluster.with(|objects| {
        [objects.configurations[0].1.clone(), objects.configurations[1].1.clone(), objects.late.clone()]
    });
    let mut shown = Vec::new();
    for address in addresses {
        for bundle in &bundles {
            let (mut connection, leaf) =
                connect(*address, bundle, clock).await.expect("a trusted certificate is shown");
            review(&mut connection).await;
            shown.push(leaf);
        }
    }
    shown
}

async fn started() -> (Fake, Clock, Vec<Replica>) {
    let (cluster, clock) = (Fake::default(), Clock::default());
    clock.0.store(1_800_000_000_000, Ordering::SeqCst);
    let replicas = vec![Replica::start(&cluster, &clock).await, Replica::start(&cluster, &clock).await];
    cluster.with(|objects| objects.late.clone_from(&objects.configurations[0].1));
    (cluster, clock, replicas)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_leaves_and_five_authorities_without_one_failed_review() {
    let (cluster, clock, mut replicas) = started().await;
    let addresses: Vec<_> = replicas.iter().map(|replica| replica.address).collect();
    let mut kept = Vec::new();
    for address in &addresses {
        let bundle = cluster.with(|objects| objects.late.clone());
        kept.push(connect(*address, &bundle, &clock).await.unwrap().0);
    }
    let [first, second] = replicas.as_mut_slice() else { unreachable!() };
    let (mut leaves, mut authorities) = (BTreeSet::new(), BTreeSet::new());
    while leaves.len() <= 100 || authorities.len() <= 5 {
        cluster.with(|objects| objects.late.clone_from(&objects.configurations[0].1));
        let now = clock.0.fetch_add(TICK, Ordering::SeqCst) + TICK;
        // Requests go on while both replicas look after the same Secret at once.
        let (shown, one, other) = tokio::join!(fresh(&cluster, &addresses, &clock), first.pass(now), second.pass(now));
        assert!(one.trusted && other.trusted);
        leaves.extend(shown);
        for connection in &mut kept {
            review(connection).await;
        }
        let state = cluster.with(|objects| secret::read(&objects.secret.1, NAME));
        authorities.extend(state.current.map(|authority| authority.id));
        assert!(state.former.len() <= 2, "former authorities are dropped");
        assert!(now < 1_800_001_000_000, "{} leaves, {} authorities", leaves.len(), authorities.len());
    }
}

type Edit<'a> = Box<dyn Fn(&mut Data) + 'a>;

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_pair_leaves_the_last_good_one_in_use_and_is_mended() {
    let (cluster, clock, mut replicas) = started().await;
    let addresses: Vec<_> = replicas.iter().map(|replica| replica.address).collect();
    let before = fresh(&cluster, &addresses, &clock).await;
    let other = Fake::default();
    Replica::start(&other, &clock).await;
    let foreign = other.with(|objects| objects.secret.1.clone());
    let edits: [(&str, Edit<'_>); 6] = [
        ("an authority without its key", Box::new(|data| drop(data.remove("ca.key")))),
        (
            "a new certificate with the old key",
            Box::new(|data| drop(data.insert("tls.crt".into(), foreign["tls.crt"].clone()))),
        ),
        ("garbage", Box::new(|data| drop(data.insert("tls.crt".into(), ByteString(b"garbage".to_vec()))))),
        ("no key", Box::new(|data| drop(data.remove("tls.key")))),
        (
            "a sound pair of an unknown authority",
            Box::new(|data| {
                data.extend(["tls.crt", "tls.key"].map(|key| (key.to_owned(), foreign[key].clone())));
            }),
        ),
        ("another installation's whole Secret", Box::new(|data| *data = foreign.clone())),
    ];
    for (what, edit) in edits {
        cluster.edit(edit);
        assert_eq!(fresh(&cluster, &addresses, &clock).await.len(), before.len(), "{what}");
        // A few seconds of both replicas' passes, with requests at every moment.
        for _ in 0..16 {
            let now = clock.0.fetch_add(TICK, Ordering::SeqCst) + TICK;
            cluster.with(|objects| objects.late.clone_from(&objects.configurations[0].1));
            for replica in &mut replicas {
                replica.pass(now).await;
                fresh(&cluster, &addresses, &clock).await;
            }
        }
        let state = cluster.with(|objects| secret::read(&objects.secret.1, NAME));
        assert!(state.leaf.is_some_and(|leaf| Some(leaf.issuer) == state.current.map(|current| current.id)), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_secret_costs_no_review() {
    let (cluster, clock, mut replicas) = started().await;
    let addresses: Vec<_> = replicas.iter().map(|replica| replica.address).collect();
    cluster.edit(|data| {
        data.clear();
        data.insert("somebody's".to_owned(), ByteString(b"own".to_vec()));
    });
    for _ in 0..16 {
        let now = clock.0.fetch_add(TICK, Ordering::SeqCst) + TICK;
        cluster.with(|objects| objects.late.clone_from(&objects.configurations[0].1));
        for replica in &mut replicas {
            assert!(replica.pass(now).await.trusted);
            fresh(&cluster, &addresses, &clock).await;
        }
    }
    let data = cluster.with(|objects| objects.secret.1.clone());
    assert!(secret::read(&data, NAME).leaf.is_some());
    assert_eq!(data["somebody's"].0, b"own", "what others keep in the Secret stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wiped_bundle_is_written_again_by_the_next_pass() {
    let (cluster, clock, mut replicas) = started().await;
    let before = cluster.with(|objects| objects.configurations.clone().map(|(_, bundle)| bundle));
    cluster.with(|objects| objects.configurations[1] = (objects.version + 1, Vec::new()));
    assert!(replicas[0].pass(clock.now()).await.trusted);
    assert_eq!(cluster.with(|objects| objects.configurations.clone().map(|(_, bundle)| bundle)), before);
    // And where nothing is wrong nothing is written.
    let version = cluster.with(|objects| objects.version);
    replicas[1].pass(clock.now()).await;
    assert_eq!(cluster.with(|objects| objects.version), version);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_installation_takes_up_what_an_uninstalled_one_left() {
    let (cluster, clock, replicas) = started().await;
    drop(replicas);
    cluster.with(|objects| objects.configurations = Default::default());
    let kept = cluster.with(|objects| objects.secret.1.clone());
    let replica = Replica::start(&cluster, &clock).await;
    assert_eq!(cluster.with(|objects| objects.secret.1.clone()), kept);
    cluster.with(|objects| objects.late.clone_from(&objects.configurations[0].1));
    fresh(&cluster, &[replica.address], &clock).await;
}
