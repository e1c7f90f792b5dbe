import AudioPort
import CallControl
import CallParticipation
import CallVoicemail
import Foundation
import LoopbackAnalysis
import Synchronization
import TestSupport
import Voicemail

/// A mailbox in a folder of its own, and one call of it, whose media the test runs frame by frame.
final class Stage: @unchecked Sendable {
    // One task uses it; events come on any thread, behind their lock.
    let folder: String
    let box: CallVoicemail
    let call = CallID(number: 7)
    private let events = Mutex<[ParticipantEvent]>([])
    private var line: LineBox?
    private(set) var heard: [Int16] = []

    struct NoCall: Error {
        let events: [ParticipantEvent]
    }

    private final class LineBox {
        var line: PortLine

        init(_ line: consuming PortLine) { self.line = line }
    }

    private final class Sink: Sendable {
        let publish = Mutex<(@Sendable (ParticipantEvent) -> Void)?>(nil)
        let messages = Mutex(0)
    }

    init(folder: String? = nil, _ change: (inout VoicemailPlan) -> Void = { _ in }) {
        self.folder = folder ?? FileManager.default.temporaryDirectory.path + "/handset-voicemail-\(UUID())/box"
        var plan = VoicemailPlan(folder: self.folder)
        change(&plan)
        let sink = Sink()
        box = CallVoicemail(
            plan,
            name: { call in
                let id = sink.messages.withLock { number in
                    number += 1
                    return "m\(call.id.number)x\(number)"
                }
                let caller = (call.caller ?? call.peer.text).filter(\.isLetter)
                return VoicemailNames(
                    stem: "2026-11-29T10-40-0\(id.count)Z_from_\(caller)_\(id)", id: id,
                    received: "2026-11-29T10:40:05.000Z")
            },
            isOwner: { call, owners in owners.contains { $0.text == call.caller } },
            publish: { event in sink.publish.withLock { $0 }?(event) })
        sink.publish.withLock { $0 = { [weak self] event in self?.events.withLock { $0.append(event) } } }
    }

    var mailbox: VoicemailFolder { VoicemailFolder(path: folder) }

    /// What was reported, except notices.
    var reported: [ParticipantEvent] {
        events.withLock { all in all.filter { if case .noted = $0 { false } else { true } } }
    }

    var notices: [ParticipantNotice] {
        events.withLock { all in all.compactMap { if case .noted(let notice, _) = $0 { notice } else { nil } } }
    }

    /// The messages of which there was an event.
    var stored: [VoicemailMessage] {
        notices.compactMap { if case .stored(let message, _) = $0 { message } else { nil } }
    }

    var warnings: [String] { notices.compactMap { if case .warned(let why, _) = $0 { why } else { nil } } }

    func begin(caller: String? = nil, name: String? = nil) throws {
        var details = ParticipantCall(call, peer: "ann", own: "bob", isOutgoing: false, isAnswered: false)
        details.caller = caller
        details.callerName = name
        try box.begin(details)
    }

    func answer(caller: String? = nil, name: String? = nil) async throws {
        try begin(caller: caller, name: name)
        try await until { !reported.isEmpty }
        guard reported == [.ready(call)], let line = box.attach(to: call) else { throw NoCall(events: reported) }
        self.line = LineBox(line)
    }

    /// Runs frames, in which the caller says something, until a condition is met.
    func run(saying sound: [Int16] = [], until isMet: () -> Bool = { true }) async throws {
        var rest = sound[...]
        try await until {
            let frame = Array(rest.prefix(960)) + [Int16](repeating: 0, count: 960 - min(960, rest.count))
            rest = rest.dropFirst(960)
            var sent = [Int16](repeating: 0, count: 960)
            var room = sent.mutableSpan
            line?.line.exchange(received: frame.span, sending: &room)
            heard += sent
            return rest.isEmpty && isMet()
        }
    }

    /// Answers, runs until the tone is over, and has the caller speak.
    func speak(seconds: Double) async throws {
        try await answer()
        try await run { soundMilliseconds >= 380 }
        try await run(saying: silence(1))
        var speaker = SyntheticSpeech(seed: 31, levelDBFS: -24)
        try await run(saying: speaker.samples(seconds: seconds))
    }

    func silence(_ seconds: Int) -> [Int16] { [Int16](repeating: 0, count: 48_000 * seconds) }

    /// Milliseconds with sound.
    var soundMilliseconds: Int { heard.count { $0 != 0 } / 48 }

    func press(_ key: Character) { box.sendDigit(key, heldFor: .milliseconds(100), to: call) }

    func hangUp() async throws {
        box.end(call, .detached)
        try await until { reported.last == .left(call) }
    }

    /// Forgets a call that has ended, so that another one can begin; notices stay.
    func forget() {
        events.withLock { $0.removeAll { if case .noted = $0 { false } else { true } } }
        line = nil
        heard = []
    }

    func finish() async { await box.finish() }

    func remove() { try? FileManager.default.removeItem(atPath: (folder as NSString).deletingLastPathComponent) }

    var files: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).filter { $0 != ".lock" }.sorted()
    }
}
