internal import CallMeetings
internal import ConfigReader

/// The section `behaviour.conference`.
enum ConferenceConfiguration {
    private static let usual = MeetingPlan()

    /// The keys of the section.
    struct Keys: ConfigKeys {
        let room = ConfigKey<String>.parsed(
            "room", "text", in: "1 to 64 bytes", "the name of the room; accounts with the same name meet in it",
            show: { $0 }
        ) { text throws(ConfigValueFault) in
            guard (1...64).contains(text.utf8.count) else {
                throw ConfigValueFault("must have 1 to 64 bytes, not \(text.utf8.count)")
            }
            return text
        }.unset("the account's user, which callers have called")
        let tones = ConfigKey.bool("tones", "a tone when a member joins or leaves").defaulting(to: usual.hasTones)
        let mostMembers = ConfigKey.integer(
            "most_members", in: 2...MeetingPlan.mostMembers, "members of the room; further calls are rejected as busy"
        ).defaulting(to: usual.mostMembers)
    }

    /// The plan of a section.
    static func plan(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) -> MeetingPlan {
        var plan = MeetingPlan()
        plan.room = section.value(\.room, &problems)
        plan.hasTones = section.value(\.tones, &problems)
        plan.mostMembers = section.value(\.mostMembers, &problems)
        return plan
    }
}
