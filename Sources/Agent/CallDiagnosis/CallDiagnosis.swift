// CallDiagnosis: what went wrong in a call, whose fault it looks like, and what to try, from the figures of its record. Pure.

/// What went wrong in a call.
///
/// Each rule looks at one kind of fault, and finds nothing rather than guess. Rules on sound need a call that was established for two
/// seconds, so that a call that was hung up at once has no fault.
public struct CallDiagnosis: Sendable {
    /// What was found, the gravest first; nothing if nothing went wrong that this side can see.
    public let findings: [Finding]

    /// Judges a call.
    public init(_ facts: CallFacts) {
        let found = OutcomeRules(facts).findings + (SoundRules(facts)?.findings ?? [])
        let explained = found.reduce(into: Set<Finding.Code>()) { $0.formUnion(Self.effects(of: $1.code)) }
        findings = found.filter { !explained.contains($0.code) }
    }

    /// What a fault causes besides, and what is not named beside it.
    private static func effects(of code: Finding.Code) -> Set<Finding.Code> {
        switch code {
        case .wrongClockRate:
            [
                .lossHere, .jitter, .reordering, .longDelay, .clockDrift, .peerSilent, .peerQuiet, .wrongFormat,
                .machineStalled,
            ]
        case .wrongKeys, .wrongPayloadType, .wrongFormat:
            [.lossHere, .jitter, .reordering, .peerSilent, .peerQuiet, .clockDrift]
        case .reordering: [.jitter]
        case .machineStalled: [.jitter, .lossHere, .reordering, .longDelay, .clockDrift, .diskSlow]
        case .peerVanished, .lossHere: [.peerSilent, .peerQuiet]
        case .severalStreams: [.jitter, .reordering, .clockDrift, .peerSilent, .peerQuiet]
        case .programFailed: [.programSilent, .slowProgram]
        case .programStuck: [.programSilent]
        case .fileFailed: [.diskSlow]
        case .muted: [.microphoneSilent, .microphoneQuiet]
        case .setUpFailed, .nothingReceived, .nothingSentArrives, .peerSendsNoSound, .noPackets,
            .lossThere, .jitter, .longDelay, .slowMedia, .diskSlow, .cardGaps, .slowProgram, .connectionLost, .killed,
            .clockDrift, .microphoneSilent, .microphoneQuiet, .peerSilent, .peerQuiet, .programSilent,
            .peerClipped, .clipped, .serviceLost, .onHold, .unknownSource:
            []
        }
    }
}
