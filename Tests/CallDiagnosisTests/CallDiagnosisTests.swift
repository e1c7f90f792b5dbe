import CallControl
import Foundation
import Testing

@testable import CallDiagnosis

@Suite("What went wrong in a call")
struct CallDiagnosisTests {
    /// A minute of a call in which nothing went wrong: 50 packets a second each way, and reports every five seconds.
    private static func clean() -> CallFacts {
        var facts = CallFacts(
            .incoming, peer: "alice@example.org", reason: .completed, endedBy: .remote, duration: 60_000)
        (facts.answeredAfter, facts.establishedAfter, facts.flowingAfter) = (20, 180, 260)
        var media = MediaFacts()
        (media.sent.packets, media.received.packets, media.received.reports, media.frames) = (3_000, 2_995, 12, 3_000)
        (media.received.playout.played, media.received.playout.silent, media.received.playout.concealed) = (
            60_000, 300, 20
        )
        (media.received.playout.buffered, media.received.playout.bufferedMost, media.roundTrip, media.received.quiet) =
            (45, 70, 35, 20)
        facts.media = media
        return facts
    }

    private static func found(_ change: (inout CallFacts, inout MediaFacts) -> Void) -> [Finding] {
        var facts = clean()
        var media = facts.media ?? MediaFacts()
        change(&facts, &media)
        if facts.media != nil { facts.media = media }
        return CallDiagnosis(facts).findings
    }

    private static func codes(_ change: (inout CallFacts, inout MediaFacts) -> Void) -> [Finding.Code] {
        found(change).map(\.code)
    }

    @Test(
        "A clean call has no finding, nor one with little loss, some late packets, silence, or no reports of the other side"
    )
    func clean() {
        #expect(Self.codes { _, _ in } == [])
        #expect(Self.codes { $1.received.lost = 80 } == [])
        #expect(Self.codes { $1.received.late = 80 } == [])
        #expect(Self.codes { ($1.received.playout.silent, $1.received.packets) = (50_000, 500) } == [])
        #expect(Self.codes { ($1.received.reports, $1.roundTrip) = (0, nil) } == [])
        #expect(Self.codes { $1.skipped = 4 } == [])
        #expect(Self.codes { $1.received.dropped = ["unauthenticated": 3, "early": 5, "replayed": 40] } == [])
        #expect(Self.codes { _, media in media.card = CardFacts() } == [])
    }

    @Test("A call that ends at once has no fault of its sound, nor one that was never established or has no figures")
    func short() {
        #expect(Self.codes { ($0.duration, $1.received.packets, $1.received.reports) = (1_500, 0, 0) } == [])
        #expect(Self.codes { ($0.establishedAfter, $1.received.packets, $1.received.reports) = (nil, 0, 0) } == [])
        #expect(Self.codes { facts, _ in facts.media = nil } == [])
    }

    @Test("Where nothing was heard, what came instead says why")
    func nothingHeard() {
        func silent(_ dropped: [String: Int] = [:], reports: Int = 0) -> [Finding] {
            Self.found { _, media in
                (
                    media.received.packets, media.received.playout.played, media.received.playout.silent,
                    media.received.quiet
                ) = (0, 60_000, 60_000, nil)
                (media.received.dropped, media.received.reports) = (dropped, reports)
            }
        }
        #expect(silent().map(\.code) == [.nothingReceived] && silent()[0].side == .pathHere)
        #expect(silent(reports: 12).map(\.code) == [.peerSendsNoSound])
        #expect(silent(["unauthenticated": 2_900], reports: 0).map(\.code) == [.wrongKeys])
        #expect(silent(["early": 2_900]).first?.side == .unclear)
        #expect(silent(["unknown payload type": 2_900], reports: 12).map(\.code) == [.wrongPayloadType])
        #expect(silent(["unknown source": 2_900]).map(\.code) == [.unknownSource])
        #expect(silent(["malformed": 2_900]).map(\.code) == [.noPackets])
        #expect(silent(["looped": 2_900]).first?.text.contains("own sound") == true)
        #expect(
            silent(["unauthenticated": 5]).map(\.code) == [.nothingReceived],
            "a few strays are not the other side's sound")
    }

    @Test("What is lost is reported by its direction, with the share")
    func loss() throws {
        let here = Self.found { $1.received.lost = 300 }
        #expect(
            here.map(\.code) == [.lossHere] && here[0].side == .pathHere && here[0].evidence.contains("9.1 % of 3295"))
        let there = Self.found { $1.sent.lost = 300 }
        #expect(
            there.map(\.code) == [.lossThere] && there[0].side == .pathThere
                && there[0].evidence.contains("10.0 % of 3000"))
        #expect(Self.codes { ($1.received.lost, $1.sent.lost) = (300, 300) } == [.lossHere, .lossThere])
        #expect(Self.codes { $1.sent.lost = 2_990 } == [.nothingSentArrives], "not as loss besides")
        #expect(Self.codes { ($1.sent.lost, $1.received.reports) = (2_990, 0) } == [], "no report came")
    }

    @Test("Delays and orders of packets are distinguished")
    func delays() {
        #expect(
            Self.codes {
                ($1.received.late, $1.received.playout.buffered, $1.received.playout.bufferedMost) = (400, 180, 290)
            } == [.jitter])
        #expect(Self.codes { $1.received.discarded = 400 } == [.jitter])
        #expect(Self.codes { $1.received.reordered = 400 } == [.reordering])
        let long = Self.found { $1.roundTrip = 700 }
        #expect(long.map(\.code) == [.longDelay] && long[0].advice.contains("relay"))
        #expect(Self.found { $1.received.playout.buffered = 320 }.first?.advice.contains("jitter buffer") == true)
        #expect(Self.codes { facts, _ in facts.establishedAfter = 6_000 } == [.slowMedia])
    }

    @Test("Sound is late by what this side has seen, and not by reports that the other side never sends")
    func lateSound() {
        func codes(firstPacketAfter delay: Int64) -> [Finding.Code] {
            Self.codes { facts, _ in
                facts.flowingAfter = 9_000
                facts.moments = [CallMoment(.established, at: 1_000), CallMoment(.firstPacket, at: 1_000 + delay)]
            }
        }
        #expect(codes(firstPacketAfter: 40) == [] && codes(firstPacketAfter: 3_500) == [.slowMedia])
        #expect(Self.codes { facts, _ in facts.flowingAfter = 9_000 } == [])
    }

    @Test("What a program, a file, the service and a hold did is named by the moments of the call, with their time")
    func moments() {
        func found(
            _ kind: CallMoment.Kind, _ text: String? = nil,
            _ change: (inout CallFacts, inout MediaFacts) -> Void = { _, _ in }
        )
            -> [Finding]
        {
            Self.found {
                $0.moments = [
                    CallMoment(.established, at: 1_764_417_790_000),
                    CallMoment(kind, at: 1_764_417_800_000, text: text),
                ]
                change(&$0, &$1)
            }
        }
        let failed = found(.programFailed, "it ended with exit code 7") {
            facts, _ in
            (facts.reason, facts.endedBy, facts.cause, facts.error) = (
                .acceptFailed, .neither, .deviceFault, "the call's program: …"
            )
        }
        #expect(failed.map(\.code) == [.programFailed] && failed[0].side == .bot)
        #expect(failed[0].evidence == "it ended with exit code 7, at 12:03:20")
        #expect(found(.fileFailed, "no space left").map(\.code) == [.fileFailed])
        #expect(found(.programBehind).map(\.code) == [.programStuck])
        let held = found(.direction, "inactive") { $1.received.quiet = 50_000 }
        #expect(held.map(\.code) == [.onHold] && held[0].evidence.contains("12:03:20 to the end"))
        #expect(found(.direction, "sendrecv") == [])
        let lost = found(.serviceLost) {
            ($0.reason, $0.endedBy, $1.received.quiet) = (.connectionLost, .neither, 28_000)
        }
        #expect(lost.map(\.code) == [.serviceLost] && lost[0].side == .service)
        #expect(
            found(.serviceBack) { facts, _ in
                facts.moments.insert(CallMoment(.serviceLost, at: 1_764_417_795_000), at: 1)
                (facts.reason, facts.endedBy) = (.connectionLost, .neither)
            }.map(\.code) == [.connectionLost])
    }

    @Test("A short hold, a few strange packets and a failure of long ago hide no other fault")
    func notHidden() {
        let begin: Int64 = 1_764_417_790_000
        func moments(_ more: CallMoment...) -> [CallMoment] { [CallMoment(.established, at: begin)] + more }
        let held = Self.codes { facts, media in
            facts.moments = moments(
                CallMoment(.direction, at: begin + 10_000, text: "inactive"),
                CallMoment(.direction, at: begin + 14_000, text: "sendrecv"))
            (media.received.packets, media.received.reports) = (0, 0)
        }
        #expect(Set(held) == [.onHold, .nothingReceived])
        // Early media in one direction is no hold.
        let early = Self.codes { facts, _ in
            facts.moments = [
                CallMoment(.direction, at: begin - 20_000, text: "recvonly"),
                CallMoment(.direction, at: begin, text: "sendrecv"), CallMoment(.established, at: begin),
            ]
        }
        #expect(early == [])
        let strange = Self.codes { _, media in
            (media.received.dropped, media.received.lost) = (["unknown source": 120], 600)
        }
        #expect(Set(strange) == [.unknownSource, .lossHere])
        let restarted = Self.codes { facts, media in
            facts.moments = moments(CallMoment(.programFailed, at: begin + 5_000, text: "it ended"))
            (facts.reason, facts.endedBy, media.received.quiet) = (.connectionLost, .neither, 20_000)
        }
        #expect(restarted == [.connectionLost, .programFailed])
    }

    @Test(
        "The service is blamed if sound still came when it was lost, and otherwise the network of this device may be at fault"
    )
    func ownNetwork() {
        let begin: Int64 = 1_764_417_790_000
        let found = Self.found { facts, media in
            facts.moments = [CallMoment(.established, at: begin), CallMoment(.serviceLost, at: begin + 40_000)]
            (facts.reason, facts.endedBy, media.received.quiet) = (.connectionLost, .neither, 28_000)
        }
        #expect(found.map(\.code) == [.serviceLost] && found[0].side == .unclear)
        #expect(found[0].advice.contains("this device's own network"))
    }

    @Test("A device that is stopped says so in the outcome, and a call that runs has lasted so far")
    func outcomes() {
        var facts = CallFacts(.incoming, peer: "bob", reason: .completed, endedBy: .local, duration: 4_000)
        facts.moments = [CallMoment(.shutDown, at: 0)]
        #expect(facts.outcome.hasSuffix("this side hung up because the device was being stopped."))
        facts.hangUpCause = .maximumDuration
        #expect(facts.outcome.contains("longest duration"))
        (facts.isRunning, facts.establishedAfter) = (true, 10)
        #expect(facts.outcome == "The call from bob has lasted 4.0 s so far.")
    }

    @Test(
        "Streams of other names and packets from other addresses beside the call's are named, and what follows from them is not"
    )
    func strangers() {
        func codes(_ reason: String, _ count: Int) -> [Finding.Code] {
            Self.codes { (_, media) in
                (media.received.dropped, media.received.late, media.received.quiet) = ([reason: count], 900, 20)
            }
        }
        #expect(codes("other stream", 400) == [.severalStreams] && codes("unknown source", 400).first == .unknownSource)
        #expect(Self.codes { $1.received.dropped = ["other stream": 9, "unknown source": 9] } == [])
    }

    @Test("Clipped sound is named by who makes it, and loud sound is not clipped")
    func clipped() {
        #expect(
            Self.codes { $1.received.clipped = 200 } == [.peerClipped] && Self.codes { $1.received.clipped = 19 } == [])
        let ours = Self.found { ($1.sent.clipped, $1.sent.source) = (50, "card") }
        #expect(ours.map(\.code) == [.clipped] && ours[0].side == .ours)
        #expect(Self.found { ($1.sent.clipped, $1.sent.source) = (50, "program") }.map(\.side) == [.bot])
    }

    @Test("Evidence of loss names the time in which it happened, and what was sent while nothing came")
    func when() {
        let found = Self.found { facts, media in
            media.received.lost = 750
            var timeline = CallTimeline(begins: 1_764_417_790_000)
            var counters: [CallTimeline.Column: Int] = [:]
            for second in 1...60 {
                counters[.received, default: 0] += (11...25).contains(second) ? 0 : 50
                counters[.lost, default: 0] += second == 26 ? 750 : 0
                counters[.sent, default: 0] += 50
                timeline.note(counters, at: second)
            }
            facts.timeline = timeline
        }
        #expect(found.map(\.code) == [.lossHere])
        #expect(found[0].evidence.contains("nine in ten of that from 12:03:35 to 12:03:36"))
        #expect(found[0].evidence.hasSuffix("from 12:03:20 to 12:03:35 no packet came, while 750 were sent"))
    }

    @Test("Silence is named by where it comes from; a muted microphone is not silent besides")
    func silence() {
        func codes(_ source: String, _ peak: Int, muted: Bool? = nil, digital: Bool? = nil) -> [Finding.Code] {
            Self.codes { _, media in
                (media.sent.source, media.sent.peak) = (source, peak)
                guard let muted else { return }
                media.card = CardFacts()
                media.card?.isMuted = muted
                media.card?.isDigitalSilence = digital
            }
        }
        #expect(codes("card", -100, muted: false, digital: true) == [.microphoneSilent])
        #expect(codes("card", -100, muted: true, digital: true) == [.muted])
        #expect(codes("card", -70, muted: true, digital: false) == [.muted])
        #expect(codes("card", -40, muted: false, digital: false) == [])
        #expect(codes("program", -100) == [.programSilent])
        #expect(codes("silence", -100) == [] && codes("file", -100) == [])
        func peer(_ peak: Int, _ digital: Bool?, quiet: Int = 20) -> [Finding.Code] {
            Self.codes {
                ($1.received.peak, $1.received.isDigitalSilence, $1.received.quiet) = (peak, digital, quiet)
            }
        }
        #expect(peer(-100, true) == [.peerSilent] && peer(-59, false) == [])
        #expect(peer(-100, true, quiet: 8_000) == [.peerVanished])
    }

    @Test("A quiet room is not taken for a dead or muted microphone: whose fault it is, if any, is not clear")
    func quietRoom() {
        for digital in [false, nil] {
            let here = Self.found { _, media in
                (media.sent.source, media.sent.peak, media.card) = ("card", -70, CardFacts())
                media.card?.isDigitalSilence = digital
            }
            #expect(here.map(\.code) == [.microphoneQuiet] && here[0].side == .unclear)
            let there = Self.found { ($1.received.peak, $1.received.isDigitalSilence) = (-70, digital) }
            #expect(there.map(\.code) == [.peerQuiet] && there[0].side == .unclear)
        }
    }

    @Test(
        "Timestamps of another codec's rate and a clock that is off have their own names, and a short call has neither")
    func clocks() {
        func codes(_ rate: Double, over span: Int = 60_000, of expected: Int = 48_000) -> [Finding.Code] {
            Self.codes { $1.received.clock = ClockFacts(rate: expected, measured: rate, over: span) }
        }
        #expect(codes(8_010) == [.wrongClockRate] && codes(44_050) == [.wrongClockRate])
        #expect(codes(48_000, of: 8_000) == [.wrongClockRate])
        #expect(codes(8_010, over: 2_500) == [] && codes(39_000) == [], "not clear")
        // 70 ms of jitter leave 1,167 millionths open over a minute.
        #expect(codes(48_150) == [] && codes(48_200) == [.clockDrift] && codes(47_800) == [.clockDrift])
        #expect(codes(48_030, over: 600_000) == [.clockDrift] && codes(48_020, over: 600_000) == [])
        #expect(codes(48_004, over: 600_000) == [])
    }

    @Test("Reports of which none confirms a packet of this side mean that none arrives; too few reports mean nothing")
    func unconfirmed() {
        func codes(_ reports: Int, _ confirmations: Int?, sent: Int = 3_000) -> [Finding.Code] {
            Self.codes {
                ($1.received.reports, $1.sent.confirmations, $1.sent.packets) = (reports, confirmations, sent)
            }
        }
        #expect(codes(12, 0) == [.nothingSentArrives])
        #expect(codes(12, 1) == [] && codes(2, 0) == [] && codes(12, nil) == [] && codes(12, 0, sent: 400) == [])
    }

    @Test("What is this side's fault is said to be so")
    func ours() {
        for finding in [
            Self.found { $1.skipped = 100 }, Self.found { $1.recordGap = 400 }, Self.found { $1.playGap = 400 },
            Self.found { _, media in
                media.card = CardFacts()
                media.card?.isMuted = true
            },
            Self.found { _, media in
                media.card = CardFacts()
                media.card?.captureGap = 900
            },
            Self.found { facts, _ in
                (facts.reason, facts.endedBy, facts.error) = (
                    .internalError, .neither, "the device stopped during the call"
                )
            },
        ] {
            #expect(finding.count == 1 && finding[0].side == .ours, "\(finding)")
        }
    }

    @Test(
        "A bot that is slow, packets that are not what they say, other keys in part, and a peer that falls silent have their names"
    )
    func others() {
        #expect(Self.codes { facts, _ in facts.slowResponse = 3_200 } == [.slowProgram])
        #expect(Self.codes { $1.received.malformed = 600 } == [.wrongFormat])
        #expect(
            Self.codes { ($1.received.discarded, $1.received.peak) = (2_995, -100) } == [.wrongFormat],
            "and not as jitter")
        #expect(Self.codes { $1.received.dropped = ["unauthenticated": 600] } == [.wrongKeys])
        #expect(Self.codes { $1.received.dropped = ["unknown payload type": 600] } == [.wrongPayloadType])
        #expect(Self.codes { $1.received.quiet = 8_000 } == [.peerVanished])
        let lost = Self.found { facts, media in
            (facts.reason, facts.endedBy, media.received.quiet) = (.connectionLost, .neither, 31_000)
        }
        #expect(lost.map(\.code) == [.connectionLost] && lost[0].evidence.contains("31.0 s"))
    }

    @Test(
        "Every cause of a failed call has its finding, with a sentence and what to try",
        arguments: CallFailureCause.allCases)
    func causes(cause: CallFailureCause) {
        var facts = CallFacts(.outgoing, peer: "bob", reason: .dialFailed, endedBy: .remote, duration: 0)
        (facts.cause, facts.error) = (cause, "some words")
        let findings = CallDiagnosis(facts).findings
        #expect(findings.map(\.code) == [.setUpFailed] && findings[0].text.contains(cause.sentence))
        #expect(findings[0].evidence == "cause \(cause.rawValue): some words" && findings[0].advice.hasSuffix("."))
    }

    @Test(
        "A call that was declined, busy or not answered is no fault",
        arguments: [CallEndReason.declined, .busy, .noAnswer, .cancelled, .acceptedElsewhere])
    func noFault(reason: CallEndReason) {
        let facts = CallFacts(.outgoing, peer: "bob", reason: reason, endedBy: .remote, duration: 0)
        #expect(CallDiagnosis(facts).findings == [] && facts.outcome.hasPrefix("The call to bob "))
    }

    @Test("The outcome says who ended the call, and why")
    func outcome() {
        var facts = Self.clean()
        #expect(facts.outcome == "The call from alice@example.org lasted 60.0 s; the other side hung up.")
        (facts.endedBy, facts.hangUpCause) = (.local, .maximumDuration)
        #expect(facts.outcome.contains("behaviour.max_call_seconds"))
    }

    @Test(
        "The record's JSON is one flat object whose members have the names that earlier versions wrote, and reads what they wrote"
    )
    func json() throws {
        let text = """
            {"buffered_ms":45,"buffered_p95_ms":70,"card":{"capture_gap_ms":10,"digital_silence":false,"muted":true,"play_gap_ms":20},\
            "clock_hz":48000,"concealed_ms":20,"discarded":5,"dropped":{"early":4},"frames":3000,"frames_skipped":2,"late":3,"lost":80,\
            "malformed":6,"measured_hz":48004,"measured_ms":59000,"play_gap_ms":7,"played_ms":60000,"quiet_ms":20,"received":2995,\
            "received_clipped_permille":2,"received_digital_silence":false,"received_peak_dbfs":-14,"record_gap_ms":8,"remote_lost":9,"reordered":1,"reports":12,\
            "reports_on_us":11,"round_trip_ms":35,"sent":3001,"sent_clipped_permille":1,"sent_peak_dbfs":-12,"silent_ms":300,"source":"card"}
            """
        let facts = try JSONDecoder().decode(MediaFacts.self, from: Data(text.utf8))
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        #expect(String(decoding: try encoder.encode(facts), as: UTF8.self) == text)
        #expect(facts.sent.lost == 9 && facts.received.lost == 80 && facts.received.clock?.measured == 48_004)

        let older = try JSONDecoder().decode(MediaFacts.self, from: Data(#"{"sent":3,"lost":1,"clock_hz":8000}"#.utf8))
        #expect(older.sent.packets == 3 && older.received.lost == 1)
        #expect(older.received.clock == nil && older.card == nil && older.received.isDigitalSilence == nil)
    }

    @Test("Every sentence ends as one, and no evidence is empty")
    func sentences() {
        let all = [
            Self.found { $1.received.lost = 300 }, Self.found { $1.sent.lost = 2_990 },
            Self.found { $1.received.late = 400 },
            Self.found { $1.skipped = 100 },
            Self.found { ($1.received.packets, $1.received.reports) = (0, 0) },
            Self.found { $1.received.quiet = 8_000 },
            Self.found { $1.roundTrip = 700 },
        ].flatMap(\.self)
        #expect(all.count >= 7)
        for finding in all {
            #expect(
                finding.text.hasSuffix(".") && finding.advice.hasSuffix(".") && !finding.evidence.isEmpty, "\(finding)")
        }
    }
}
