internal import CallParticipation
internal import ConfigReader

/// The section `handover`: what callers and persons hear while calls are handed over, parked or on hold.
public struct HandoverConfiguration: Sendable, Equatable {
    /// The file that callers hear who wait; nil: they hear what they heard before, and silence where they are parked or on hold.
    public var music: String?
    /// The command that speaks whispers: text on its standard input, a WAV on its standard output; empty for none.
    public var voice: [String] = []
    /// Variables with secrets of the whole file, which the command does not inherit.
    public internal(set) var withheldVariables: Set<String> = []

    /// Has neither music nor a voice.
    public init() {}

    /// The keys of the section.
    struct Keys: ConfigKeys {
        let music = ConfigKey.path(
            "music", readable: true,
            "a WAV or Ogg Opus file that callers hear, again and again, while they are handed over, parked, or joined to a call on hold"
        ).unset("none: they hear the bot while they are handed over, and silence otherwise")
        let say = ConfigKey.command(
            "say",
            "the command that speaks whispers of text: it reads a text on standard input, and writes a WAV to standard output within 15 s"
        ).unset("no voice: a hand-over with a text is refused")
    }

    init(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        music = section.value(\.music, &problems)
        if let music { section.play(music, \.music, &problems) }
        voice = section.value(\.say, &problems) ?? []
    }

    /// The file that plays to a caller while it is handed over; nil for what played before.
    func path(of music: HandoverRequest.Music) -> String? {
        switch music {
        case .configured: self.music
        case .participant: nil
        case .file(let path): path
        }
    }
}
