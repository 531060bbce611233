//! Phrases of prompt injection: patterns, and the anchors they are found by.
//!
//! A pattern reads a window around its anchor, so its gaps are short. Each needs more than one sign: an order and its object, not a single
//! word. Texts about such attacks look like them; `docs/GUARDRAILS.md` has the rate of false alarms.

use crate::finding_kind::FindingKind;

/// A phrase in one language.
pub(crate) struct Phrase {
    pub(crate) kind: FindingKind,
    /// Words of which every match has one, in any ASCII case.
    pub(crate) anchors: &'static [&'static str],
    pub(crate) pattern: &'static str,
}

const fn phrase(kind: FindingKind, anchors: &'static [&'static str], pattern: &'static str) -> Phrase {
    Phrase { kind, anchors, pattern }
}

/// Marks that are findings by themselves.
pub(crate) const MARKERS: &[(FindingKind, &str)] = &[
    (FindingKind::RoleMarker, "<|im_start|>"),
    (FindingKind::RoleMarker, "<|im_end|>"),
    (FindingKind::RoleMarker, "<|system|>"),
    (FindingKind::RoleMarker, "<|assistant|>"),
    (FindingKind::RoleMarker, "<|start_header_id|>"),
    (FindingKind::RoleMarker, "<|eot_id|>"),
    (FindingKind::RoleMarker, "<|endoftext|>"),
    (FindingKind::RoleMarker, "<<SYS>>"),
    (FindingKind::RoleMarker, "[/INST]"),
    (FindingKind::RoleMarker, "<start_of_turn>"),
    (FindingKind::RoleMarker, "\n\nHuman: "),
    (FindingKind::RoleMarker, "\n\nAssistant: "),
    (FindingKind::RoleMarker, "</system>"),
    (FindingKind::RoleMarker, "[system message]"),
    (FindingKind::RoleMarker, "begin system prompt"),
    (FindingKind::RoleMarker, "end of system prompt"),
];

pub(crate) const PHRASES: &[Phrase] = &[
    phrase(
        FindingKind::InstructionOverride,
        &[
            "ignor",
            "disregard",
            "forget ",
            "overrid",
            "bypass",
            "discard",
            "not follow",
            "not obey",
            "n't follow",
            "n't obey",
        ],
        r"(?i)\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget|overrid(?:e|ing)|bypass(?:ing)?|discard|(?:do not|don't) (?:follow|obey))\b[^.!?\n]{0,24}?\b(?:all|any|every|your|previous|prior|above|earlier|preceding|initial|original|system|safety|developer|everything)\b[^.!?\n]{0,40}?\b(?:instructions?|prompts?|rules|guidelines?|directions|directives?|constraints|restrictions|safeguards|programming|orders|policies)\b",
    ),
    phrase(
        FindingKind::InstructionOverride,
        &["ignor", "disregard", "forget "],
        r"(?i)\b(?:ignore|disregard|forget) (?:everything|all|anything) (?:(?:that )?(?:was|i|you|we)(?: have| were|'ve)? (?:said|told|written|taught)|(?:said |written )?(?:above|before|until now|so far|previously))",
    ),
    phrase(
        FindingKind::InstructionOverride,
        &[
            "new instructions",
            "updated instructions",
            "real instructions",
            "instead of your task",
            "actual task",
            "real task",
            "new task",
        ],
        r"(?i)(?:^|\n|[.!:>\]*-] ?)\W*(?:your |these are (?:your |the )?)?(?:new|updated|real) instructions? ?(?::|are|is|follow)|\byour (?:actual|real|new) task is\b",
    ),
    phrase(
        FindingKind::InstructionOverride,
        &["gnorier", "ergiss", "ergesse", "issachte"],
        r"(?i)(?:ignorier|vergiss|vergessen|missachte)[^.!?\n]{0,50}(?:vorherig|bisherig|obig|vorangegangen|früher|system)[^.!?\n]{0,30}(?:anweisung|instruktion|regel|vorgabe|prompt|befehl)",
    ),
    phrase(
        FindingKind::InstructionOverride,
        &["ignore", "oublie", "ne tiens pas compte", "ne tenez pas compte"],
        r"(?i)(?:ignore[sz]?|oublie[sz]?|ne (?:tiens|tenez) pas compte)[^.!?\n]{0,40}(?:instructions?|consignes?|règles?|directives?|ordres)[^.!?\n]{0,30}(?:précédente?s?|antérieure?s?|ci-dessus|initiale?s?|système|données avant)",
    ),
    phrase(
        FindingKind::InstructionOverride,
        &["ignor", "olvid", "descart", "esque", "desconsider", "dimentic"],
        r"(?i)(?:ignor|olvid|descart|esque|desconsider|dimentic)\w*[^.!?\n]{0,40}(?:instruc|instruç|istruzion|órdenes|ordens|reglas|regras|regole|indicaciones|indicazioni)\w*[^.!?\n]{0,30}(?:anterior|previa|prévia|precedent|arriba|acima|del sistema|do sistema|di sistema)",
    ),
    phrase(
        FindingKind::InstructionOverride,
        &["negeer", "vergeet"],
        r"(?i)(?:negeer|vergeet)[^.!?\n]{0,40}(?:vorige|eerdere|voorgaande|bovenstaande)[^.!?\n]{0,20}(?:instructies|opdrachten|regels|aanwijzingen)",
    ),
    phrase(
        FindingKind::InstructionOverride,
        &["ignoruj", "zignoruj", "zapomnij"],
        r"(?i)(?:z?ignoruj|zapomnij)[^.!?\n]{0,40}(?:poprzedni|wcześniejsz|powyższ)[^.!?\n]{0,20}(?:instrukcj|polece|zasad)",
    ),
    phrase(
        FindingKind::InstructionOverride,
        &["гнорируй", "абудь", "ігноруй"],
        r"(?i)(?:игнорируй|проигнорируй|забудь|ігноруй)[^.!?\n]{0,80}(?:предыдущ|прежн|вышеуказанн|попередн)[^.!?\n]{0,60}(?:инструкц|указан|правил|команд|інструкц)",
    ),
    phrase(
        FindingKind::InstructionOverride,
        &["忽略", "无视", "無視", "忘记", "忘れ"],
        r"(?:忽略|无视|忘记)[^。！？\n]{0,12}(?:之前|以前|先前|前面|以上|所有)[^。！？\n]{0,12}(?:指令|指示|提示|规则|命令)|(?:以前|これまで|前|上記|すべて)の[^。！？\n]{0,12}(?:指示|命令|ルール|プロンプト)[^。！？\n]{0,6}(?:無視|忘れ)",
    ),
    phrase(
        FindingKind::InstructionOverride,
        &["무시", "잊어"],
        r"(?:이전|앞의|위의|모든)[^.!?\n]{0,20}(?:지시|명령|지침|프롬프트|규칙)[^.!?\n]{0,10}(?:무시|잊어)",
    ),
    phrase(
        FindingKind::InstructionOverride,
        &["تجاهل", "انس"],
        r"(?:تجاهل|انس[َى]?)[^.!؟\n]{0,40}(?:التعليمات|الأوامر|القواعد)[^.!؟\n]{0,30}(?:السابقة|أعلاه)",
    ),
    phrase(
        FindingKind::PromptLeak,
        &[
            "system prompt",
            "initial prompt",
            "initial instructions",
            "hidden instructions",
            "original instructions",
            "secret instructions",
            "developer message",
            "system instructions",
            "system message",
            "hidden prompt",
        ],
        r"(?i)\b(?:reveal|show|print|repeat|output|tell me|display|leak|give me|dump|quote|paste|what (?:is|was|are)|write out|copy)\b[^.!?\n]{0,40}?\b(?:your|the full|the exact|the hidden|its)\b[^.!?\n]{0,20}?(?:system|initial|hidden|original|secret|developer)\s+(?:prompt|instructions?|message)",
    ),
    phrase(
        FindingKind::PromptLeak,
        &["text above", "words above", "everything above", "instructions above"],
        r"(?i)\b(?:repeat|print|output|copy|translate)\b[^.!?\n]{0,20}\b(?:all (?:of )?the|the|everything|all)\b[^.!?\n]{0,12}\babove\b[^.!?\n]{0,40}(?:verbatim|word for word|code block|starting with|exactly)",
    ),
    phrase(
        FindingKind::PromptLeak,
        &[
            "ystemprompt",
            "system-prompt",
            "prompt système",
            "prompt de sistema",
            "prompt del sistema",
            "системный промпт",
            "系统提示",
            "システムプロンプト",
        ],
        r"(?i)(?:zeig|gib|nenne|verrate|wiederhol|affiche|montre|révèle|muestra|revela|mostra|repite|покажи|выведи|раскрой|显示|告诉我|输出|重复)[^.!?。\n]{0,50}(?:systemprompt|system-prompt|prompt système|prompt de[l]? sistema|системный промпт|系统提示)|システムプロンプト[^。\n]{0,10}(?:表示|教えて|出力)",
    ),
    phrase(
        FindingKind::Persona,
        &[
            "you are now",
            "do anything now",
            "developer mode",
            "jailbr",
            "no restrictions",
            "without restrictions",
            "without any restrictions",
            "unrestricted ai",
            "no longer bound",
            "ethical ",
            "no rules",
            "no filter",
            "content filter",
            "opposite day mode",
            "evil twin",
            "from now on",
        ],
        r"(?i)\byou are now (?:in )?(?:DAN\b|an? (?:unrestricted|unfiltered|uncensored|evil|jailbroken)|developer mode|free (?:from|of)|no longer)|\bdo anything now\b|\bdeveloper mode (?:is )?(?:now )?(?:enabled|activated)|\b(?:enable|enter|activate) (?:developer|jailbreak|god) mode\b|\b(?:act|behave|respond|answer|pretend|roleplay|reply)\b[^.!?\n]{0,60}\b(?:no|without(?: any)?) (?:ethical |moral |content |safety )?(?:restrictions|rules|filters|limits|guidelines|censorship)|\bno longer bound by\b|\bfrom now on,? you (?:will|must|shall|are going to) (?:only |always )?(?:obey|act as|answer as|respond as|ignore|pretend|do whatever)",
    ),
    phrase(
        FindingKind::Concealment,
        &[
            "the user",
            "this to anyone",
            "mention this",
            "this instruction",
            "this message",
            "this note",
            "this step",
            "these instruction",
        ],
        r"(?i)\b(?:do not|don't|never|without)\s+(?:ever )?(?:tell(?:ing)?|mention(?:ing)?|inform(?:ing)?|notify(?:ing)?|reveal(?:ing)?|alert(?:ing)?|let(?:ting)?)\b(?:[^.!?\n]{0,20} to)? the user\b(?: (?:about|that|of|know|anything|this|what|you))?|\b(?:do not|don't|never) (?:mention|reveal|disclose) (?:this|these|that) (?:instruction|message|note|step|to (?:the user|anyone))",
    ),
    phrase(
        FindingKind::RoleMarker,
        &["[inst]", "system:", "### system", "### instruction", "<system>", "system override"],
        r"(?im)^\s*\[INST\]|(?m)^\W{0,4}(?i:system)\s*:\s*(?i:you|ignore|new|override|from now|the (?:user|assistant)|disregard)|^#{2,4} (?:System|Instructions?)\s*:|<system>|(?i)^\W{0,6}system override\b",
    ),
    phrase(
        FindingKind::Exfiltration,
        &["](http"],
        r"!\[[^\]\n]{0,80}\]\(https?://[^)\s]{1,120}[?&/][^)\s=]{0,40}=?(?:\{[^}\s]{1,60}\}|<[^>\n]{1,60}>|\[[^\]\n]{1,60}\]|\$\w+|%7[Bb]|[A-Z_]{6,40}\b|[A-Za-z0-9+/_=-]{48,})",
    ),
    phrase(
        FindingKind::Exfiltration,
        &[
            "conversation",
            "chat history",
            "api key",
            "credentials",
            "environment variables",
            "secrets",
            "passwords",
            "private key",
            "ssh key",
            "access token",
            "system prompt",
        ],
        r"(?i)\b(?:send|post|forward|upload|exfiltrate|transmit|e-?mail|append|submit|leak|copy)\b[^.!?\n]{0,60}\b(?:conversation|chat history|api keys?|credentials|environment variables|secrets|passwords|private keys?|ssh keys?|access tokens?|system prompt)\b[^!?\n]{0,50}?\b(?:to|at|as)\b[^!?\n]{0,30}?(?:https?://|[\w.-]+@[\w-]+\.|webhook|(?:this|the following) (?:url|address|endpoint))",
    ),
    phrase(
        FindingKind::Exfiltration,
        &["id_rsa", ".env", ".aws/credentials", "/etc/passwd", "/etc/shadow", ".ssh/"],
        r"(?i)\b(?:read|open|cat|load|get|include|fetch)\b[^!?\n]{0,50}(?:\.ssh/\w|id_rsa|\.env\b|\.aws/credentials|/etc/passwd|/etc/shadow)[^!?\n]{0,60}\b(?:pass|send|include|append|post|upload|put|return|paste|encode)\b[^!?\n]{0,60}\b(?:to|as|in|into|with|parameter|argument|sidenote|response)\b",
    ),
];
