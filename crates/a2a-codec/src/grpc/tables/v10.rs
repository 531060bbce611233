// Made by tools/grpc-gen from proto/lf/a2a/v1/a2a.proto. Do not edit.

//! The messages of `lf.a2a.v1`.

use crate::grpc::schema::{ProtoField, ProtoKind, ProtoMessage, ProtoMethod, ProtoRule};

pub(crate) static METHODS: &[ProtoMethod] = &[
    ProtoMethod { name: "SendMessage", input: &SEND_MESSAGE_REQUEST, output: &SEND_MESSAGE_RESPONSE },
    ProtoMethod { name: "SendStreamingMessage", input: &SEND_MESSAGE_REQUEST, output: &STREAM_RESPONSE },
    ProtoMethod { name: "GetTask", input: &GET_TASK_REQUEST, output: &TASK },
    ProtoMethod { name: "ListTasks", input: &LIST_TASKS_REQUEST, output: &LIST_TASKS_RESPONSE },
    ProtoMethod { name: "CancelTask", input: &CANCEL_TASK_REQUEST, output: &TASK },
    ProtoMethod { name: "SubscribeToTask", input: &SUBSCRIBE_TO_TASK_REQUEST, output: &STREAM_RESPONSE },
    ProtoMethod {
        name: "CreateTaskPushNotificationConfig",
        input: &TASK_PUSH_NOTIFICATION_CONFIG,
        output: &TASK_PUSH_NOTIFICATION_CONFIG,
    },
    ProtoMethod {
        name: "GetTaskPushNotificationConfig",
        input: &GET_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST,
        output: &TASK_PUSH_NOTIFICATION_CONFIG,
    },
    ProtoMethod {
        name: "ListTaskPushNotificationConfigs",
        input: &LIST_TASK_PUSH_NOTIFICATION_CONFIGS_REQUEST,
        output: &LIST_TASK_PUSH_NOTIFICATION_CONFIGS_RESPONSE,
    },
    ProtoMethod {
        name: "GetExtendedAgentCard",
        input: &GET_EXTENDED_AGENT_CARD_REQUEST,
        output: &AGENT_CARD,
    },
    ProtoMethod {
        name: "DeleteTaskPushNotificationConfig",
        input: &DELETE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST,
        output: &ProtoMessage::EMPTY,
    },
];

static TASK_STATE: &[(&str, i32)] = &[
    ("TASK_STATE_UNSPECIFIED", 0),
    ("TASK_STATE_SUBMITTED", 1),
    ("TASK_STATE_WORKING", 2),
    ("TASK_STATE_COMPLETED", 3),
    ("TASK_STATE_FAILED", 4),
    ("TASK_STATE_CANCELED", 5),
    ("TASK_STATE_INPUT_REQUIRED", 6),
    ("TASK_STATE_REJECTED", 7),
    ("TASK_STATE_AUTH_REQUIRED", 8),
];

static ROLE: &[(&str, i32)] = &[("ROLE_UNSPECIFIED", 0), ("ROLE_USER", 1), ("ROLE_AGENT", 2)];

pub(crate) static SEND_MESSAGE_CONFIGURATION: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "acceptedOutputModes", kind: ProtoKind::Text, rule: ProtoRule::Many },
        ProtoField {
            number: 2,
            name: "taskPushNotificationConfig",
            kind: ProtoKind::Message(&TASK_PUSH_NOTIFICATION_CONFIG),
            rule: ProtoRule::Optional,
        },
        ProtoField { number: 3, name: "historyLength", kind: ProtoKind::Int, rule: ProtoRule::Optional },
        ProtoField { number: 4, name: "returnImmediately", kind: ProtoKind::Flag, rule: ProtoRule::Plain },
    ],
};

pub(crate) static TASK: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "id", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "contextId", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField {
            number: 3,
            name: "status",
            kind: ProtoKind::Message(&TASK_STATUS),
            rule: ProtoRule::Optional,
        },
        ProtoField {
            number: 4,
            name: "artifacts",
            kind: ProtoKind::Message(&ARTIFACT),
            rule: ProtoRule::Many,
        },
        ProtoField { number: 5, name: "history", kind: ProtoKind::Message(&MESSAGE), rule: ProtoRule::Many },
        ProtoField { number: 6, name: "metadata", kind: ProtoKind::Struct, rule: ProtoRule::Optional },
    ],
};

pub(crate) static TASK_STATUS: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "state", kind: ProtoKind::Enum(TASK_STATE), rule: ProtoRule::Plain },
        ProtoField {
            number: 2,
            name: "message",
            kind: ProtoKind::Message(&MESSAGE),
            rule: ProtoRule::Optional,
        },
        ProtoField { number: 3, name: "timestamp", kind: ProtoKind::Timestamp, rule: ProtoRule::Optional },
    ],
};

pub(crate) static PART: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "text", kind: ProtoKind::Text, rule: ProtoRule::Choice },
        ProtoField { number: 2, name: "raw", kind: ProtoKind::Bytes, rule: ProtoRule::Choice },
        ProtoField { number: 3, name: "url", kind: ProtoKind::Text, rule: ProtoRule::Choice },
        ProtoField { number: 4, name: "data", kind: ProtoKind::Value, rule: ProtoRule::Choice },
        ProtoField { number: 5, name: "metadata", kind: ProtoKind::Struct, rule: ProtoRule::Optional },
        ProtoField { number: 6, name: "filename", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 7, name: "mediaType", kind: ProtoKind::Text, rule: ProtoRule::Plain },
    ],
};

pub(crate) static MESSAGE: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "messageId", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "contextId", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "taskId", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 4, name: "role", kind: ProtoKind::Enum(ROLE), rule: ProtoRule::Plain },
        ProtoField { number: 5, name: "parts", kind: ProtoKind::Message(&PART), rule: ProtoRule::Many },
        ProtoField { number: 6, name: "metadata", kind: ProtoKind::Struct, rule: ProtoRule::Optional },
        ProtoField { number: 7, name: "extensions", kind: ProtoKind::Text, rule: ProtoRule::Many },
        ProtoField { number: 8, name: "referenceTaskIds", kind: ProtoKind::Text, rule: ProtoRule::Many },
    ],
};

pub(crate) static ARTIFACT: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "artifactId", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "name", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "description", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 4, name: "parts", kind: ProtoKind::Message(&PART), rule: ProtoRule::Many },
        ProtoField { number: 5, name: "metadata", kind: ProtoKind::Struct, rule: ProtoRule::Optional },
        ProtoField { number: 6, name: "extensions", kind: ProtoKind::Text, rule: ProtoRule::Many },
    ],
};

pub(crate) static TASK_STATUS_UPDATE_EVENT: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "taskId", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "contextId", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField {
            number: 3,
            name: "status",
            kind: ProtoKind::Message(&TASK_STATUS),
            rule: ProtoRule::Optional,
        },
        ProtoField { number: 4, name: "metadata", kind: ProtoKind::Struct, rule: ProtoRule::Optional },
    ],
};

pub(crate) static TASK_ARTIFACT_UPDATE_EVENT: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "taskId", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "contextId", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField {
            number: 3,
            name: "artifact",
            kind: ProtoKind::Message(&ARTIFACT),
            rule: ProtoRule::Optional,
        },
        ProtoField { number: 4, name: "append", kind: ProtoKind::Flag, rule: ProtoRule::Plain },
        ProtoField { number: 5, name: "lastChunk", kind: ProtoKind::Flag, rule: ProtoRule::Plain },
        ProtoField { number: 6, name: "metadata", kind: ProtoKind::Struct, rule: ProtoRule::Optional },
    ],
};

pub(crate) static AUTHENTICATION_INFO: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "scheme", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "credentials", kind: ProtoKind::Text, rule: ProtoRule::Plain },
    ],
};

pub(crate) static AGENT_INTERFACE: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "url", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "protocolBinding", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "tenant", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 4, name: "protocolVersion", kind: ProtoKind::Text, rule: ProtoRule::Plain },
    ],
};

pub(crate) static AGENT_CARD: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "name", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "description", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField {
            number: 3,
            name: "supportedInterfaces",
            kind: ProtoKind::Message(&AGENT_INTERFACE),
            rule: ProtoRule::Many,
        },
        ProtoField {
            number: 4,
            name: "provider",
            kind: ProtoKind::Message(&AGENT_PROVIDER),
            rule: ProtoRule::Optional,
        },
        ProtoField { number: 5, name: "version", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 6, name: "documentationUrl", kind: ProtoKind::Text, rule: ProtoRule::Optional },
        ProtoField {
            number: 7,
            name: "capabilities",
            kind: ProtoKind::Message(&AGENT_CAPABILITIES),
            rule: ProtoRule::Optional,
        },
        ProtoField {
            number: 8,
            name: "securitySchemes",
            kind: ProtoKind::Message(&SECURITY_SCHEME),
            rule: ProtoRule::Map,
        },
        ProtoField {
            number: 9,
            name: "securityRequirements",
            kind: ProtoKind::Message(&SECURITY_REQUIREMENT),
            rule: ProtoRule::Many,
        },
        ProtoField { number: 10, name: "defaultInputModes", kind: ProtoKind::Text, rule: ProtoRule::Many },
        ProtoField { number: 11, name: "defaultOutputModes", kind: ProtoKind::Text, rule: ProtoRule::Many },
        ProtoField {
            number: 12,
            name: "skills",
            kind: ProtoKind::Message(&AGENT_SKILL),
            rule: ProtoRule::Many,
        },
        ProtoField {
            number: 13,
            name: "signatures",
            kind: ProtoKind::Message(&AGENT_CARD_SIGNATURE),
            rule: ProtoRule::Many,
        },
        ProtoField { number: 14, name: "iconUrl", kind: ProtoKind::Text, rule: ProtoRule::Optional },
    ],
};

pub(crate) static AGENT_PROVIDER: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "url", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "organization", kind: ProtoKind::Text, rule: ProtoRule::Plain },
    ],
};

pub(crate) static AGENT_CAPABILITIES: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "streaming", kind: ProtoKind::Flag, rule: ProtoRule::Optional },
        ProtoField { number: 2, name: "pushNotifications", kind: ProtoKind::Flag, rule: ProtoRule::Optional },
        ProtoField {
            number: 3,
            name: "extensions",
            kind: ProtoKind::Message(&AGENT_EXTENSION),
            rule: ProtoRule::Many,
        },
        ProtoField { number: 4, name: "extendedAgentCard", kind: ProtoKind::Flag, rule: ProtoRule::Optional },
    ],
};

pub(crate) static AGENT_EXTENSION: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "uri", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "description", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "required", kind: ProtoKind::Flag, rule: ProtoRule::Plain },
        ProtoField { number: 4, name: "params", kind: ProtoKind::Struct, rule: ProtoRule::Optional },
    ],
};

pub(crate) static AGENT_SKILL: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "id", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "name", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "description", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 4, name: "tags", kind: ProtoKind::Text, rule: ProtoRule::Many },
        ProtoField { number: 5, name: "examples", kind: ProtoKind::Text, rule: ProtoRule::Many },
        ProtoField { number: 6, name: "inputModes", kind: ProtoKind::Text, rule: ProtoRule::Many },
        ProtoField { number: 7, name: "outputModes", kind: ProtoKind::Text, rule: ProtoRule::Many },
        ProtoField {
            number: 8,
            name: "securityRequirements",
            kind: ProtoKind::Message(&SECURITY_REQUIREMENT),
            rule: ProtoRule::Many,
        },
    ],
};

pub(crate) static AGENT_CARD_SIGNATURE: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "protected", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "signature", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "header", kind: ProtoKind::Struct, rule: ProtoRule::Optional },
    ],
};

pub(crate) static TASK_PUSH_NOTIFICATION_CONFIG: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "tenant", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "id", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "taskId", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 4, name: "url", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 5, name: "token", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField {
            number: 6,
            name: "authentication",
            kind: ProtoKind::Message(&AUTHENTICATION_INFO),
            rule: ProtoRule::Optional,
        },
    ],
};

pub(crate) static STRING_LIST: ProtoMessage = ProtoMessage {
    fields: &[ProtoField { number: 1, name: "list", kind: ProtoKind::Text, rule: ProtoRule::Many }],
};

pub(crate) static SECURITY_REQUIREMENT: ProtoMessage = ProtoMessage {
    fields: &[ProtoField {
        number: 1,
        name: "schemes",
        kind: ProtoKind::Message(&STRING_LIST),
        rule: ProtoRule::Map,
    }],
};

pub(crate) static SECURITY_SCHEME: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField {
            number: 1,
            name: "apiKeySecurityScheme",
            kind: ProtoKind::Message(&API_KEY_SECURITY_SCHEME),
            rule: ProtoRule::Choice,
        },
        ProtoField {
            number: 2,
            name: "httpAuthSecurityScheme",
            kind: ProtoKind::Message(&HTTP_AUTH_SECURITY_SCHEME),
            rule: ProtoRule::Choice,
        },
        ProtoField {
            number: 3,
            name: "oauth2SecurityScheme",
            kind: ProtoKind::Message(&O_AUTH2_SECURITY_SCHEME),
            rule: ProtoRule::Choice,
        },
        ProtoField {
            number: 4,
            name: "openIdConnectSecurityScheme",
            kind: ProtoKind::Message(&OPEN_ID_CONNECT_SECURITY_SCHEME),
            rule: ProtoRule::Choice,
        },
        ProtoField {
            number: 5,
            name: "mtlsSecurityScheme",
            kind: ProtoKind::Message(&MUTUAL_TLS_SECURITY_SCHEME),
            rule: ProtoRule::Choice,
        },
    ],
};

pub(crate) static API_KEY_SECURITY_SCHEME: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "description", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "location", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "name", kind: ProtoKind::Text, rule: ProtoRule::Plain },
    ],
};

pub(crate) static HTTP_AUTH_SECURITY_SCHEME: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "description", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "scheme", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "bearerFormat", kind: ProtoKind::Text, rule: ProtoRule::Plain },
    ],
};

pub(crate) static O_AUTH2_SECURITY_SCHEME: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "description", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField {
            number: 2,
            name: "flows",
            kind: ProtoKind::Message(&O_AUTH_FLOWS),
            rule: ProtoRule::Optional,
        },
        ProtoField { number: 3, name: "oauth2MetadataUrl", kind: ProtoKind::Text, rule: ProtoRule::Plain },
    ],
};

pub(crate) static OPEN_ID_CONNECT_SECURITY_SCHEME: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "description", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "openIdConnectUrl", kind: ProtoKind::Text, rule: ProtoRule::Plain },
    ],
};

pub(crate) static MUTUAL_TLS_SECURITY_SCHEME: ProtoMessage = ProtoMessage {
    fields: &[ProtoField { number: 1, name: "description", kind: ProtoKind::Text, rule: ProtoRule::Plain }],
};

pub(crate) static O_AUTH_FLOWS: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField {
            number: 1,
            name: "authorizationCode",
            kind: ProtoKind::Message(&AUTHORIZATION_CODE_O_AUTH_FLOW),
            rule: ProtoRule::Choice,
        },
        ProtoField {
            number: 2,
            name: "clientCredentials",
            kind: ProtoKind::Message(&CLIENT_CREDENTIALS_O_AUTH_FLOW),
            rule: ProtoRule::Choice,
        },
        ProtoField {
            number: 3,
            name: "implicit",
            kind: ProtoKind::Message(&IMPLICIT_O_AUTH_FLOW),
            rule: ProtoRule::Choice,
        },
        ProtoField {
            number: 4,
            name: "password",
            kind: ProtoKind::Message(&PASSWORD_O_AUTH_FLOW),
            rule: ProtoRule::Choice,
        },
        ProtoField {
            number: 5,
            name: "deviceCode",
            kind: ProtoKind::Message(&DEVICE_CODE_O_AUTH_FLOW),
            rule: ProtoRule::Choice,
        },
    ],
};

pub(crate) static AUTHORIZATION_CODE_O_AUTH_FLOW: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "authorizationUrl", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "tokenUrl", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "refreshUrl", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 4, name: "scopes", kind: ProtoKind::Text, rule: ProtoRule::Map },
        ProtoField { number: 5, name: "pkceRequired", kind: ProtoKind::Flag, rule: ProtoRule::Plain },
    ],
};

pub(crate) static CLIENT_CREDENTIALS_O_AUTH_FLOW: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "tokenUrl", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "refreshUrl", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "scopes", kind: ProtoKind::Text, rule: ProtoRule::Map },
    ],
};

pub(crate) static IMPLICIT_O_AUTH_FLOW: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "authorizationUrl", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "refreshUrl", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "scopes", kind: ProtoKind::Text, rule: ProtoRule::Map },
    ],
};

pub(crate) static PASSWORD_O_AUTH_FLOW: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "tokenUrl", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "refreshUrl", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "scopes", kind: ProtoKind::Text, rule: ProtoRule::Map },
    ],
};

pub(crate) static DEVICE_CODE_O_AUTH_FLOW: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField {
            number: 1,
            name: "deviceAuthorizationUrl",
            kind: ProtoKind::Text,
            rule: ProtoRule::Plain,
        },
        ProtoField { number: 2, name: "tokenUrl", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "refreshUrl", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 4, name: "scopes", kind: ProtoKind::Text, rule: ProtoRule::Map },
    ],
};

pub(crate) static SEND_MESSAGE_REQUEST: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "tenant", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField {
            number: 2,
            name: "message",
            kind: ProtoKind::Message(&MESSAGE),
            rule: ProtoRule::Optional,
        },
        ProtoField {
            number: 3,
            name: "configuration",
            kind: ProtoKind::Message(&SEND_MESSAGE_CONFIGURATION),
            rule: ProtoRule::Optional,
        },
        ProtoField { number: 4, name: "metadata", kind: ProtoKind::Struct, rule: ProtoRule::Optional },
    ],
};

pub(crate) static GET_TASK_REQUEST: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "tenant", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "id", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "historyLength", kind: ProtoKind::Int, rule: ProtoRule::Optional },
    ],
};

pub(crate) static LIST_TASKS_REQUEST: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "tenant", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "contextId", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "status", kind: ProtoKind::Enum(TASK_STATE), rule: ProtoRule::Plain },
        ProtoField { number: 4, name: "pageSize", kind: ProtoKind::Int, rule: ProtoRule::Optional },
        ProtoField { number: 5, name: "pageToken", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 6, name: "historyLength", kind: ProtoKind::Int, rule: ProtoRule::Optional },
        ProtoField {
            number: 7,
            name: "statusTimestampAfter",
            kind: ProtoKind::Timestamp,
            rule: ProtoRule::Optional,
        },
        ProtoField { number: 8, name: "includeArtifacts", kind: ProtoKind::Flag, rule: ProtoRule::Optional },
    ],
};

pub(crate) static LIST_TASKS_RESPONSE: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "tasks", kind: ProtoKind::Message(&TASK), rule: ProtoRule::Many },
        ProtoField { number: 2, name: "nextPageToken", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "pageSize", kind: ProtoKind::Int, rule: ProtoRule::Plain },
        ProtoField { number: 4, name: "totalSize", kind: ProtoKind::Int, rule: ProtoRule::Plain },
    ],
};

pub(crate) static CANCEL_TASK_REQUEST: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "tenant", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "id", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "metadata", kind: ProtoKind::Struct, rule: ProtoRule::Optional },
    ],
};

pub(crate) static GET_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "tenant", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "taskId", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "id", kind: ProtoKind::Text, rule: ProtoRule::Plain },
    ],
};

pub(crate) static DELETE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "tenant", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "taskId", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "id", kind: ProtoKind::Text, rule: ProtoRule::Plain },
    ],
};

pub(crate) static SUBSCRIBE_TO_TASK_REQUEST: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "tenant", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "id", kind: ProtoKind::Text, rule: ProtoRule::Plain },
    ],
};

pub(crate) static LIST_TASK_PUSH_NOTIFICATION_CONFIGS_REQUEST: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "taskId", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "pageSize", kind: ProtoKind::Int, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "pageToken", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 4, name: "tenant", kind: ProtoKind::Text, rule: ProtoRule::Plain },
    ],
};

pub(crate) static GET_EXTENDED_AGENT_CARD_REQUEST: ProtoMessage = ProtoMessage {
    fields: &[ProtoField { number: 1, name: "tenant", kind: ProtoKind::Text, rule: ProtoRule::Plain }],
};

pub(crate) static SEND_MESSAGE_RESPONSE: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "task", kind: ProtoKind::Message(&TASK), rule: ProtoRule::Choice },
        ProtoField {
            number: 2,
            name: "message",
            kind: ProtoKind::Message(&MESSAGE),
            rule: ProtoRule::Choice,
        },
    ],
};

pub(crate) static STREAM_RESPONSE: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "task", kind: ProtoKind::Message(&TASK), rule: ProtoRule::Choice },
        ProtoField {
            number: 2,
            name: "message",
            kind: ProtoKind::Message(&MESSAGE),
            rule: ProtoRule::Choice,
        },
        ProtoField {
            number: 3,
            name: "statusUpdate",
            kind: ProtoKind::Message(&TASK_STATUS_UPDATE_EVENT),
            rule: ProtoRule::Choice,
        },
        ProtoField {
            number: 4,
            name: "artifactUpdate",
            kind: ProtoKind::Message(&TASK_ARTIFACT_UPDATE_EVENT),
            rule: ProtoRule::Choice,
        },
    ],
};

pub(crate) static LIST_TASK_PUSH_NOTIFICATION_CONFIGS_RESPONSE: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField {
            number: 1,
            name: "configs",
            kind: ProtoKind::Message(&TASK_PUSH_NOTIFICATION_CONFIG),
            rule: ProtoRule::Many,
        },
        ProtoField { number: 2, name: "nextPageToken", kind: ProtoKind::Text, rule: ProtoRule::Plain },
    ],
};
