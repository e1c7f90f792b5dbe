import Testing

/// A configuration that cannot be used, and what is said of it.
struct BrokenConfiguration: Sendable, CustomTestStringConvertible {
    /// What is wrong with it.
    let name: String
    /// `run` or `serve`.
    let command: String
    let text: String
    /// Of each problem `LINE: KEY: MESSAGE`, as far as it matters; `DIR` stands for the folder.
    let refusals: [String]
    /// Whether it shows without the machine that it is for, its files and its environment.
    let showsOffline: Bool

    var testDescription: String { "\(command): \(name)" }

    /// A device's configuration: lines 1 to 3 are its account, `more` begins on line 4.
    static func device(
        _ name: String, server: String = "http://127.0.0.1:9", _ more: String = "", offline: Bool = true,
        _ refusals: String...
    ) -> Self {
        let text = "account:\n  server: \(server)\n  media_token_file: token\n\(more)"
        return Self(name: name, command: "run", text: text, refusals: refusals, showsOffline: offline)
    }

    /// A whole device's configuration.
    static func whole(_ name: String, _ text: String, offline: Bool = true, _ refusals: String...) -> Self {
        Self(name: name, command: "run", text: text, refusals: refusals, showsOffline: offline)
    }

    /// An exchange's configuration: lines 1 to 4 are where it listens and its application, `more` begins on line 5.
    static func exchange(
        _ name: String, listen: String = "127.0.0.1:0", _ more: String = nobody, offline: Bool = true,
        _ refusals: String...
    ) -> Self {
        let text = "listen: \(listen)\napps:\n  - key: tests\n    secret_file: token\n\(more)"
        return Self(name: name, command: "serve", text: text, refusals: refusals, showsOffline: offline)
    }
}

extension BrokenConfiguration {
    static let all = accounts + severalAccounts + behaviours + media + languages + listeners + exchanges

    /// One of several accounts, in three lines and `more`.
    private static func entry(_ name: String, _ more: String = "") -> String {
        "  - name: \(name)\n    account:\n      media_token_file: token\n\(more)"
    }

    private static let severalAccounts: [Self] = [
        .whole(
            "both forms at once", "account:\n  anonymous: a\naccounts:\n\(entry("a"))answer:\n  mode: ring\n",
            "1: account: is given together with accounts; keep one of them",
            "7: answer: belongs to each account; give it in the entries of accounts"),
        .whole(
            "two accounts of one name", "accounts:\n\(entry("a"))\(entry("a"))",
            "5: accounts[2].name: is the name of an earlier account: a"),
        .whole(
            "accounts without a name, and with one that is none",
            "accounts:\n  - account:\n      anonymous: a\n\(entry("a b"))",
            "2: accounts[1].name: is required here and missing",
            "4: accounts[2].name: must have 1 to 64 letters, digits and - _ . and begin with a letter, a digit or _"),
        .whole(
            "no account", "accounts: []\n", "1: accounts: has 0 accounts; 1 to 32 are allowed"),
        .whole(
            "more accounts than may be", "accounts:\n" + (0..<33).map { entry("a\($0)") }.joined(),
            "1: accounts: has 33 accounts; 1 to 32 are allowed"),
        .whole(
            "an account with a key of the process, and a mistake in one of its own",
            "accounts:\n\(entry("a", "    media:\n      workers: 2\n    behaviour:\n      source: dance\n"))",
            "6: accounts[1].media.workers: unknown key; this section has offers, codecs, allow_plain_rtp, srtp_suites",
            "8: accounts[1].behaviour.source: must be one of echo, play, tone, silence, card, exec, bot, flow, conference, voicemail, not \"dance\""
        ),
        .whole(
            "two accounts that share what they must not",
            "accounts:\n"
                + entry(
                    "a",
                    "      session_file: one\n    device:\n      id: x\n    behaviour:\n      record_folder: calls\n")
                + entry(
                    "b",
                    "    device:\n      id: x\n      call_records: one\n    behaviour:\n      record_folder: calls\n"),
            "14: accounts[2].device.id: is that of account a at the same server; they would end each other's sessions",
            "15: accounts[2].device.call_records: is a file of account a already; give each a file of its own",
            "17: accounts[2].behaviour.record_folder: is the folder of account a already; give each a folder of its own"
        ),
    ]

    private static let accounts: [Self] = [
        .whole(
            "a SIP account with an exchange's server",
            "account:\n  kind: sip\n  server: https://x.example\n  password_file: token\n  sip:\n    address: alice@example.org\n"
                + "    transport: quic\n",
            "3: account.server: is for an exchange, and kind is sip; account.sip.server says where the SIP server is",
            "6: account.sip.address: must be a SIP URI with a user, such as sip:alice@example.org",
            "7: account.sip.transport: must be one of udp, tcp, tls, ws, wss, auto, not \"quic\""),
        .whole(
            "a SIP account that speaks in the clear, with rooms",
            "account:\n  kind: sip\n  password_file: token\n  sip:\n    address: sip:alice@example.org\nrooms: [lobby]\n"
                + "media:\n  offers: plain\n",
            "5: account.sip.transport: sends calls to another machine in the clear: use tls or wss, or allow plain text",
            "6: rooms: is for an exchange: a SIP server has no rooms",
            "8: media.offers: is plain, which needs allow_plain_rtp: true"),
        .whole(
            "a SIP account without what it needs", "account:\n  kind: sip\n",
            "2: account.password_file: is required here; give password_file: PATH or password_env: NAME",
            "2: account.sip: is required here and missing"),
        .device(
            "a SIP account of another kind", "  sip:\n    address: sip:a@example.org\n",
            "4: account.sip: is for kind: sip"),
        .whole(
            "a SIP account with more than an address",
            "account:\n  kind: sip\n  password_file: token\n  sip:\n    address: sip:alice@example.org;transport=tcp\n"
                + "    server: a b\n    register_s: -1\n",
            "5: account.sip.address: must be a user and a domain alone, such as sip:alice@example.org; `server` says where",
            "6: account.sip.server: must be HOST or HOST:PORT, such as sip.example.org or 192.0.2.10:5060",
            "7: account.sip.register_s: must be a whole number from 0 to 86400, not \"-1\""),
        .whole(
            "a SIP account that follows redirections to nobody",
            "account:\n  kind: sip\n  password_file: token\n  sip:\n    address: sip:alice@example.org\n    transport: tls\n"
                + "    follow_redirections: true\nrooms: [lobby]\n",
            "7: account.sip.follow_redirections: warning: is true, and account.callees is empty, so no redirection is",
            "8: rooms: is for an exchange: a SIP server has no rooms"),
        .whole(
            "a SIP account with half a certificate",
            "account:\n  kind: sip\n  password_file: token\n  sip:\n    address: sip:alice@example.org\n    transport: tls\n"
                + "    client_key: token\n    instance_file: one\ndevice:\n  call_records: one\n",
            "7: account.sip.client_key: is for client_certificate, which is missing",
            "10: device.call_records: is the file of account.sip.instance_file already; give each a file of its own"),
        .whole(
            "a SIP account with a certificate that is none",
            "account:\n  kind: sip\n  password_file: token\n  sip:\n    address: sip:alice@example.org\n    transport: tls\n"
                + "    client_certificate: garbage.pem\n    client_key: good.key\n",
            offline: false,
            "7: account.sip.client_certificate: \"DIR/garbage.pem\" holds no certificate in PEM form, the own one first, that can be read"
        ),
        .device(
            "http to another machine", server: "http://192.0.2.1", "",
            "2: account.server: 192.0.2.1 is another machine and its address asks for no TLS. Use https, or"),
        .device(
            "a port that is none", server: "http://127.0.0.1:99999", "",
            "2: account.server: must have a port from 1 to 65535, if it has one"),
        .device(
            "port 0", server: "http://127.0.0.1:0", "", "2: account.server: \"0\" is not a port. It should look like"),
        .device(
            "a password in the address", server: "http://a:hunter2@127.0.0.1", "",
            "2: account.server: it carries a user name or password"),
        .device(
            "a scheme that is none", server: "ftp://127.0.0.1", "",
            "2: account.server: must be a URL that begins with http:// or https://"),
        .device(
            "http to another machine for events", "  events_url: http://192.0.2.1:8555\n",
            "4: account.events_url: 192.0.2.1:8555 is another machine"),
        .device(
            "trust roots that are no PEM", "  trust_roots: garbage.pem\n", offline: false,
            "4: account.trust_roots: \"DIR/garbage.pem\": it holds no certificate in PEM form. It should"),
        .device(
            "a key for trust roots", "  trust_roots: good.key\n", offline: false,
            "4: account.trust_roots: \"DIR/good.key\": it holds no certificate in PEM form"),
        .device(
            "a secret in the clear", "  app_secret: hunter2\n",
            "4: account.app_secret: must not be in this file; give app_secret_file: PATH or app_secret_env: NAME"),
        .device("a colon in the program's key", "  app_key: a:b\n", "4: account.app_key: must not contain a colon"),
        .device(
            "another secret in the clear", "  password: hunter2\n", "2: account.kind: give only one of",
            "4: account.password: must not be in this file; give password_file: PATH or password_env: NAME"),
        .device(
            "a secret's file that is not there", "  app_secret_file: nowhere\n", offline: false,
            "4: account.app_secret_file: \"DIR/nowhere\" cannot be read: No such file or directory"),
        .device(
            "a secret's variable that is not set", "  app_secret_env: HANDSET_NOT_SET\n", offline: false,
            "4: account.app_secret_env: names the environment variable HANDSET_NOT_SET, which is not set or is empty"),
        .whole(
            "no way in", "account:\n  server: http://127.0.0.1:9\n", "2: account.media_token_file: is required: give"),
        .whole(
            "a program that is not there", "account:\n  token_command: [no-such-program]\n", offline: false,
            "2: account.token_command: there is no program \"no-such-program\" that may be run"),
        .whole(
            "a folder in the place of a program", "account:\n  token_command: [/tmp]\n", offline: false,
            "2: account.token_command: there is no program \"/tmp\" that may be run"),
        .device(
            "a program that may not be run", "behaviour:\n  source: exec\n  command: [./garbage.pem]\n", offline: false,
            "6: behaviour.command: \"DIR/./garbage.pem\" may not be run; `chmod +x` allows it"),
        .device(
            "somebody's text in the place of a login", "  session_file: garbage.pem\n", offline: false,
            "4: account.session_file: \"DIR/garbage.pem\": its content is not a login that this version keeps. Give the"
        ),
        .device(
            "one file for logins and records", "  session_file: kept\ndevice:\n  call_records: ./kept\n",
            offline: false,
            "6: device.call_records: is the file of account.session_file already; give each a file of its own"),
        .device(
            "a program that is not in the folder", "behaviour:\n  source: exec\n  command: [./no-such-program]\n",
            offline: false,
            "6: behaviour.command: there is no program \"./no-such-program\" that may be run: \"DIR/./no-such-program\""
        ),
        .device(
            "a session that no name can be", "  session: \"a\\u0001\"\n",
            "4: account.session: the session's name has the character U+0001"),
    ]

    private static let behaviours: [Self] = [
        .device(
            "a file that nothing plays", "behaviour:\n  source: echo\n  file: song.mp3\n",
            "6: behaviour.file: is for source: play, and the source is echo; change it, or remove this key"),
        .device("a loop of nothing", "behaviour:\n  loop: true\n", "5: behaviour.loop: is for source: play"),
        .device(
            "a pitch of silence", "behaviour:\n  source: silence\n  frequency_hz: 440\n",
            "6: behaviour.frequency_hz: is for source: tone, and the source is silence"),
        .device(
            "nothing to play", "behaviour:\n  source: play\n", "5: behaviour.file: is required with source: play"),
        .device(
            "a file of another kind", "behaviour:\n  source: play\n  file: song.mp3\n", offline: false,
            "6: behaviour.file: cannot play"),
        .device(
            "music of another kind", "handover:\n  music: song.mp3\n", offline: false,
            "5: handover.music: cannot play"),
        .device(
            "a bot without an address", "behaviour:\n  source: bot\n", "5: behaviour.bot: is required with source: bot"),
        .device(
            "a bot on a wire that its address is not for",
            "behaviour:\n  source: bot\n  bot:\n    url: tcp://127.0.0.1:9092\n",
            "7: behaviour.bot.url: must begin with one of http://, https://, ws://, wss:// with wire: twilio, not tcp://"
        ),
        .device(
            "a bot's sound that its wire does not have",
            "behaviour:\n  source: bot\n  bot:\n    url: ws://127.0.0.1:7860/ws\n    rate_hz: 16000\n",
            "8: behaviour.bot.rate_hz: there is no mulaw sound at 16000 Hz with wire: twilio"),
        .device(
            "a realtime session at a rate that it does not have",
            "behaviour:\n  source: bot\n  bot:\n    url: wss://bot.example/\n    wire: realtime\n    rate_hz: 16000\n",
            "9: behaviour.bot.rate_hz: there is no linear sound at 16000 Hz with wire: realtime"),
        .device(
            "a key of sessions with a WebRTC leg",
            "behaviour:\n  source: bot\n  bot:\n    url: https://bot.example/\n    wire: realtime\n    speaks_first: true\n",
            "9: behaviour.bot.speaks_first: belongs to wire: realtime with a URL of ws:// or wss://; remove it"),
        .device(
            "a host with a port",
            "behaviour:\n  source: bot\n  bot:\n    url: ws://127.0.0.1:7860/ws\n    allowed_hosts: [a:1]\n",
            "8: behaviour.bot.allowed_hosts: must be a host's name or address"),
        .device(
            "a bot's server that may place calls on another wire",
            requests("wire: plivo", "calls:\n        key: SK1\n        password_file: song.mp3\n"),
            "12: behaviour.bot.requests.calls: is for wire: twilio, and the wire is plivo"),
        .device(
            "a bot's server that places calls with the password that ends them",
            requests("wire: twilio", "calls:\n        key: SK1\n        password_file: token\n"), offline: false,
            "14: behaviour.bot.requests.calls.password_file: must be another one than that of behaviour.bot.requests"),
        .device(
            "a bot's server that places calls as the account",
            requests(
                "account: AC1",
                "calls:\n        key: AC1\n        password_file: song.mp3\n        callees: [\"a*b\"]\n"),
            "13: behaviour.bot.requests.calls.key: must be another one than behaviour.bot.account",
            "15: behaviour.bot.requests.calls.callees: must be a user's name, the beginning of one with",
            "15: behaviour.bot.requests.calls.callees: warning: is account.callees now"),
        .device(
            "a certificate for a bot's requests that is none",
            requests(
                "wire: twilio", "certificate:\n        chain_file: garbage.pem\n        key_file: good.key\n"),
            offline: false,
            "13: behaviour.bot.requests.certificate.chain_file: \"DIR/garbage.pem\" holds no certificate in PEM form"),
        .device(
            "a status that calls do not have",
            "behaviour:\n  source: bot\n  bot:\n    url: ws://127.0.0.1:7860/ws\n    status_callback_events: [done]\n",
            "8: behaviour.bot.status_callback_events: "),
        .device(
            "a source that is none", "behaviour:\n  source: ehco\n",
            "5: behaviour.source: must be one of echo, play, tone, silence, card, exec, bot, flow, conference, voicemail, not \"ehco\"; "
                + "did you mean echo?"),
        .device(
            "a flow without its section", "behaviour:\n  source: flow\n",
            "5: behaviour.flow: is required with source: flow"),
        .device(
            "a flow without a file", "behaviour:\n  source: flow\n  flow:\n    say: [cat]\n",
            "7: behaviour.flow.file: is required, or url for a flow that a server gives"),
        .device(
            "a flow of a file and of a server",
            "behaviour:\n  source: flow\n  flow:\n    url: https://a.example/\n    file: menu.xml\n",
            "7: behaviour.flow.url: is given together with file; keep one of them"),
        .device(
            "a server of a flow with a password",
            "behaviour:\n  source: flow\n  flow:\n    url: https://ann:secret@a.example/\n",
            "7: behaviour.flow.url: must be a URL that begins with http:// or https://, without a user and a password"),
        .device(
            "a key of a server in a flow of files",
            "behaviour:\n  source: flow\n  flow:\n    fallback_url: https://a.example/\n",
            "7: behaviour.flow.file: is required, or url for a flow that a server gives",
            "7: behaviour.flow.fallback_url: is for a flow with url"),
        .device(
            "a flow's host with a port",
            "behaviour:\n  source: flow\n  flow:\n    url: https://a.example/\n    allowed_hosts: [\"b.example:80\"]\n",
            "8: behaviour.flow.allowed_hosts: must be a host's name or address, or *.example.org, without a port, not "
                + "\"b.example:80\""),
        .device(
            "a server of a flow that may take a minute",
            "behaviour:\n  source: flow\n  flow:\n    url: https://a.example/\n    timeout_ms: 60000\n",
            "8: behaviour.flow.timeout_ms: "),
        .device(
            "a flow of another source", "behaviour:\n  source: echo\n  flow:\n    file: menu.xml\n",
            "6: behaviour.flow: is for source: flow, and the source is echo; change it, or remove this key"),
        .device(
            "voicemail without its section", "behaviour:\n  source: voicemail\n",
            "5: behaviour.voicemail: is required with source: voicemail"),
        .device(
            "voicemail of another source", "behaviour:\n  source: echo\n  voicemail:\n    folder: box\n",
            "6: behaviour.voicemail: is for source: voicemail, and the source is echo; change it, or remove this key"),
        .device(
            "a mailbox without room for one message",
            "behaviour:\n  source: voicemail\n  voicemail:\n    folder: box\n    megabytes: 5\n",
            "8: behaviour.voicemail.megabytes: must be 6 or more: a message of 180 s has that size"),
        .device(
            "recordings among messages",
            "behaviour:\n  source: voicemail\n  record_folder: box\n  voicemail:\n    folder: box\n",
            "6: behaviour.record_folder: must be another folder than that of voicemail; change one"),
        .device(
            "a country by its name", "behaviour:\n  source: card\naudio:\n  country: Germany\n",
            "7: audio.country: \"Germany\" is not an ISO 3166 code of a country, such as DE, GB or US"),
        .device(
            "recordings beneath a file", "behaviour:\n  record_folder: token/calls\n", offline: false,
            "5: behaviour.record_folder: \"DIR/token/calls\" cannot be written to: "),
        .device(
            "records in a folder that is not there", "device:\n  call_records: nowhere/calls.jsonl\n", offline: false,
            "5: device.call_records: \"DIR/nowhere/calls.jsonl\" cannot be written to: No such file or directory"),
        .device(
            "a file for a socket", "control:\n  socket: token\n", offline: false,
            "5: control.socket: \"DIR/token\" cannot be written to: there is a file that is not a socket"),
        .device(
            "one socket for two interfaces", "control:\n  socket: a.sock\n  http:\n    socket: a.sock\n",
            "7: control.http.socket: is control.socket, too; give it another path"),
        .device(
            "a socket's path with no room for that beside it",
            "control:\n  socket: /tmp/\(String(repeating: "s", count: 95)).sock\n  http: { socket: default }\n",
            "5: control.socket: leaves no room for that of control.http beside it, a path of 110 bytes"),
        .device(
            "an origin with a path",
            "control:\n  socket: default\n  http:\n    listen: 127.0.0.1:0\n    token_file: token\n    "
                + "allowed_origins: [\"https://desk.example.org/a\"]\n",
            "9: control.http.allowed_origins: \"https://desk.example.org/a\" must be an origin without a path"),
        .device(
            "a webhook without a history, in plain text",
            "control:\n  socket: default\n  webhooks:\n    - url: http://192.0.2.1/a\n      secret_file: good.key\n",
            "6: control.webhooks: needs control.http.history_folder, where events wait for them",
            "7: control.webhooks[1].url: must begin with https://, unless it is on this machine"),
        .device(
            "a webhook with a short secret",
            "control:\n  socket: default\n  http: { history_folder: . }\n  webhooks:\n    - url: https://a.example\n"
                + "      secret_file: token\n", offline: false,
            "9: control.webhooks[1].secret_file: must hold at least 24 bytes, as text or as whsec_ and base64"),
        .device(
            "a webhook whose trust roots are no PEM",
            "control:\n  socket: default\n  http: { history_folder: . }\n  webhooks:\n    - url: https://a.example\n"
                + "      secret_file: good.key\n      trust_roots: garbage.pem\n", offline: false,
            "10: control.webhooks[1].trust_roots: \"DIR/garbage.pem\": it holds no certificate in PEM form"),
        .device(
            "a webhook without a secret",
            "control:\n  socket: default\n  http: { history_folder: . }\n  webhooks:\n    - url: https://a.example\n",
            "8: control.webhooks[1].secret_file: is required here; give secret_file: PATH or secret_env: NAME"),
        .device(
            "two webhooks with the same address",
            "control:\n  socket: default\n  http: { history_folder: . }\n  webhooks:\n"
                + "    - { url: \"https://b.example\", secret_file: good.key }\n"
                + "    - { url: \"https://b.example\", secret_file: good.key }\n", offline: false,
            "9: control.webhooks[2].url: is that of an earlier webhook"),
        .device(
            "an id that no device can have", "device:\n  id: \"\\u200Bx\"\n",
            "5: device.id: the device's id has the character U+200B"),
        .device("a room without a name", "rooms: [\"\"]\n", "4: rooms: a room's name must not be empty. Names have"),
        .device(
            "callers allowed and denied", "answer:\n  allow: [a]\n  deny: [b]\n",
            "6: answer.deny: is given together with allow; keep one of them"),
    ]

    private static let media: [Self] = [
        .device(
            "another machine's address", "media:\n  address: 203.0.113.77\n", offline: false,
            "5: media.address: "),
        .device(
            "more workers than ports", "media:\n  port: 65535\n  workers: 2\n",
            "5: media.port: leaves no port for each of the 2 workers"),
        .device(
            "one port where two belong", "media:\n  ports: 16384\n",
            "5: media.ports: must be two ports from 1024 to 65535, such as 16384-17383, the lower one first"),
        .device(
            "ports the wrong way round", "media:\n  ports: 17383-16384\n",
            "5: media.ports: must be two ports from 1024 to 65535"),
        .device(
            "ports that the workers have", "media:\n  port: 16400\n  workers: 2\n  ports: 16384-16400\n",
            "7: media.ports: has the ports of the media workers (port: 16400); leave out 16400 to 16401"),
        .device(
            "fewer ports than calls", "answer:\n  max_calls: 20\nmedia:\n  ports: 16384-16402\n",
            "7: media.ports: has 19 ports, and answer.max_calls allows 20 calls at a time; give it at least 40"),
        .device(
            "a longest delay below the shortest", "media:\n  jitter:\n    min_delay_ms: 80\n    max_delay_ms: 40\n",
            "7: media.jitter.max_delay_ms: must not be below min_delay_ms (80)"),
        .device(
            "trust roots of relays that are no PEM", "media:\n  relay_trust_roots: garbage.pem\n", offline: false,
            "5: media.relay_trust_roots: reading trusted certificates from \"DIR/garbage.pem\" failed"),
        .device(
            "a relay that lets nobody in", "media:\n  ice_servers:\n    - urls: [\"turn:a.example\"]\n",
            "6: media.ice_servers[1].urls: names a TURN server, which wants username and credential_file beside it"),
        .device(
            "a codec that is none", "media:\n  codecs: [g729]\n",
            "5: media.codecs: \"g729\" is unknown; allowed: opus, pcmu, pcma"),
    ]

    private static let languages: [Self] = [
        .whole(
            "a tab", "account:\n\tserver: http://127.0.0.1:9\n", "2: begins with a tab; YAML is indented with spaces"),
        .device(
            "a key given twice", "  media_token_file: token\n",
            "4: account.media_token_file: is given twice in this section, first on line 3; keep one of them"),
        .whole(
            "the first key misspelt", "acount:\n  media_token_file: token\n",
            "1: account: is required here and missing", "1: acount: unknown key; did you mean account?"),
        .device("a key misspelt", "anwser:\n  mode: auto\n", "4: anwser: unknown key; did you mean answer?"),
        .device("two documents", "---\nmedia: {}\n", "5: holds another document; one is expected"),
        .device("a section that is none", "answer: ring\n", "4: answer: must be a section with keys of its own"),
        .device(
            "several at once", "answer:\n  mode: maybe\n  delay_ms: soon\n",
            "5: answer.mode: must be one of auto, ring, reject, not \"maybe\"",
            "6: answer.delay_ms: must be a whole number of milliseconds from 0 to 60000, not \"soon\""),
    ]

    private static let listeners: [Self] = [
        .exchange(
            "a public listener without TLS", listen: "0.0.0.0:0", nobody,
            "1: listen: will not listen on 0.0.0.0:0 without TLS: passwords and keys would cross the network in the clear."
        ),
        .exchange(
            "a public listener of IPv6", listen: "'[::]:18010'", nobody,
            "1: listen: will not listen on [::]:18010 without TLS: passwords and keys would cross the network in the"),
        .exchange(
            "a star", listen: "'*:8555'", nobody,
            "1: listen: must be HOST:PORT with a port from 0 to 65535, such as 127.0.0.1:8443 or [::1]:8443, not "
                + "\"*:8555\"; 0.0.0.0 is all addresses of IPv4"),
        .exchange(
            "a port that is none", listen: "127.0.0.1:99999", nobody, "1: listen: must be HOST:PORT with a port from 0"),
        .exchange(
            "another machine's address", listen: "203.0.113.5:0", "users: []\nplain_text: allowed\n", offline: false,
            "1: listen: cannot listen on 203.0.113.5:0: that is not an address of this machine (`ip address`)."),
        .exchange(
            "a name that no address has", listen: "nowhere.invalid:0", "users: []\nplain_text: allowed\n",
            offline: false,
            "1: listen: cannot listen on nowhere.invalid:0: no address has that name. Give an address"),
        .exchange(
            "a certificate that is none", certified("garbage.pem", "good.key"), offline: false,
            "7: certificate.chain_file: \"DIR/garbage.pem\" holds no certificate in PEM form"),
        .exchange(
            "a key that is none", certified("good.pem", "garbage.pem"), offline: false,
            "8: certificate.key_file: \"DIR/garbage.pem\" holds no private key in PEM form"),
        .exchange(
            "another certificate's key", certified("good.pem", "other.key"), offline: false,
            "8: certificate.key_file: \"DIR/other.key\" is not the private key of the certificate in \"DIR/good.pem\""),
        .exchange(
            "a certificate that has expired", certified("expired.pem", "expired.key"), offline: false,
            "7: certificate.chain_file: \"DIR/expired.pem\" expired "),
        .exchange(
            "a certificate that is not valid yet", certified("early.pem", "early.key"), offline: false,
            "7: certificate.chain_file: \"DIR/early.pem\" is not valid yet, but in "),
        .exchange(
            "a certificate that is not there", certified("nowhere.pem", "good.key"), offline: false,
            "7: certificate.chain_file: \"DIR/nowhere.pem\" cannot be read: No such file or directory"),
        .exchange(
            "a certificate without its key", "users: []\ncertificate:\n  chain_file: good.pem\n",
            "7: certificate.key_file: is required here and missing"),
    ]

    /// As much as an exchange needs.
    private static let nobody = "users: []\n"

    /// A bot with requests: line 8 is `more`, and what is in the section begins on line 12.
    private static func requests(_ more: String, _ section: String) -> String {
        """
        behaviour:
          source: bot
          bot:
            url: ws://127.0.0.1:7860/ws
            \(more)
            requests:
              listen: 127.0.0.1:0
              password_file: token
              \(section)
        """
    }

    private static func certified(_ chain: String, _ key: String) -> String {
        "users: []\ncertificate:\n  chain_file: \(chain)\n  key_file: \(key)\n"
    }

    private static let exchanges: [Self] = [
        .exchange(
            "a users file with a fault", "users_file: users.yaml\n", offline: false,
            "DIR/users.yaml:3: users[1].colour: unknown key; this section has id"),
        .exchange(
            "a webhook by http to another machine",
            "users: []\npush:\n  webhooks:\n    - kind: fcm\n      url: http://192.0.2.1/push\n",
            "9: push.webhooks[1].url: must begin with https://, unless it is on this machine or plain_text is allowed"),
        .exchange(
            "a WebSocket's port that is none", "users: []\nwebsocket_url: wss://calls.example.org:99999/v1/rtc\n",
            "6: websocket_url: must have a port from 1 to 65535, if it has one"),
        .exchange(
            "a user's password in the clear", "users:\n  - id: alice\n    password: hunter2\n",
            "7: users[1].password: must not be in this file; give password_file: PATH or password_env: NAME instead"),
        .exchange(
            "records of calls without a database", "users: []\ncall_records_days: 9\ndatabase_durability: full\n",
            "6: call_records_days: is for a database, which is missing; give database, or remove this key",
            "7: database_durability: is for a database, which is missing; give database, or remove this key"),
        .exchange(
            "a topic of Apple's for another webhook",
            "users: []\npush:\n  webhooks:\n    - kind: mail\n      url: https://a.example\n      apns_topic: x\n",
            "10: push.webhooks[1].apns_topic: is for shape: apns, and the shape is generic; change it, or remove this key"
        ),
        .exchange(
            "an id of two users", "users:\n  - id: alice\n  - id: bob\n    public_ids: [alice]\n",
            "8: users[2].public_ids: \"alice\" is already the id of alice"),
        .exchange(
            "a short key for tokens", "users: []\napi_keys:\n  - key: school\n    secret_file: token\n", offline: false,
            "8: api_keys[1].secret_file: must have at least 32 bytes"),
        .exchange(
            "a TURN name without its password",
            "users: []\nice_servers:\n  - urls: [\"turn:a.example\"]\n    username: u\n",
            "8: ice_servers[1].username: has no effect alone; give username and credential_file together"),
        .exchange(
            "a STUN server that no browser takes", "users: []\nice_servers:\n  - urls: [\"http://x\"]\n  - urls: []\n",
            "7: ice_servers[1].urls: \"http://x\" must be stun:HOST:PORT, stuns:HOST:PORT, turn:HOST:PORT or turns:HOST:",
            "8: ice_servers[2].urls: needs at least one URL"),
        .exchange(
            "one media token of two users",
            "users:\n  - id: alice\n    media_token_file: token\n  - id: bob\n    media_token_file: token\n",
            offline: false,
            "9: users[2].media_token_file: contains a media token of alice; each user needs tokens of its own"),
        .exchange(
            "an origin that is none", "users: []\nallowed_origins: [calls.example.org]\n",
            "6: allowed_origins: \"calls.example.org\" must be an origin, such as https://calls.example.org"),
        .exchange("nobody to log in", "", "1: users: is required here and missing"),
    ]
}
