public import CallVoicemail
internal import ConfigReader
internal import CallControl
internal import Core
internal import SIP
internal import Voicemail

/// The section `behaviour.voicemail`.
enum VoicemailConfiguration {
    private static let usual = VoicemailBounds()

    /// The keys of the section.
    struct Keys: ConfigKeys {
        let folder = ConfigKey.outputFolder(
            "folder", "where messages are kept (mode 0600), which must contain nothing else; made if it is missing"
        ).required
        let greeting = ConfigKey.path(
            "greeting", "what callers hear before the tone: WAV or Ogg Opus"
        ).unset("the tone alone")
        let longest = ConfigKey.seconds("longest_seconds", in: 5...3_600, "longest message").defaulting(
            to: usual.longest)
        let mostMessages = ConfigKey.integer(
            "most_messages", in: 1...1_000, "messages that are kept; further calls are rejected as busy"
        ).defaulting(to: usual.mostMessages)
        let megabytes = ConfigKey.integer(
            "megabytes", in: 1...1_000_000, unit: "MB",
            "size of all messages; a call is rejected as busy if the longest message would not fit"
        ).defaulting(to: usual.megabytes)
        let days = ConfigKey.integer(
            "days", in: 1...36_500, unit: "days", "remove older messages, whether they were heard or not"
        ).unset("kept until they are deleted")
        let command = ConfigKey.command(
            "command",
            "a command for each new message: it reads the message as JSON on standard input, and has 60 s"
        ).unset("none")
        let menu = ConfigKey.section(
            "menu", MenuConfiguration.Keys.self,
            "owners hear the messages by telephone ([voicemail.md](voicemail.md#a-menu-for-the-owner))")
        let notify = ConfigKey<[CalleePattern]>.callerPatterns(
            "notify", "with a SIP account: users whose telephones may ask to be notified of messages (RFC 3842)"
        ).unset("none")
        let announceTo = ConfigKey<[UserID]>.names(
            "announce_to", of: "a user to be notified",
            "with a SIP account: users who are notified of messages without asking, 8 at most"
        ).unset("none")
    }

    /// The plan of a section.
    ///
    /// - Parameter isUsed: Whether calls leave messages there, so that the greeting must be playable.
    static func plan(
        _ section: KeyedSection<Keys>, isUsed: Bool, _ problems: inout [ConfigProblem]
    ) -> VoicemailPlan? {
        let folder = section.value(\.folder, &problems)
        var bounds = VoicemailBounds()
        bounds.longest = section.value(\.longest, &problems)
        bounds.mostMessages = section.value(\.mostMessages, &problems)
        bounds.megabytes = section.value(\.megabytes, &problems)
        bounds.days = section.value(\.days, &problems)
        let greeting = section.value(\.greeting, &problems)
        if isUsed, let greeting { section.play(greeting, \.greeting, &problems) }
        let command = section.value(\.command, &problems)
        if bounds.messageBytes > bounds.megabytes * 1_000_000 {
            let needed = (bounds.messageBytes + 999_999) / 1_000_000
            problems.append(
                section.problem(
                    \.megabytes, "must be \(needed) or more: a message of \(bounds.longest.text) has that size"))
        }
        let notices = notices(section, &problems)
        let menu = section.value(\.menu, &problems).flatMap { MenuConfiguration.plan($0, &problems) }
        guard let folder else { return nil }
        var plan = VoicemailPlan(folder: folder)
        plan.greeting = greeting
        plan.bounds = bounds
        plan.command = command ?? []
        plan.notices = notices
        plan.menu = menu
        return plan
    }

    /// As many as a SIP account notifies.
    private static let mostTargets = SIPLimits.mailboxTargets

    private static func notices(
        _ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]
    ) -> VoicemailNotices {
        var notices = VoicemailNotices()
        notices.subscribers = section.value(\.notify, &problems) ?? []
        notices.targets = section.value(\.announceTo, &problems) ?? []
        if notices.targets.count > mostTargets {
            problems.append(
                section.problem(\.announceTo, "has \(notices.targets.count) users; \(mostTargets) are allowed"))
        }
        return notices
    }
}

extension DeviceConfiguration {
    /// The mailboxes of the device, with the names of their behaviours; that of the section `behaviour` has the empty name.
    public var mailboxes: [(behaviour: String, plan: VoicemailPlan)] {
        allBehaviours.compactMap { name, behaviour in behaviour.source.mailbox.map { (behaviour: name, plan: $0) } }
    }
}
