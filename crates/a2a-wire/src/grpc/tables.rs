//! The messages and methods of both packages, as `tools/grpc-gen` has written them down.

#[rustfmt::skip]
pub(crate) mod v03;
#[rustfmt::skip]
pub(crate) mod v10;

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    /// The fields of each message: numbers and names in JSON.
    type Messages = BTreeMap<String, BTreeSet<(u32, String)>>;

    /// What a schema says, as far as its lines tell. `tools/grpc-gen` reads it properly; this notices when nobody ran it.
    fn schema(proto: &str) -> Messages {
        let mut bodies = BTreeMap::<String, String>::new();
        let mut body = None;
        for line in proto.lines().map(|line| line.split("//").next().unwrap_or_default()) {
            if let Some(name) = line.strip_prefix("message ").and_then(|rest| rest.split_whitespace().next())
            {
                body = Some(bodies.entry(name.to_lowercase()).or_default());
            } else if line.starts_with("enum ") || line.starts_with("service ") {
                body = None;
            } else if let Some(body) = &mut body {
                body.push_str(line);
                body.push(' ');
            }
        }
        let fields = |body: String| body.split([';', '{', '}']).filter_map(field).collect();
        bodies.into_iter().map(|(name, body)| (name, fields(body))).collect()
    }

    fn field(statement: &str) -> Option<(u32, String)> {
        let (name, rest) = statement.split_once(" = ")?;
        let number = rest.trim().split([' ', '[']).next()?.parse().ok()?;
        let given =
            rest.split_once("json_name = \"").map(|(_, rest)| rest.split('"').next().unwrap().to_owned());
        Some((number, given.unwrap_or_else(|| camel(name.split_whitespace().last().unwrap()))))
    }

    fn camel(name: &str) -> String {
        let mut words = name.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
    }

    fn table(text: &str) -> Messages {
        let mut messages = Messages::new();
        let mut fields = None;
        for line in text.lines() {
            if let Some((name, _)) =
                line.strip_prefix("pub(crate) static ").and_then(|rest| rest.split_once(": Shape"))
            {
                fields = Some(messages.entry(name.replace('_', "").to_lowercase()).or_default());
            }
            let Some((number, name)) =
                line.trim().strip_prefix("Field { number: ").and_then(|rest| rest.split_once(", name: \""))
            else {
                continue;
            };
            let name = name.split('"').next().unwrap().to_owned();
            fields.as_mut().unwrap().insert((number.parse().unwrap(), name));
        }
        messages
    }

    #[test]
    fn the_tables_say_what_the_schemas_say() {
        for (proto, made) in [
            (include_str!("../../proto/lf/a2a/v1/a2a.proto"), include_str!("tables/v10.rs")),
            (include_str!("../../proto/a2a/v1/a2a.proto"), include_str!("tables/v03.rs")),
        ] {
            let (schema, table) = (schema(proto), table(made));
            assert!(schema.len() > 40, "{schema:?}");
            assert_eq!(schema, table, "run `cargo run` in tools/grpc-gen");
        }
    }
}
