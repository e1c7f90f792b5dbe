internal import CallControl
internal import CallVoicemail
internal import ConfigReader
internal import Core
internal import Files
internal import Voicemail

/// The section `behaviour.voicemail.menu`.
enum MenuConfiguration {
    /// The keys of the section.
    struct Keys: ConfigKeys {
        let owners = ConfigKey<[CalleePattern]>.callerPatterns(
            "owners", "callers who hear the messages in place of leaving one"
        ).required
        let pin = ConfigKey.secret(
            "pin", suggestsName: true, "what owners must enter: 6 to 12 digits; required if `owners` contains `*`")
        let say = ConfigKey.command(
            "say",
            "the command that speaks the prompts: it reads a text on standard input, and writes a WAV to standard output within 15 s"
        ).unset("no voice: `prompts` must have all prompts")
        let prompts = ConfigKey.path(
            "prompts", "a folder with prompts as WAV files ([voicemail.md](voicemail.md#a-menu-for-the-owner))"
        ).unset("the voice says all prompts")
    }

    static func plan(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) -> MenuPlan? {
        let owners = section.value(\.owners, &problems)
        let pin = section.value(\.pin, &problems)?.revealed
        let say = section.value(\.say, &problems)
        let prompts = section.value(\.prompts, &problems)
        if let pin, !MailboxMenu.pinDigits.contains(pin.utf8.count) || !pin.utf8.allSatisfy({ (48...57).contains($0) })
        {
            problems.append(section.problem(\.pin, "must be 6 to 12 digits, because a telephone has no other keys"))
        }
        section.require(\.owners, &problems)
        if let owners, owners.contains(where: { $0.text.contains("*") || $0.text.contains("?") }), !section.has(\.pin) {
            problems.append(
                section.problem(
                    \.owners,
                    "has a pattern, so any caller of that name would hear the messages; name the owners, or give a pin"
                ))
        }
        checkPrompts(section, say, prompts, &problems)
        guard let owners else { return nil }
        var plan = MenuPlan(owners: owners)
        plan.pin = pin.map { WipedBytes($0.utf8) }
        plan.say = say ?? []
        plan.prompts = prompts
        return plan
    }

    private static func checkPrompts(
        _ section: KeyedSection<Keys>, _ say: [String]?, _ prompts: String?, _ problems: inout [ConfigProblem]
    ) {
        guard !section.has(\.say) else { return }
        guard let prompts else {
            if !section.has(\.prompts) {
                problems.append(
                    section.problem(
                        \.say, "or prompts is required: without them an owner would hear nothing but messages"))
            }
            return
        }
        guard section.fileChecks != .none else { return }
        let missing = MailboxPrompt.names.filter { !RegularFile.isThere("\(prompts)/\($0).wav") }
        guard !missing.isEmpty else { return }
        problems.append(
            section.problem(
                \.prompts,
                "has no \(missing.map { "\($0).wav" }.joined(separator: ", ")), and there is no say to speak them"))
    }
}
