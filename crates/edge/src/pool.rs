//! Connections that are kept for the next request.
//!
//! The one that was used last is taken first, so the others grow old and are closed: by the next one that comes back,
//! and by a task that looks after them for as long as there are any. A request that was not begun, because its
//! connection turned out to have ended, is sent on another; what may have been heard is never sent twice.
//!
//! A connection is heard by the runtime it was opened on, so it is kept for that one: another would have to be woken by it.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Weak},
    time::Duration,
};

use http::{
    HeaderValue, StatusCode, Uri,
    header::{HOST, PROXY_AUTHORIZATION},
    uri::{Authority, PathAndQuery},
};
use parking_lot::Mutex;
use rialto_model::maps::FastMap;
use tokio::{
    runtime::{Handle, Id},
    time::{Instant, sleep},
};

use crate::{
    connect::{Connector, place, wants_login},
    fetch::FetchError,
    link::{Link, Message},
    live::Live,
    proxy::Proxy,
};

/// How many unused connections to one place are kept.
const MAX_IDLE: usize = 128;

/// The connections that one rule allows, to wherever they go. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Shelf>);

/// A connection in use.
pub(crate) struct Loan {
    pub(crate) link: Box<Link>,
    origin: Authority,
    lane: Lane,
    home: Pool,
}

struct Shelf {
    connector: Connector,
    keep: Duration,
    idle: Mutex<Idle>,
}

/// The runtime that a connection was opened on.
type Lane = Option<Id>;

#[derive(Default)]
struct Idle {
    /// By the lane that hears them, and by where they lead, as it is written; the oldest first.
    links: FastMap<Lane, FastMap<String, VecDeque<Kept>>>,
    is_looked_after: bool,
}

struct Kept {
    link: Box<Link>,
    since: Instant,
}

// === impl Pool ===

impl Pool {
    pub(crate) fn new(connector: Connector, keep: Duration) -> Self {
        Self(Arc::new(Shelf { connector, keep, idle: Mutex::default() }))
    }

    /// Sends `message` to `to`, up to the headers of the answer.
    pub(crate) async fn send(
        &self,
        mut message: Message,
        to: &Uri,
    ) -> Result<http::Response<Live>, FetchError> {
        let Some(origin) = to.authority() else {
            return Err(FetchError::Forbidden("the address must name a host".into()));
        };
        let proxy = self.0.connector.proxy(to)?;
        address(&mut message, to)?;
        if let Some(proxy) = &proxy {
            address_through(&mut message, to, proxy);
        }
        let lane = Handle::try_current().ok().map(|runtime| runtime.id());
        loop {
            let kept = self.take(lane, origin);
            let is_new = kept.is_none();
            let link = match kept {
                Some(link) => link,
                None => self.open(to).await?,
            };
            let mut loan = Loan { link, origin: origin.clone(), lane, home: self.clone() };
            message = match loan.link.send(message).await {
                Ok(answer)
                    if proxy.is_some() && answer.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED =>
                {
                    return Err(FetchError::NotSent(wants_login("the proxy")));
                }
                Ok(answer) => return Ok(answer.map(|incoming| Live::new(incoming, Some(loan)))),
                Err(mut error) => match error.take_message() {
                    Some(message) if !is_new => message,
                    // Nothing was written, so nobody has received it.
                    Some(_) => return Err(closed_at_once(to)),
                    None => return Err(hung_up(to)),
                },
            };
        }
    }

    async fn open(&self, to: &Uri) -> Result<Box<Link>, FetchError> {
        let stream = self.0.connector.clone().open(to.clone()).await?;
        Link::over(stream).await.map(Box::new).map_err(|_| closed_at_once(to))
    }

    /// The connection that was used last, if it still stands.
    fn take(&self, lane: Lane, origin: &Authority) -> Option<Box<Link>> {
        loop {
            let mut kept = self.0.idle.lock().links.get_mut(&lane)?.get_mut(origin.as_str())?.pop_back()?;
            kept.link.advance();
            if kept.link.is_idle() && !self.0.is_stale(&kept, Instant::now()) {
                return Some(kept.link);
            }
        }
    }

    /// Keeps `link`. One comes and at most one goes, so nobody waits while many are closed.
    fn put(&self, lane: Lane, origin: &Authority, link: Box<Link>) {
        if self.0.keep.is_zero() {
            return;
        }
        let now = Instant::now();
        let mut idle = self.0.idle.lock();
        let kept = Kept { link, since: now };
        let of_lane = idle.links.entry(lane).or_default();
        let gone = match of_lane.get_mut(origin.as_str()) {
            Some(links) => {
                links.push_back(kept);
                let is_full = links.len() > MAX_IDLE;
                links.pop_front_if(|oldest| is_full || self.0.is_stale(oldest, now))
            }
            None => {
                of_lane.insert(origin.as_str().to_owned(), VecDeque::from([kept]));
                None
            }
        };
        let is_looked_after = mem::replace(&mut idle.is_looked_after, true);
        drop(idle);
        drop(gone);
        if !is_looked_after {
            tokio::spawn(look_after(Arc::downgrade(&self.0), self.0.keep));
        }
    }
}

// === impl Loan ===

impl Loan {
    /// Back to where it is kept, if it can be used again.
    pub(crate) fn give_back(self) {
        if self.link.is_idle() {
            self.home.put(self.lane, &self.origin, self.link);
        }
    }
}

// === impl Shelf ===

impl Shelf {
    fn is_stale(&self, kept: &Kept, now: Instant) -> bool {
        now.saturating_duration_since(kept.since) >= self.keep
    }

    /// Closes what has become too old. False when nothing is left.
    fn sweep(&self) -> bool {
        // Before the lock, so that they are closed after it is let go.
        let mut gone = Vec::new();
        let now = Instant::now();
        let mut idle = self.idle.lock();
        idle.links.retain(|_, places| {
            places.retain(|_, links| {
                let old = links.partition_point(|kept| self.is_stale(kept, now));
                gone.extend(links.drain(..old));
                !links.is_empty()
            });
            !places.is_empty()
        });
        idle.is_looked_after = !idle.links.is_empty();
        idle.is_looked_after
    }
}

/// Closes connections that nobody comes back for.
async fn look_after(shelf: Weak<Shelf>, every: Duration) {
    loop {
        sleep(every).await;
        if !shelf.upgrade().is_some_and(|shelf| shelf.sweep()) {
            return;
        }
    }
}

/// Says in `message` where it goes, as HTTP/1 wants it: the path on its first line, the host among its headers.
fn address(message: &mut Message, to: &Uri) -> Result<(), FetchError> {
    let path = to.path_and_query().cloned();
    *message.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    if message.headers().contains_key(HOST) {
        return Ok(());
    }
    let host = match (to.port_u16(), to.authority()) {
        (Some(port), Some(authority)) if port != 80 => authority.as_str(),
        _ => to.host().unwrap_or_default(),
    };
    let host = HeaderValue::from_str(host)
        .map_err(|_| FetchError::Forbidden(format!("{} is not the name of a host", place(to))))?;
    message.headers_mut().insert(HOST, host);
    Ok(())
}

/// A proxy wants to read on the first line where to go, and who we are.
fn address_through(message: &mut Message, to: &Uri, proxy: &Proxy) {
    *message.uri_mut() = to.clone();
    if let Some(login) = &proxy.login {
        message.headers_mut().insert(PROXY_AUTHORIZATION, login.clone());
    }
}

fn closed_at_once(to: &Uri) -> FetchError {
    FetchError::NotSent(format!("{} closed the connection before the request was sent", place(to)))
}

pub(crate) fn hung_up(to: &Uri) -> FetchError {
    FetchError::Broken(format!("{} hung up before it answered", place(to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_its_path_first_and_its_host_without_the_usual_port() {
        for (to, path, host) in [
            ("http://a.example", "/", "a.example"),
            ("http://a.example:80/x?y=z", "/x?y=z", "a.example"),
            ("http://a.example:8080/x", "/x", "a.example:8080"),
            ("http://a.example?y", "/?y", "a.example"),
            ("http://[::1]:8080/", "/", "[::1]:8080"),
        ] {
            let mut message = Message::default();
            address(&mut message, &to.parse().unwrap()).unwrap();
            assert_eq!(message.uri().to_string(), path);
            assert_eq!(message.headers()[HOST], host);
        }
    }

    #[test]
    fn a_host_that_was_given_stays() {
        let mut message = Message::default();
        message.headers_mut().insert(HOST, HeaderValue::from_static("given.example"));
        address(&mut message, &Uri::from_static("http://a.example/")).unwrap();
        assert_eq!(message.headers()[HOST], "given.example");
    }
}
