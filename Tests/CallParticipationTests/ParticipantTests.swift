import AudioPort
import BotCalls
import BotWire
import CallControl
import CallFlows
import CallMeetings
import CallParticipation
import CallPrograms
import CallVoicemail
import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

/// What a device relies on, whichever type takes part in its calls.
@Suite("Participants of calls", .timeLimit(.minutes(1)))
struct ParticipantTests {
    enum Kind: CaseIterable {
        case program, bot, port, flow, meeting, mailbox
    }

    /// A participant, what it has reported except notices and turns, and the media of its calls.
    private final class Stage: @unchecked Sendable {
        // One task uses it; events come on any thread, behind their lock.
        let participant: any CallParticipant
        private let events: Events
        private let listener: LoopbackListener?
        private var hall: MeetingHall?
        private let document = FileManager.default.temporaryDirectory.path + "/handset-flow-\(UUID()).xml"
        private var lines: [CallID: Line] = [:]

        private final class Events: Sendable {
            private let all = Mutex<[ParticipantEvent]>([])
            var value: [ParticipantEvent] { all.withLock { $0 } }

            func add(_ event: ParticipantEvent) {
                switch event {
                case .noted, .turn, .speech: break
                case .ready, .rejected, .failed, .press, .transfer, .handover, .cancelHandover, .done, .left:
                    all.withLock { $0.append(event) }
                }
            }
        }

        private final class Line {
            var line: PortLine

            init(_ line: consuming PortLine) { self.line = line }
        }

        init(_ kind: Kind) throws {
            let events = Events()
            self.events = events
            switch kind {
            case .program:
                listener = nil
                participant = try CallPrograms(ProgramPlan(command: ["cat"])) { events.add($0) }
            case .bot:
                // The system takes the connection.
                let listener = LoopbackListener()
                self.listener = listener
                let address = try #require(WebAddress("tcp://127.0.0.1:\(listener.port)", [.tcp]))
                participant = BotCalls(
                    BotPlan(address: address, wire: .audioSocket(.hz8000)), mayTransfer: { _ in false },
                    publish: { events.add($0) }, order: { _ in })
            case .flow:
                listener = nil
                try #"<Response><Gather timeout="600"/></Response>"#.write(
                    toFile: document, atomically: true, encoding: .utf8)
                participant = CallFlows(
                    FlowPlan(file: document), name: { FlowCallNames(callSid: "\($0.id)", recording: "\($0.id)") },
                    publish: { events.add($0) })
            case .meeting:
                listener = nil
                let hall = try MeetingHall(priority: nil)
                self.hall = hall
                var plan = MeetingPlan()
                plan.room = "room"
                participant = CallMeetings(plan, in: hall) { events.add($0) }
            case .mailbox:
                listener = nil
                participant = CallVoicemail(
                    VoicemailPlan(folder: document + ".box"),
                    name: { VoicemailNames(stem: "a_\($0.id.number)", id: "\($0.id.number)", received: "") },
                    publish: { events.add($0) })
            case .port:
                listener = nil
                let ports = CallPorts { events.add($0) }
                ports.provide(PortPlan()) { _ in }
                participant = ports
            }
        }

        func close() async {
            await participant.finish()
            hall?.finish()
            if let listener { Glibc.close(listener.descriptor) }
            for path in [document, document + ".box"] { try? FileManager.default.removeItem(atPath: path) }
        }

        var reported: [ParticipantEvent] { events.value }

        /// Takes an incoming call, and answers it when the participant is ready.
        func answer(_ call: CallID) async throws {
            try participant.begin(
                ParticipantCall(call, peer: "ann", isOutgoing: false, isAnswered: false))
            if participant.delaysAnswer { try await until { reported.contains(.ready(call)) } }
            guard let line = try participant.attach(to: call) else { throw NoLine() }
            lines[call] = Line(line)
        }

        /// Runs frames of a call until the participant reports something.
        func run(_ call: CallID, until event: ParticipantEvent) async throws {
            let line = try #require(lines[call])
            let silence = [Int16](repeating: 0, count: 960)
            try await until {
                var sent = silence
                var room = sent.mutableSpan
                line.line.exchange(received: silence.span, sending: &room)
                return reported.contains(event)
            }
        }
    }

    private struct NoLine: Error {}

    private let one = CallID(number: 7)
    private let other = CallID(number: 8)

    @Test("A participant that leaves a call reports that, also if it took no part in it", arguments: Kind.allCases)
    func leavesUnknownCall(kind: Kind) async throws {
        let stage = try Stage(kind)
        stage.participant.end(one, .detached)
        try await until { stage.reported == [.left(one)] }
        // Another call makes its thread run.
        try await stage.answer(other)
        stage.participant.end(one, .detached)
        try await until { stage.reported.count { $0 == .left(one) } == 2 }
        #expect(!stage.reported.contains(.left(other)))
        await stage.close()
    }

    @Test(
        "A participant is heard out, reports that it has finished, and reports nothing of a call that it has left",
        arguments: Kind.allCases)
    func hearsOut(kind: Kind) async throws {
        let stage = try Stage(kind)
        try await stage.answer(one)
        try await stage.answer(other)
        stage.participant.sendDigit("5", heldFor: .milliseconds(100), to: one)
        stage.participant.hearOut(one)
        try await stage.run(one, until: .done(one, failure: nil))
        stage.participant.end(one, .detached)
        try await until { stage.reported.contains(.left(one)) }
        // The other call continues.
        stage.participant.hearOut(one)
        stage.participant.hearOut(other)
        try await stage.run(other, until: .done(other, failure: nil))
        let ready: [ParticipantEvent] = stage.participant.delaysAnswer ? [.ready(one), .ready(other)] : []
        #expect(
            stage.reported == ready + [.done(one, failure: nil), .left(one), .done(other, failure: nil)])
        await stage.close()
    }

    @Test("A call gets a line from each participation, one after the other", arguments: Kind.allCases)
    func rejoins(kind: Kind) async throws {
        let stage = try Stage(kind)
        try await stage.answer(one)
        stage.participant.end(one, .detached)
        try await until { stage.reported.contains(.left(one)) }
        let before = stage.reported.count
        try stage.participant.begin(
            ParticipantCall(one, peer: "ann", isOutgoing: false, isAnswered: true))
        guard try stage.participant.attach(to: one) != nil else { throw NoLine() }
        stage.participant.end(one, .detached)
        try await until { stage.reported.dropFirst(before) == [.left(one)] }
        await stage.close()
    }
}
