use super::*;

/// Formats of real services with made-up values.
const CORPUS: [&str; 34] = [
    "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "sk_live_51Habc",
    "rk_live_9aB8c7D6e5F4g3H2",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "sk-ant-api03-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0Fe",
    "sk-proj-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8",
    "sk-0123456789abcdef0123456789abcdef",
    "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
    "ya29.a0AfH6SMBx1y2z3",
    "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",
    "glpat-xYz12345AbCdEfGhIjKl",
    "glrt-t1_Ab12Cd34Ef56",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "gho_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "xoxb-2048-1024-AbCdEfGhIjKlMnOp",
    "xoxp-2048-1024-4096-abcdef0123456789",
    "xapp-1-A01-2048-0123456789abcdef",
    "AKIAIOSFODNN7QWERTYU",
    "ASIAIOSFODNN7QWERTYU",
    "npm_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567",
    "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",
    "dop_v1_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "shpat_0123456789abcdef0123456789abcdef",
    "lin_api_Ab12Cd34Ef56Gh78",
    "hvs.CAESIJabcdef0123456789",
    "AGE-SECRET-KEY-1QQQQQQQQ2222",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n-----END OPENSSH PRIVATE KEY-----",
    "Bearer abc.def-123456",
    "Basic dXNlcjpwYXNzd29yZA==",
    "rialto_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "pypi-AgEIcHlwaS5vcmcCJDAxMjM0NTY3",
];

#[test]
fn no_known_format_stays_in_a_text() {
    for secret in CORPUS {
        let text = format!("the key is {secret}, keep it");
        let masked = mask_secrets(&text);
        assert!(!masked.contains(secret), "{masked}");
        assert!(masked.starts_with("the key is [redacted]"), "{masked}");
        assert!(has_secret(secret) && may_hold_secret(&format!("{{\"note\":\"{secret}\"}}")), "{secret}");
    }
}

#[test]
fn a_password_in_an_address_is_masked_and_the_rest_stays() {
    for (text, masked) in [
        ("postgres://app:hunter2@db.internal:5432/app", "postgres://app:[redacted]@db.internal:5432/app"),
        ("redis://:hunter2@cache:6379/0", "redis://:[redacted]@cache:6379/0"),
        ("amqp://guest:guest@mq", "amqp://guest:[redacted]@mq"),
        ("mongodb+srv://u:p@ss@c.example/db", "mongodb+srv://u:[redacted]@c.example/db"),
        (
            "see https://user:pass@example.com/x?y and go",
            "see https://user:[redacted]@example.com/x?y and go",
        ),
    ] {
        assert_eq!(mask_secrets(text), masked);
    }
    for clean in ["https://example.com/a@b:c", "https://user@example.com", "http://[::1]:80/@", "a:b@c"] {
        assert_eq!(mask_secrets(clean), clean);
    }
}

#[test]
fn names_of_secrets_are_known_however_they_are_written() {
    for name in [
        "api_key",
        "apiKey",
        "API-KEY",
        "x-api-key",
        "clientSecret",
        "access_token",
        "Authorization",
        "dsn",
        "my.secret",
    ] {
        assert_eq!(secret_name(name), SecretName::Text, "{name}");
    }
    for name in ["password", "passWord", "db_pwd", "pwd", "PIN", "card_pin", "pinCode", "otp", "cvv"] {
        assert_eq!(secret_name(name), SecretName::TextAndNumbers, "{name}");
    }
    for name in [
        "spinner",
        "shipping",
        "opinion",
        "passenger",
        "compass",
        "tokenId",
        "token_type",
        "secretName",
        "keyboard",
        "monkey",
        "primary_key",
        "author",
        "pinned",
        "tokens_id",
    ] {
        assert_eq!(secret_name(name), SecretName::Harmless, "{name}");
    }
}

#[test]
fn words_that_only_begin_like_a_key_stay() {
    for clean in [
        "task-list and ask-ops and desk-light",
        "sk-learn",
        "half_time",
        "the SG. office",
        "AKIA",
        "Bearer of news",
        "xoxo-",
        "Basic english",
        "a spinner in 3 shipments",
        "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "agt_01hf3k2m9q8r7s6t5v4w3x2y1z",
    ] {
        assert_eq!(mask_secrets(clean), clean);
        assert!(!has_secret(clean), "{clean}");
    }
}

#[test]
fn a_random_word_is_seen() {
    assert!(has_random_word("value Zk9vQ2xR7tLm4Wp8Yb3N here"));
    assert!(!has_random_word("an_ordinary_identifier_of_some_length"));
}
