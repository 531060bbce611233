//! Names that mean something else the second time.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, response::Redirect, routing};
use http::Method;
use rialto_http_client::{
    ClientEnv, Config, DnsResolver, HttpClient,
    address::Reach,
    fetch::{Fetch, FetchError, FetchRequest},
};

use crate::server::{Server, get, text};

/// Answers each question about a name with the next of its answers, the last one again and again.
struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: AtomicUsize,
}

impl Names {
    fn new(answers: &[(&str, &[&[&str]])]) -> Arc<Self> {
        let addresses = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>();
        let answers = answers.iter().map(|(name, answers)| {
            ((*name).to_owned(), answers.iter().map(|texts| addresses(texts)).collect())
        });
        Arc::new(Self { answers: Mutex::new(answers.collect()), asked: AtomicUsize::new(0) })
    }

    fn resolver(self: &Arc<Self>) -> DnsResolver {
        let names = Arc::clone(self);
        Arc::new(move |name| {
            names.asked.fetch_add(1, Ordering::Relaxed);
            let mut answers = names.answers.lock().unwrap();
            let answer = match answers.get_mut(name) {
                Some(list) if list.len() > 1 => Ok(list.remove(0)),
                Some(list) => Ok(list[0].clone()),
                None => Err(std::io::ErrorKind::NotFound.into()),
            };
            Box::pin(std::future::ready(answer))
        })
    }

    fn client(self: &Arc<Self>, config: &Config) -> HttpClient {
        let resolver = Some(self.resolver());
        HttpClient::with_env(config, ClientEnv { resolver, ..ClientEnv::default() })
    }
}

/// Hangs up after each answer.
fn forgetful() -> Config {
    Config { keep_idle_ms: 0, connect_timeout_ms: 200, ..Config::default() }
}

fn public(uri: &str) -> FetchRequest {
    FetchRequest::new(Method::GET, uri.parse().unwrap())
}

fn hello() -> Router {
    Router::new().route("/", routing::get("hello"))
}

#[tokio::test]
async fn a_name_that_turns_into_loopback_is_refused_and_nothing_arrives_there() {
    let server = Server::start(hello()).await;
    let names = Names::new(&[("agent.example", &[&["192.88.99.1"], &["127.0.0.1"]])]);
    let client = names.client(&forgetful());
    let uri = format!("http://agent.example:{}/", server.address.port());
    let mut first = public(&uri);
    first.total = Some(Duration::from_millis(500));
    // Whether anybody is there is not for us to say; it was not refused.
    assert!(!matches!(client.fetch(first).await, Err(FetchError::Forbidden(_))));
    let second = client.fetch(public(&uri)).await.unwrap_err();
    assert!(
        matches!(&second, FetchError::Forbidden(why) if why.contains("127.0.0.1 is a loopback")),
        "{second:?}"
    );
    assert_eq!((names.asked.load(Ordering::Relaxed), server.accepted()), (2, 0));
}

#[tokio::test]
async fn a_name_is_looked_at_again_for_each_connection() {
    let server = Server::start(hello()).await;
    let names = Names::new(&[("agent.example", &[&["127.0.0.1"], &["169.254.169.254"]])]);
    let client = names.client(&forgetful());
    let uri: http::Uri = format!("http://agent.example:{}/", server.address.port()).parse().unwrap();
    assert_eq!(text(client.fetch(get(uri.clone())).await.unwrap()).await, "hello");
    let error = client.fetch(get(uri)).await.unwrap_err();
    assert!(matches!(&error, FetchError::Forbidden(why) if why.contains("metadata")), "{error:?}");
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn a_name_that_turns_on_a_redirect_is_refused() {
    let names = Names::new(&[("agent.example", &[&["127.0.0.1"], &["fd00:ec2::254"]])]);
    let away = || async { Redirect::temporary("http://agent.example:8080/") };
    let server = Server::start(Router::new().route("/", routing::get(away))).await;
    let uri = format!("http://agent.example:{}/", server.address.port()).parse().unwrap();
    let error = names.client(&forgetful()).fetch(get(uri)).await.unwrap_err();
    assert!(matches!(&error, FetchError::Forbidden(why) if why.contains("metadata")), "{error:?}");
    assert_eq!(names.asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn the_called_address_is_the_checked_one() {
    let server = Server::start(hello()).await;
    let names = Names::new(&[("agent.example", &[&["127.0.0.1"], &["169.254.169.254"]])]);
    let uri = format!("http://agent.example:{}/", server.address.port()).parse().unwrap();
    names.client(&forgetful()).fetch(get(uri)).await.unwrap();
    assert_eq!(
        names.asked.load(Ordering::Relaxed),
        1,
        "one question per connection leaves no time to change"
    );
}

#[tokio::test]
async fn one_forbidden_address_among_several_is_enough() {
    let server = Server::start(hello()).await;
    let names = Names::new(&[("agent.example", &[&["192.88.99.1", "127.0.0.1"]])]);
    let uri = format!("http://agent.example:{}/", server.address.port());
    let error = names.client(&forgetful()).fetch(public(&uri)).await.unwrap_err();
    assert!(matches!(error, FetchError::Forbidden(_)), "{error:?}");
    assert_eq!(server.accepted(), 0);
}

#[tokio::test]
async fn no_spelling_of_a_private_address_gets_through() {
    let server = Server::start(hello()).await;
    let port = server.address.port();
    // Names are not even asked for: these are addresses, whatever they look like.
    let names = Names::new(&[]);
    let client = names.client(&forgetful());
    for host in [
        "127.0.0.1",
        "127.1",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "2130706433",
        "127.0.0.1.",
        "0.0.0.0",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "2852039166",
        "[fd00:ec2::254]",
        "[::ffff:a9fe:a9fe]",
        "10.0.0.1",
        "100.64.0.1",
        "198.18.0.1",
        "192.0.2.1",
        "224.0.0.1",
        "255.255.255.255",
        "[fe80::1]",
        "[ff02::1]",
        "[2001:db8::1]",
    ] {
        let error = client.fetch(public(&format!("http://{host}:{port}/"))).await.unwrap_err();
        assert!(matches!(error, FetchError::Forbidden(_)), "{host}: {error:?}");
    }
    assert_eq!((names.asked.load(Ordering::Relaxed), server.accepted()), (0, 0));
}

#[tokio::test]
async fn no_spelling_of_localhost_gets_through() {
    let server = Server::start(hello()).await;
    let port = server.address.port();
    let loopback: &[&[&str]] = &[&["127.0.0.1"]];
    let names = Names::new(
        &["localhost", "localhost.", "LOCALHOST", "a.localhost", "loop.example"].map(|n| (n, loopback)),
    );
    let client = names.client(&forgetful());
    for host in ["localhost", "localhost.", "LOCALHOST", "a.localhost", "loop.example"] {
        let error = client.fetch(public(&format!("http://{host}:{port}/"))).await.unwrap_err();
        assert!(matches!(error, FetchError::Forbidden(_)), "{host}: {error:?}");
    }
    for uri in
        [format!("http://good.example@127.0.0.1:{port}/"), format!("http://127.0.0.1:{port}@good.example/")]
    {
        let error = client.fetch(public(&uri)).await.unwrap_err();
        assert!(matches!(error, FetchError::Forbidden(_)), "{uri}: {error:?}");
    }
    assert_eq!(server.accepted(), 0);
}

#[tokio::test]
async fn ports_and_hosts_that_are_not_for_agents_are_not_called() {
    let names = Names::new(&[]);
    let error =
        names.client(&forgetful()).fetch(get("http://127.0.0.1:6379/".parse().unwrap())).await.unwrap_err();
    assert!(matches!(&error, FetchError::Forbidden(why) if why.contains("port 6379")), "{error:?}");
    let server = Server::start(hello()).await;
    for config in [
        Config { allowed_hosts: vec!["*.example".into()], ..Config::default() },
        Config { denied_hosts: vec!["127.0.0.1".into()], ..Config::default() },
        Config { allowed_ports: vec![443], ..Config::default() },
    ] {
        let mut request = get(server.uri("/"));
        request.reach = Reach::Private;
        let error = names.client(&config).fetch(request).await.unwrap_err();
        assert!(matches!(&error, FetchError::Forbidden(why) if why.contains("[outbound]")), "{error:?}");
    }
    let away = || async { Redirect::temporary("http://127.0.0.1:6379/") };
    let sending = Server::start(Router::new().route("/", routing::get(away))).await;
    let error = names.client(&Config::default()).fetch(get(sending.uri("/"))).await.unwrap_err();
    assert!(matches!(&error, FetchError::Forbidden(why) if why.contains("port 6379")), "{error:?}");
    assert_eq!(server.accepted(), 0);
}

#[tokio::test]
async fn a_name_that_leads_to_a_metadata_service_is_refused_also_where_private_addresses_are_allowed() {
    for address in [
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "169.254.169.123",
        "169.254.42.42",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "fd00:42::42",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1:a9fe:a9:fe00::",
        "2002:a9fe:a9fe::1",
    ] {
        let names = Names::new(&[("agent.example", &[&[address]])]);
        let request = FetchRequest { reach: Reach::Private, ..public("http://agent.example/") };
        let error = names.client(&forgetful()).fetch(request).await.unwrap_err();
        assert!(
            matches!(&error, FetchError::Forbidden(why) if why.contains("metadata")),
            "{address}: {error}"
        );
    }
    let names = Names::new(&[("metadata.google.internal", &[&["127.0.0.1"]])]);
    let request = FetchRequest { reach: Reach::Private, ..public("http://metadata.google.internal/") };
    let error = names.client(&forgetful()).fetch(request).await.unwrap_err();
    assert!(matches!(error, FetchError::Forbidden(_)) && names.asked.load(Ordering::Relaxed) == 0, "{error}");
}
