internal import CallControl
internal import CallMedia
internal import ConfigReader
internal import SecureTransport

/// The sections that belong to an account: at the root of a file with one account, or in each of several.
protocol AccountKeys: ConfigKeys {
    var account: ConfigKey<KeyedSection<AccountConfiguration.Keys>> { get }
    var device: ConfigKey<KeyedSection<DeviceIdentity.Keys>> { get }
    var rooms: ConfigKey<[RoomName]> { get }
    var invites: ConfigKey<KeyedSection<InviteConfiguration.Keys>> { get }
    var answer: ConfigKey<KeyedSection<AnswerPolicy.Keys>> { get }
    var behaviour: ConfigKey<KeyedSection<BehaviourConfiguration.Keys>> { get }
    var behaviours: ConfigKey<[KeyedSection<BehaviourConfiguration.Keys>]> { get }
}

/// Their declarations.
enum AccountSections {
    static let account = ConfigKey.section(
        "account", AccountConfiguration.Keys.self, "the server and the credential")
    static let device = ConfigKey.section("device", DeviceIdentity.Keys.self, "what the device calls itself")
    static let rooms = ConfigKey<[RoomName]>.names("rooms", of: "a room's name", "rooms to join after each login")
    static let invites = ConfigKey.section(
        "invites", InviteConfiguration.Keys.self, "how invites go, calls included")
    static let answer = ConfigKey.section("answer", AnswerPolicy.Keys.self, "which calls are answered, and how")
    static let behaviour = ConfigKey.section(
        "behaviour", BehaviourConfiguration.Keys.self, "what an answered call does")
    static let behaviours = ConfigKey.sections(
        "behaviours", BehaviourConfiguration.Keys.self,
        "what calls do for which a rule of `answer.rules` names one of these ([policy.md](policy.md)), 16 at most")
}

/// One of several accounts in a file.
enum AccountEntry {
    /// Characters in a name.
    static let longestName = 64

    /// The keys of one of `accounts`.
    struct Keys: AccountKeys {
        let name = ConfigKey<String>.parsed(
            "name", "name", "what logs, status and `--account` call it; no other account has it", show: \.self
        ) { text throws(ConfigValueFault) in
            guard text.utf8.count <= longestName, let first = text.unicodeScalars.first, first != "-", first != ".",
                text.unicodeScalars.allSatisfy({
                    $0.isASCII && ($0.properties.isAlphabetic || "0123456789-_.".unicodeScalars.contains($0))
                })
            else {
                throw ConfigValueFault(
                    "must have 1 to \(longestName) letters, digits and - _ . and begin with a letter, a digit or _")
            }
            return text
        }.required
        let account = AccountSections.account.required
        let device = AccountSections.device
        let rooms = AccountSections.rooms
        let invites = AccountSections.invites
        let answer = AccountSections.answer
        let behaviour = AccountSections.behaviour
        let behaviours = AccountSections.behaviours
        let media = ConfigKey.section(
            "media", AccountMedia.Keys.self,
            "what calls of this account offer and take, in place of the process's `media`")
    }
}

/// What each of several accounts may have of its own in `media`.
enum AccountMedia {
    /// The keys of the section `media` of an account.
    struct Keys: ConfigKeys {
        let offers = MediaConfiguration.offersKey
        let codecs = ConfigKey.choices("codecs", of: SoundCodec.self, "the preferred one first").unset(
            "those of the process")
        let allowPlainRTP = ConfigKey.bool("allow_plain_rtp", "accept media without encryption")
            .unset("that of the process")
        let srtpSuites = ConfigKey.choices(
            "srtp_suites", of: SRTPSuite.self, "suites to offer and to accept, the preferred one first"
        ).unset("those of the process")
    }

    static func read(
        _ section: KeyedSection<Keys>, into media: inout MediaConfiguration, _ problems: inout [ConfigProblem]
    ) {
        section.read(\.offers, into: &media.offers, &problems)
        section.read(\.allowPlainRTP, into: &media.allowsPlainMedia, &problems)
        section.read(\.srtpSuites, into: &media.suites, &problems)
        section.read(\.codecs, into: &media.codecs, &problems)
        media.codecs = MediaConfiguration.distinct(media.codecs)
        if media.offers == .plain, !media.allowsPlainMedia {
            problems.append(section.problem(\.offers, "is plain, which needs allow_plain_rtp: true"))
        } else if media.offers == .plain, section.has(\.offers) {
            problems.append(section.warning(\.offers, MediaConfiguration.plainOffers))
        } else if media.allowsPlainMedia, section.has(\.allowPlainRTP) {
            problems.append(section.warning(\.allowPlainRTP, MediaConfiguration.plainAnswers))
        }
    }
}
