// Made by tools/grpc-gen from proto/lf/a2a/v1/a2a.proto. Do not edit.

//! The messages of `lf.a2a.v1`.

use crate::grpc::schema::{Field, Kind, Method, Rule, Shape};

pub(crate) static METHODS: &[Method] = &[
    Method { name: "SendMessage", input: &SEND_MESSAGE_REQUEST, output: &SEND_MESSAGE_RESPONSE },
    Method { name: "SendStreamingMessage", input: &SEND_MESSAGE_REQUEST, output: &STREAM_RESPONSE },
    Method { name: "GetTask", input: &GET_TASK_REQUEST, output: &TASK },
    Method { name: "ListTasks", input: &LIST_TASKS_REQUEST, output: &LIST_TASKS_RESPONSE },
    Method { name: "CancelTask", input: &CANCEL_TASK_REQUEST, output: &TASK },
    Method { name: "SubscribeToTask", input: &SUBSCRIBE_TO_TASK_REQUEST, output: &STREAM_RESPONSE },
    Method { name: "CreateTaskPushNotificationConfig", input: &TASK_PUSH_NOTIFICATION_CONFIG, output: &TASK_PUSH_NOTIFICATION_CONFIG },
    Method { name: "GetTaskPushNotificationConfig", input: &GET_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST, output: &TASK_PUSH_NOTIFICATION_CONFIG },
    Method { name: "ListTaskPushNotificationConfigs", input: &LIST_TASK_PUSH_NOTIFICATION_CONFIGS_REQUEST, output: &LIST_TASK_PUSH_NOTIFICATION_CONFIGS_RESPONSE },
    Method { name: "GetExtendedAgentCard", input: &GET_EXTENDED_AGENT_CARD_REQUEST, output: &AGENT_CARD },
    Method { name: "DeleteTaskPushNotificationConfig", input: &DELETE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST, output: &Shape::EMPTY },
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

static ROLE: &[(&str, i32)] = &[
    ("ROLE_UNSPECIFIED", 0),
    ("ROLE_USER", 1),
    ("ROLE_AGENT", 2),
];

pub(crate) static SEND_MESSAGE_CONFIGURATION: Shape = Shape { fields: &[
    Field { number: 1, name: "acceptedOutputModes", kind: Kind::Text, rule: Rule::Many },
    Field { number: 2, name: "taskPushNotificationConfig", kind: Kind::Message(&TASK_PUSH_NOTIFICATION_CONFIG), rule: Rule::Optional },
    Field { number: 3, name: "historyLength", kind: Kind::Int, rule: Rule::Optional },
    Field { number: 4, name: "returnImmediately", kind: Kind::Flag, rule: Rule::Plain },
] };

pub(crate) static TASK: Shape = Shape { fields: &[
    Field { number: 1, name: "id", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "contextId", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "status", kind: Kind::Message(&TASK_STATUS), rule: Rule::Optional },
    Field { number: 4, name: "artifacts", kind: Kind::Message(&ARTIFACT), rule: Rule::Many },
    Field { number: 5, name: "history", kind: Kind::Message(&MESSAGE), rule: Rule::Many },
    Field { number: 6, name: "metadata", kind: Kind::Struct, rule: Rule::Optional },
] };

pub(crate) static TASK_STATUS: Shape = Shape { fields: &[
    Field { number: 1, name: "state", kind: Kind::Enum(TASK_STATE), rule: Rule::Plain },
    Field { number: 2, name: "message", kind: Kind::Message(&MESSAGE), rule: Rule::Optional },
    Field { number: 3, name: "timestamp", kind: Kind::Timestamp, rule: Rule::Optional },
] };

pub(crate) static PART: Shape = Shape { fields: &[
    Field { number: 1, name: "text", kind: Kind::Text, rule: Rule::Choice },
    Field { number: 2, name: "raw", kind: Kind::Bytes, rule: Rule::Choice },
    Field { number: 3, name: "url", kind: Kind::Text, rule: Rule::Choice },
    Field { number: 4, name: "data", kind: Kind::Value, rule: Rule::Choice },
    Field { number: 5, name: "metadata", kind: Kind::Struct, rule: Rule::Optional },
    Field { number: 6, name: "filename", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 7, name: "mediaType", kind: Kind::Text, rule: Rule::Plain },
] };

pub(crate) static MESSAGE: Shape = Shape { fields: &[
    Field { number: 1, name: "messageId", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "contextId", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "taskId", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 4, name: "role", kind: Kind::Enum(ROLE), rule: Rule::Plain },
    Field { number: 5, name: "parts", kind: Kind::Message(&PART), rule: Rule::Many },
    Field { number: 6, name: "metadata", kind: Kind::Struct, rule: Rule::Optional },
    Field { number: 7, name: "extensions", kind: Kind::Text, rule: Rule::Many },
    Field { number: 8, name: "referenceTaskIds", kind: Kind::Text, rule: Rule::Many },
] };

pub(crate) static ARTIFACT: Shape = Shape { fields: &[
    Field { number: 1, name: "artifactId", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "name", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "description", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 4, name: "parts", kind: Kind::Message(&PART), rule: Rule::Many },
    Field { number: 5, name: "metadata", kind: Kind::Struct, rule: Rule::Optional },
    Field { number: 6, name: "extensions", kind: Kind::Text, rule: Rule::Many },
] };

pub(crate) static TASK_STATUS_UPDATE_EVENT: Shape = Shape { fields: &[
    Field { number: 1, name: "taskId", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "contextId", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "status", kind: Kind::Message(&TASK_STATUS), rule: Rule::Optional },
    Field { number: 4, name: "metadata", kind: Kind::Struct, rule: Rule::Optional },
] };

pub(crate) static TASK_ARTIFACT_UPDATE_EVENT: Shape = Shape { fields: &[
    Field { number: 1, name: "taskId", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "contextId", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "artifact", kind: Kind::Message(&ARTIFACT), rule: Rule::Optional },
    Field { number: 4, name: "append", kind: Kind::Flag, rule: Rule::Plain },
    Field { number: 5, name: "lastChunk", kind: Kind::Flag, rule: Rule::Plain },
    Field { number: 6, name: "metadata", kind: Kind::Struct, rule: Rule::Optional },
] };

pub(crate) static AUTHENTICATION_INFO: Shape = Shape { fields: &[
    Field { number: 1, name: "scheme", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "credentials", kind: Kind::Text, rule: Rule::Plain },
] };

pub(crate) static AGENT_INTERFACE: Shape = Shape { fields: &[
    Field { number: 1, name: "url", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "protocolBinding", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "tenant", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 4, name: "protocolVersion", kind: Kind::Text, rule: Rule::Plain },
] };

pub(crate) static AGENT_CARD: Shape = Shape { fields: &[
    Field { number: 1, name: "name", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "description", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "supportedInterfaces", kind: Kind::Message(&AGENT_INTERFACE), rule: Rule::Many },
    Field { number: 4, name: "provider", kind: Kind::Message(&AGENT_PROVIDER), rule: Rule::Optional },
    Field { number: 5, name: "version", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 6, name: "documentationUrl", kind: Kind::Text, rule: Rule::Optional },
    Field { number: 7, name: "capabilities", kind: Kind::Message(&AGENT_CAPABILITIES), rule: Rule::Optional },
    Field { number: 8, name: "securitySchemes", kind: Kind::Message(&SECURITY_SCHEME), rule: Rule::Map },
    Field { number: 9, name: "securityRequirements", kind: Kind::Message(&SECURITY_REQUIREMENT), rule: Rule::Many },
    Field { number: 10, name: "defaultInputModes", kind: Kind::Text, rule: Rule::Many },
    Field { number: 11, name: "defaultOutputModes", kind: Kind::Text, rule: Rule::Many },
    Field { number: 12, name: "skills", kind: Kind::Message(&AGENT_SKILL), rule: Rule::Many },
    Field { number: 13, name: "signatures", kind: Kind::Message(&AGENT_CARD_SIGNATURE), rule: Rule::Many },
    Field { number: 14, name: "iconUrl", kind: Kind::Text, rule: Rule::Optional },
] };

pub(crate) static AGENT_PROVIDER: Shape = Shape { fields: &[
    Field { number: 1, name: "url", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "organization", kind: Kind::Text, rule: Rule::Plain },
] };

pub(crate) static AGENT_CAPABILITIES: Shape = Shape { fields: &[
    Field { number: 1, name: "streaming", kind: Kind::Flag, rule: Rule::Optional },
    Field { number: 2, name: "pushNotifications", kind: Kind::Flag, rule: Rule::Optional },
    Field { number: 3, name: "extensions", kind: Kind::Message(&AGENT_EXTENSION), rule: Rule::Many },
    Field { number: 4, name: "extendedAgentCard", kind: Kind::Flag, rule: Rule::Optional },
] };

pub(crate) static AGENT_EXTENSION: Shape = Shape { fields: &[
    Field { number: 1, name: "uri", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "description", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "required", kind: Kind::Flag, rule: Rule::Plain },
    Field { number: 4, name: "params", kind: Kind::Struct, rule: Rule::Optional },
] };

pub(crate) static AGENT_SKILL: Shape = Shape { fields: &[
    Field { number: 1, name: "id", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "name", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "description", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 4, name: "tags", kind: Kind::Text, rule: Rule::Many },
    Field { number: 5, name: "examples", kind: Kind::Text, rule: Rule::Many },
    Field { number: 6, name: "inputModes", kind: Kind::Text, rule: Rule::Many },
    Field { number: 7, name: "outputModes", kind: Kind::Text, rule: Rule::Many },
    Field { number: 8, name: "securityRequirements", kind: Kind::Message(&SECURITY_REQUIREMENT), rule: Rule::Many },
] };

pub(crate) static AGENT_CARD_SIGNATURE: Shape = Shape { fields: &[
    Field { number: 1, name: "protected", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "signature", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "header", kind: Kind::Struct, rule: Rule::Optional },
] };

pub(crate) static TASK_PUSH_NOTIFICATION_CONFIG: Shape = Shape { fields: &[
    Field { number: 1, name: "tenant", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "id", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "taskId", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 4, name: "url", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 5, name: "token", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 6, name: "authentication", kind: Kind::Message(&AUTHENTICATION_INFO), rule: Rule::Optional },
] };

pub(crate) static STRING_LIST: Shape = Shape { fields: &[
    Field { number: 1, name: "list", kind: Kind::Text, rule: Rule::Many },
] };

pub(crate) static SECURITY_REQUIREMENT: Shape = Shape { fields: &[
    Field { number: 1, name: "schemes", kind: Kind::Message(&STRING_LIST), rule: Rule::Map },
] };

pub(crate) static SECURITY_SCHEME: Shape = Shape { fields: &[
    Field { number: 1, name: "apiKeySecurityScheme", kind: Kind::Message(&API_KEY_SECURITY_SCHEME), rule: Rule::Choice },
    Field { number: 2, name: "httpAuthSecurityScheme", kind: Kind::Message(&HTTP_AUTH_SECURITY_SCHEME), rule: Rule::Choice },
    Field { number: 3, name: "oauth2SecurityScheme", kind: Kind::Message(&O_AUTH2_SECURITY_SCHEME), rule: Rule::Choice },
    Field { number: 4, name: "openIdConnectSecurityScheme", kind: Kind::Message(&OPEN_ID_CONNECT_SECURITY_SCHEME), rule: Rule::Choice },
    Field { number: 5, name: "mtlsSecurityScheme", kind: Kind::Message(&MUTUAL_TLS_SECURITY_SCHEME), rule: Rule::Choice },
] };

pub(crate) static API_KEY_SECURITY_SCHEME: Shape = Shape { fields: &[
    Field { number: 1, name: "description", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "location", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "name", kind: Kind::Text, rule: Rule::Plain },
] };

pub(crate) static HTTP_AUTH_SECURITY_SCHEME: Shape = Shape { fields: &[
    Field { number: 1, name: "description", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "scheme", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "bearerFormat", kind: Kind::Text, rule: Rule::Plain },
] };

pub(crate) static O_AUTH2_SECURITY_SCHEME: Shape = Shape { fields: &[
    Field { number: 1, name: "description", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "flows", kind: Kind::Message(&O_AUTH_FLOWS), rule: Rule::Optional },
    Field { number: 3, name: "oauth2MetadataUrl", kind: Kind::Text, rule: Rule::Plain },
] };

pub(crate) static OPEN_ID_CONNECT_SECURITY_SCHEME: Shape = Shape { fields: &[
    Field { number: 1, name: "description", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "openIdConnectUrl", kind: Kind::Text, rule: Rule::Plain },
] };

pub(crate) static MUTUAL_TLS_SECURITY_SCHEME: Shape = Shape { fields: &[
    Field { number: 1, name: "description", kind: Kind::Text, rule: Rule::Plain },
] };

pub(crate) static O_AUTH_FLOWS: Shape = Shape { fields: &[
    Field { number: 1, name: "authorizationCode", kind: Kind::Message(&AUTHORIZATION_CODE_O_AUTH_FLOW), rule: Rule::Choice },
    Field { number: 2, name: "clientCredentials", kind: Kind::Message(&CLIENT_CREDENTIALS_O_AUTH_FLOW), rule: Rule::Choice },
    Field { number: 3, name: "implicit", kind: Kind::Message(&IMPLICIT_O_AUTH_FLOW), rule: Rule::Choice },
    Field { number: 4, name: "password", kind: Kind::Message(&PASSWORD_O_AUTH_FLOW), rule: Rule::Choice },
    Field { number: 5, name: "deviceCode", kind: Kind::Message(&DEVICE_CODE_O_AUTH_FLOW), rule: Rule::Choice },
] };

pub(crate) static AUTHORIZATION_CODE_O_AUTH_FLOW: Shape = Shape { fields: &[
    Field { number: 1, name: "authorizationUrl", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "tokenUrl", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "refreshUrl", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 4, name: "scopes", kind: Kind::Text, rule: Rule::Map },
    Field { number: 5, name: "pkceRequired", kind: Kind::Flag, rule: Rule::Plain },
] };

pub(crate) static CLIENT_CREDENTIALS_O_AUTH_FLOW: Shape = Shape { fields: &[
    Field { number: 1, name: "tokenUrl", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "refreshUrl", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "scopes", kind: Kind::Text, rule: Rule::Map },
] };

pub(crate) static IMPLICIT_O_AUTH_FLOW: Shape = Shape { fields: &[
    Field { number: 1, name: "authorizationUrl", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "refreshUrl", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "scopes", kind: Kind::Text, rule: Rule::Map },
] };

pub(crate) static PASSWORD_O_AUTH_FLOW: Shape = Shape { fields: &[
    Field { number: 1, name: "tokenUrl", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "refreshUrl", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "scopes", kind: Kind::Text, rule: Rule::Map },
] };

pub(crate) static DEVICE_CODE_O_AUTH_FLOW: Shape = Shape { fields: &[
    Field { number: 1, name: "deviceAuthorizationUrl", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "tokenUrl", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "refreshUrl", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 4, name: "scopes", kind: Kind::Text, rule: Rule::Map },
] };

pub(crate) static SEND_MESSAGE_REQUEST: Shape = Shape { fields: &[
    Field { number: 1, name: "tenant", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "message", kind: Kind::Message(&MESSAGE), rule: Rule::Optional },
    Field { number: 3, name: "configuration", kind: Kind::Message(&SEND_MESSAGE_CONFIGURATION), rule: Rule::Optional },
    Field { number: 4, name: "metadata", kind: Kind::Struct, rule: Rule::Optional },
] };

pub(crate) static GET_TASK_REQUEST: Shape = Shape { fields: &[
    Field { number: 1, name: "tenant", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "id", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "historyLength", kind: Kind::Int, rule: Rule::Optional },
] };

pub(crate) static LIST_TASKS_REQUEST: Shape = Shape { fields: &[
    Field { number: 1, name: "tenant", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "contextId", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "status", kind: Kind::Enum(TASK_STATE), rule: Rule::Plain },
    Field { number: 4, name: "pageSize", kind: Kind::Int, rule: Rule::Optional },
    Field { number: 5, name: "pageToken", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 6, name: "historyLength", kind: Kind::Int, rule: Rule::Optional },
    Field { number: 7, name: "statusTimestampAfter", kind: Kind::Timestamp, rule: Rule::Optional },
    Field { number: 8, name: "includeArtifacts", kind: Kind::Flag, rule: Rule::Optional },
] };

pub(crate) static LIST_TASKS_RESPONSE: Shape = Shape { fields: &[
    Field { number: 1, name: "tasks", kind: Kind::Message(&TASK), rule: Rule::Many },
    Field { number: 2, name: "nextPageToken", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "pageSize", kind: Kind::Int, rule: Rule::Plain },
    Field { number: 4, name: "totalSize", kind: Kind::Int, rule: Rule::Plain },
] };

pub(crate) static CANCEL_TASK_REQUEST: Shape = Shape { fields: &[
    Field { number: 1, name: "tenant", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "id", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "metadata", kind: Kind::Struct, rule: Rule::Optional },
] };

pub(crate) static GET_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST: Shape = Shape { fields: &[
    Field { number: 1, name: "tenant", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "taskId", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "id", kind: Kind::Text, rule: Rule::Plain },
] };

pub(crate) static DELETE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST: Shape = Shape { fields: &[
    Field { number: 1, name: "tenant", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "taskId", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 3, name: "id", kind: Kind::Text, rule: Rule::Plain },
] };

pub(crate) static SUBSCRIBE_TO_TASK_REQUEST: Shape = Shape { fields: &[
    Field { number: 1, name: "tenant", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "id", kind: Kind::Text, rule: Rule::Plain },
] };

pub(crate) static LIST_TASK_PUSH_NOTIFICATION_CONFIGS_REQUEST: Shape = Shape { fields: &[
    Field { number: 1, name: "taskId", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 2, name: "pageSize", kind: Kind::Int, rule: Rule::Plain },
    Field { number: 3, name: "pageToken", kind: Kind::Text, rule: Rule::Plain },
    Field { number: 4, name: "tenant", kind: Kind::Text, rule: Rule::Plain },
] };

pub(crate) static GET_EXTENDED_AGENT_CARD_REQUEST: Shape = Shape { fields: &[
    Field { number: 1, name: "tenant", kind: Kind::Text, rule: Rule::Plain },
] };

pub(crate) static SEND_MESSAGE_RESPONSE: Shape = Shape { fields: &[
    Field { number: 1, name: "task", kind: Kind::Message(&TASK), rule: Rule::Choice },
    Field { number: 2, name: "message", kind: Kind::Message(&MESSAGE), rule: Rule::Choice },
] };

pub(crate) static STREAM_RESPONSE: Shape = Shape { fields: &[
    Field { number: 1, name: "task", kind: Kind::Message(&TASK), rule: Rule::Choice },
    Field { number: 2, name: "message", kind: Kind::Message(&MESSAGE), rule: Rule::Choice },
    Field { number: 3, name: "statusUpdate", kind: Kind::Message(&TASK_STATUS_UPDATE_EVENT), rule: Rule::Choice },
    Field { number: 4, name: "artifactUpdate", kind: Kind::Message(&TASK_ARTIFACT_UPDATE_EVENT), rule: Rule::Choice },
] };

pub(crate) static LIST_TASK_PUSH_NOTIFICATION_CONFIGS_RESPONSE: Shape = Shape { fields: &[
    Field { number: 1, name: "configs", kind: Kind::Message(&TASK_PUSH_NOTIFICATION_CONFIG), rule: Rule::Many },
    Field { number: 2, name: "nextPageToken", kind: Kind::Text, rule: Rule::Plain },
] };
