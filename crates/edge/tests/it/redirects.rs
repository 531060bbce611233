use axum::{
    Router,
    response::{IntoResponse, Redirect},
    routing,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use rialto_http_client::{
    address::Reach,
    fetch::{FetchError, FetchRequest},
};

use crate::server::{Server, fetch, get, text};

/// Responds with the token of the request.
async fn whoami(headers: HeaderMap) -> String {
    headers.get(header::AUTHORIZATION).map_or("nobody", |value| value.to_str().unwrap()).to_owned()
}

async fn sending_to(target: String) -> Server {
    let away = move || async move { Redirect::temporary(&target) };
    Server::start(Router::new().route("/away", routing::any(away)).route("/whoami", routing::get(whoami)))
        .await
}

fn with_token(mut request: FetchRequest) -> FetchRequest {
    request.headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer t"));
    request
}

#[tokio::test]
async fn a_get_is_followed_with_its_token_on_the_same_origin() {
    let server = sending_to("/whoami".into()).await;
    let answer = fetch(with_token(get(server.uri("/away")))).await.unwrap();
    assert_eq!(text(answer).await, "Bearer t");
}

#[tokio::test]
async fn a_token_is_not_carried_to_another_origin() {
    let other = sending_to(String::new()).await;
    let server = sending_to(other.uri("/whoami").to_string()).await;
    let answer = fetch(with_token(get(server.uri("/away")))).await.unwrap();
    assert_eq!(text(answer).await, "nobody");
}

#[tokio::test]
async fn a_post_is_not_followed() {
    let server = sending_to("/whoami".into()).await;
    let mut request = FetchRequest::new(Method::POST, server.uri("/away"));
    request.reach = Reach::Private;
    assert_eq!(fetch(request).await.unwrap().status, StatusCode::TEMPORARY_REDIRECT);
}

#[tokio::test]
async fn a_circle_ends() {
    let server = sending_to("/away".into()).await;
    let error = fetch(get(server.uri("/away"))).await.unwrap_err();
    assert_eq!(error, FetchError::Broken("sent on to another address more than 3 times".into()));
}

#[tokio::test]
async fn a_redirect_cannot_reach_what_a_request_could_not() {
    let server = sending_to("http://169.254.169.254/latest/meta-data".into()).await;
    let error = fetch(get(server.uri("/away"))).await.unwrap_err();
    assert!(matches!(error, FetchError::Forbidden(_)), "{error}");
    let server = sending_to("file:///etc/passwd".into()).await;
    let error = fetch(get(server.uri("/away"))).await.unwrap_err();
    assert!(matches!(error, FetchError::Forbidden(_)), "{error}");
}

#[tokio::test]
async fn a_redirect_without_a_target_is_an_answer() {
    let nowhere = || async { StatusCode::FOUND.into_response() };
    let server = Server::start(Router::new().route("/", routing::get(nowhere))).await;
    assert_eq!(fetch(get(server.uri("/"))).await.unwrap().status, StatusCode::FOUND);
}
