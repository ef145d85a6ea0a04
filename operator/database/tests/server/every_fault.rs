//! Whatever goes wrong with whichever call to PostgreSQL or to the API server: in the end there is one database, one login that
//! is accepted, and one Secret, and all agree.

use ankka_testing::{api::Api, fault::Fault};

use crate::{
    controller::{
        Administrator, Controller, DATABASE, ORDINARY, SECRET, ask_for, credential, enter, phase, shop, status,
    },
    postgres::Server,
    proxy::{FAULTS, Proxy},
};

const API_FAULTS: [Fault; 7] = [
    Fault::CrashBefore,
    Fault::CrashAfter,
    Fault::CrashWithoutReply,
    Fault::ReplyLost,
    Fault::Refused(403),
    Fault::Refused(409),
    Fault::Refused(500),
];

/// What a scenario starts from, and what happens then.
struct Scenario<'a> {
    server: &'a Server,
    proxy: &'a Proxy,
    administrator: Administrator,
    /// The controller has come to rest before.
    settled: bool,
    change: fn(&Api),
    /// The phase in the end.
    phase: &'static str,
    /// The login in the end.
    login: &'static str,
}

impl Scenario<'_> {
    async fn begin(&self) -> Api {
        self.server.clear().await;
        let api = shop();
        ask_for(&api, "shop", "cart");
        if self.settled {
            self.controller(&api).await.settle().await;
            assert_eq!(phase(&api), "provisioned", "{:#}", status(&api));
        }
        (self.change)(&api);
        api
    }

    async fn controller(&self, api: &Api) -> Controller {
        Controller::of(api, self.proxy.port, self.administrator, &[]).await
    }

    /// Runs it undisturbed, and then with every fault at every call. Returns how many calls an undisturbed run makes, to
    /// PostgreSQL and to the API server.
    async fn every_fault(&self) -> (usize, usize) {
        let api = self.begin().await;
        self.proxy.calls();
        api.writes();
        self.controller(&api).await.settle().await;
        let (calls, writes) = (self.proxy.calls(), api.writes().len());
        self.all_agree(&api, "undisturbed").await;
        let password = credential(&api, SECRET)["ANKKA_DB_PASSWORD"].len();
        assert_eq!(password, 40);

        for number in 0..calls {
            for fault in FAULTS {
                let api = self.begin().await;
                self.proxy.fail(number, fault, &api);
                self.run(&api).await;
                self.all_agree(&api, &format!("{fault:?} at call {number}")).await;
            }
        }
        for number in 0..writes {
            for fault in API_FAULTS {
                let api = self.begin().await;
                api.fail(number, fault);
                self.run(&api).await;
                self.all_agree(&api, &format!("{fault:?} at write {number}")).await;
            }
        }
        (calls, writes)
    }

    async fn run(&self, api: &Api) {
        let controller = self.controller(api).await;
        controller.settle().await;
        if api.is_dead() {
            drop(controller);
            self.controller(api).await.settle().await;
        }
    }

    async fn all_agree(&self, api: &Api, when: &str) {
        let status = status(api);
        assert_eq!(phase(api), self.phase, "{when}: {status:#}");
        assert_eq!(status["secret"], "cart-db", "{when}");
        assert_eq!(status["login"], self.login, "{when}");
        assert_eq!(credential(api, SECRET)["ANKKA_DB_USER"], self.login, "{when}");
        let client = enter(api, SECRET).await.unwrap_or_else(|error| panic!("{when}: {error:?}"));
        let use_it = "CREATE TABLE IF NOT EXISTS t (i int); CREATE SCHEMA IF NOT EXISTS x";
        client.batch_execute(use_it).await.unwrap_or_else(|error| panic!("{when}: {error:?}"));
        let databases = "SELECT string_agg(datname, ' ' ORDER BY datname) FROM pg_database WHERE datname LIKE '%.%'";
        assert_eq!(self.server.ask(databases).await, "shop.cart", "{when}");
        let public = "SELECT has_database_privilege('public', 'shop.cart', 'CONNECT')";
        assert_eq!(self.server.ask(public).await, "f", "{when}");
        let secrets = api.versions().into_keys().filter(|path| path.contains("/secrets/")).count();
        assert_eq!(secrets, 1, "{when}");

        // A settled pass writes nothing, anywhere.
        let stored = api.versions();
        let transaction = "SELECT pg_snapshot_xmax(pg_current_snapshot())";
        let before = self.server.ask(transaction).await;
        self.controller(api).await.settle().await;
        assert_eq!(api.versions(), stored, "{when}: a settled database is written to");
        assert_eq!(self.server.ask(transaction).await, before, "{when}: the server is written to");
    }
}

#[tokio::test]
async fn a_first_database_of_a_new_server() {
    let server = Server::start();
    let proxy = Proxy::to(server.port).await;
    let scenario = Scenario {
        server: &server,
        proxy: &proxy,
        administrator: Administrator::Superuser,
        settled: false,
        change: |_| {},
        phase: "provisioned",
        login: "shop.cart",
    };
    let (calls, writes) = scenario.every_fault().await;
    assert!(calls >= 12, "{calls}");
    assert_eq!(writes, 4, "intent, the Secret that is not there, the Secret, status");
}

#[tokio::test]
async fn a_reissue() {
    let server = Server::start();
    let proxy = Proxy::to(server.port).await;
    server.run(&[ORDINARY]).await;
    let scenario = Scenario {
        server: &server,
        proxy: &proxy,
        administrator: Administrator::Ordinary,
        settled: true,
        change: |api| api.edit(DATABASE, |database| database["spec"]["credentialGeneration"] = 1.into()),
        phase: "provisioned",
        login: "shop.cart#1",
    };
    let (_, writes) = scenario.every_fault().await;
    assert_eq!(writes, 2, "Secret, status");
    let ended = "SELECT count(*) FROM pg_roles WHERE rolvaliduntil IS NOT NULL";
    assert_eq!(server.ask(ended).await, "1", "the first login, and no other");
}

#[tokio::test]
async fn a_namespace_that_is_made_again() {
    let server = Server::start();
    let proxy = Proxy::to(server.port).await;
    let scenario = Scenario {
        server: &server,
        proxy: &proxy,
        administrator: Administrator::Superuser,
        settled: true,
        change: |api| {
            api.delete(SECRET);
            api.delete(DATABASE);
            ask_for(api, "shop", "cart");
        },
        phase: "recovered existing data",
        login: "shop.cart",
    };
    let (_, writes) = scenario.every_fault().await;
    assert_eq!(writes, 4, "intent, the Secret that is not there, the Secret, status");
}

#[tokio::test]
async fn a_secret_that_is_deleted_by_hand() {
    let server = Server::start();
    let proxy = Proxy::to(server.port).await;
    let scenario = Scenario {
        server: &server,
        proxy: &proxy,
        administrator: Administrator::Superuser,
        settled: true,
        change: |api| api.delete(SECRET),
        phase: "provisioned",
        login: "shop.cart",
    };
    let (_, writes) = scenario.every_fault().await;
    assert_eq!(writes, 2, "the Secret that is not there, the Secret");
}
