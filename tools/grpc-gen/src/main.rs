//! Writes the tables by which `rialto-a2a-codec` reads and writes A2A's protobuf messages.
//!
//!     cargo run              # writes them
//!     cargo run -- --check   # only says whether they are what the .proto files say
//!
//! A table says of each message which number a field has and what it is called in JSON; nothing else is needed to go from
//! the one to the other. Whatever the tables have no word for (a repeated number, a second `oneof`) is refused here, so
//! that it cannot be forgotten there.

use std::{error::Error, fmt::Write as _, fs, path::Path, process::ExitCode};

use protox::prost_reflect::{
    Cardinality, DescriptorPool, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, ServiceDescriptor,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Each package, and the file its tables stand in.
const PACKAGES: [(&str, &str, &str); 2] =
    [("lf.a2a.v1", "lf/a2a/v1/a2a.proto", "v10.rs"), ("a2a.v1", "a2a/v1/a2a.proto", "v03.rs")];

fn main() -> Result<ExitCode> {
    let only_checks = std::env::args().nth(1).is_some_and(|argument| argument == "--check");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let wire = here.join("../../crates/a2a-wire");
    let mut is_true = true;
    for (package, proto, file) in PACKAGES {
        let tables = tables(here, &wire, package, proto)?;
        let path = wire.join("src/grpc/tables").join(file);
        if only_checks {
            let is_same = fs::read_to_string(&path).is_ok_and(|known| known == tables);
            if !is_same {
                eprintln!("{} is not what {proto} says: run `cargo run` in tools/grpc-gen", path.display());
            }
            is_true &= is_same;
        } else {
            fs::write(&path, tables)?;
        }
    }
    Ok(if is_true { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tables(here: &Path, wire: &Path, package: &str, proto: &str) -> Result<String> {
    let includes = [wire.join("proto"), here.join("include")];
    let files = protox::compile([proto], includes)?;
    let pool = DescriptorPool::from_file_descriptor_set(files)?;
    let mut out = format!(
        "// Made by tools/grpc-gen from proto/{proto}. Do not edit.\n\n\
         //! The messages of `{package}`.\n\n\
         use crate::grpc::schema::{{ProtoField, ProtoKind, ProtoMessage, ProtoMethod, ProtoRule}};\n"
    );
    let ours = |name: &str| name.strip_prefix(package).is_some_and(|rest| rest.starts_with('.'));
    for service in pool.services().filter(|service| ours(service.full_name())) {
        write_service(&mut out, &service)?;
    }
    for one in pool.all_enums().filter(|one| ours(one.full_name())) {
        write_enum(&mut out, &one)?;
    }
    for message in pool.all_messages().filter(|message| ours(message.full_name()) && !message.is_map_entry())
    {
        write_message(&mut out, &message)?;
    }
    Ok(out)
}

fn write_service(out: &mut String, service: &ServiceDescriptor) -> Result<()> {
    writeln!(out, "\npub(crate) static METHODS: &[ProtoMethod] = &[")?;
    for method in service.methods() {
        if method.is_client_streaming() {
            return Err(format!("{} has a stream of requests", method.full_name()).into());
        }
        let (input, output) = (shape(&method.input()), shape(&method.output()));
        writeln!(out, "    ProtoMethod {{ name: \"{}\", input: {input}, output: {output} }},", method.name())?;
    }
    writeln!(out, "];")?;
    Ok(())
}

fn write_enum(out: &mut String, one: &EnumDescriptor) -> Result<()> {
    writeln!(out, "\nstatic {}: &[(&str, i32)] = &[", static_name(one.name()))?;
    for value in one.values() {
        writeln!(out, "    (\"{}\", {}),", value.name(), value.number())?;
    }
    writeln!(out, "];")?;
    Ok(())
}

fn write_message(out: &mut String, message: &MessageDescriptor) -> Result<()> {
    let choices = message.oneofs().filter(|oneof| oneof.fields().any(|field| is_choice(&field))).count();
    if choices > 1 {
        return Err(format!("{} has more than one choice", message.full_name()).into());
    }
    let name = static_name(message.name());
    writeln!(out, "\npub(crate) static {name}: ProtoMessage = ProtoMessage {{ fields: &[")?;
    for field in message.fields() {
        let (kind, rule) = (kind(&field)?, rule(&field)?);
        writeln!(
            out,
            "    ProtoField {{ number: {}, name: \"{}\", kind: {kind}, rule: ProtoRule::{rule} }},",
            field.number(),
            field.json_name()
        )?;
    }
    writeln!(out, "] }};")?;
    Ok(())
}

/// How often a field may be there, and what its absence means.
fn rule(field: &FieldDescriptor) -> Result<&'static str> {
    if field.is_map() {
        return Ok("Map");
    }
    if field.cardinality() == Cardinality::Repeated {
        return match field.kind() {
            Kind::String | Kind::Bytes | Kind::Message(_) => Ok("Many"),
            _ => Err(format!("{} repeats something that may be packed", field.full_name()).into()),
        };
    }
    Ok(match () {
        () if is_choice(field) => "Choice",
        () if field.supports_presence() => "Optional",
        () => "Plain",
    })
}

fn kind(field: &FieldDescriptor) -> Result<String> {
    let value = match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            if !matches!(entry.map_entry_key_field().kind(), Kind::String) {
                return Err(format!("{} has keys that are no strings", field.full_name()).into());
            }
            entry.map_entry_value_field().kind()
        }
        kind => kind,
    };
    Ok(match value {
        Kind::String => "ProtoKind::Text".to_owned(),
        Kind::Bytes => "ProtoKind::Bytes".to_owned(),
        Kind::Bool => "ProtoKind::Flag".to_owned(),
        Kind::Int32 => "ProtoKind::Int".to_owned(),
        Kind::Enum(one) => format!("ProtoKind::Enum({})", static_name(one.name())),
        Kind::Message(message) => match message.full_name() {
            "google.protobuf.Struct" => "ProtoKind::Struct".to_owned(),
            "google.protobuf.Value" => "ProtoKind::Value".to_owned(),
            "google.protobuf.Timestamp" => "ProtoKind::Timestamp".to_owned(),
            _ => format!("ProtoKind::Message({})", shape(&message)),
        },
        other => return Err(format!("{} is a {other:?}", field.full_name()).into()),
    })
}

/// Whether the field is one of several of which only one may be there. (`optional` is written as a choice of one.)
fn is_choice(field: &FieldDescriptor) -> bool {
    field.containing_oneof().is_some_and(|oneof| !oneof.is_synthetic())
}

fn shape(message: &MessageDescriptor) -> String {
    match message.full_name() {
        "google.protobuf.Empty" => "&ProtoMessage::EMPTY".to_owned(),
        _ => format!("&{}", static_name(message.name())),
    }
}

/// `OAuth2SecurityScheme` as `O_AUTH2_SECURITY_SCHEME`.
fn static_name(name: &str) -> String {
    let mut out = String::new();
    let chars: Vec<char> = name.chars().collect();
    for (at, &letter) in chars.iter().enumerate() {
        let begins = letter.is_uppercase() && at > 0;
        let follows_small = begins && !chars[at - 1].is_uppercase();
        let precedes_small = begins && chars.get(at + 1).is_some_and(|next| next.is_lowercase());
        if follows_small || precedes_small {
            out.push('_');
        }
        out.extend(letter.to_uppercase());
    }
    out
}
