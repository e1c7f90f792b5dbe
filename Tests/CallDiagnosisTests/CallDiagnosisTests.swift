import CallControl
import CallDiagnosis
import Testing

@Suite("What went wrong in a call")
struct CallDiagnosisTests {
    /// A minute of a call in which nothing went wrong: 50 packets a second each way, and reports every five seconds.
    private static func clean() -> CallFacts {
        var facts = CallFacts(
            .incoming, peer: "alice@example.org", reason: .completed, endedBy: .remote, duration: 60_000)
        (facts.answeredAfter, facts.establishedAfter, facts.flowingAfter) = (20, 180, 260)
        var media = MediaFacts()
        (media.sent, media.received, media.reports, media.frames) = (3_000, 2_995, 12, 3_000)
        (media.played, media.silent, media.concealed) = (60_000, 300, 20)
        (media.buffered, media.bufferedMost, media.roundTrip, media.quiet) = (45, 70, 35, 20)
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
        #expect(Self.codes { $1.lost = 80 } == [])
        #expect(Self.codes { $1.late = 80 } == [])
        #expect(Self.codes { ($1.silent, $1.received) = (50_000, 500) } == [])
        #expect(Self.codes { ($1.reports, $1.roundTrip) = (0, nil) } == [])
        #expect(Self.codes { $1.skipped = 4 } == [])
        #expect(Self.codes { $1.dropped = ["unauthenticated": 3, "early": 5, "replayed": 40] } == [])
        #expect(Self.codes { _, media in media.card = MediaFacts.Card() } == [])
    }

    @Test("A call that ends at once has no fault of its sound, nor one that was never established or has no figures")
    func short() {
        #expect(Self.codes { ($0.duration, $1.received, $1.reports) = (1_500, 0, 0) } == [])
        #expect(Self.codes { ($0.establishedAfter, $1.received, $1.reports) = (nil, 0, 0) } == [])
        #expect(Self.codes { facts, _ in facts.media = nil } == [])
    }

    @Test("Where nothing was heard, what came instead says why")
    func nothingHeard() {
        func silent(_ dropped: [String: Int] = [:], reports: Int = 0) -> [Finding] {
            Self.found { _, media in
                (media.received, media.played, media.silent, media.quiet) = (0, 60_000, 60_000, nil)
                (media.dropped, media.reports) = (dropped, reports)
            }
        }
        #expect(silent().map(\.code) == [.nothingReceived] && silent()[0].side == .pathHere)
        #expect(silent(reports: 12).map(\.code) == [.peerSendsNoSound])
        #expect(silent(["unauthenticated": 2_900], reports: 0).map(\.code) == [.wrongKeys])
        #expect(silent(["early": 2_900]).first?.side == .unclear)
        #expect(silent(["unknown payload type": 2_900], reports: 12).map(\.code) == [.wrongPayloadType])
        #expect(silent(["unknown source": 2_900]).map(\.code) == [.unknownSource])
        #expect(silent(["malformed": 2_900]).map(\.code) == [.noPackets])
        #expect(silent(["looped": 2_900]).first?.text.contains("our own") == true)
        #expect(
            silent(["unauthenticated": 5]).map(\.code) == [.nothingReceived],
            "a few strays are not the other side's sound")
    }

    @Test("What is lost is reported by its direction, with the share")
    func loss() throws {
        let here = Self.found { $1.lost = 300 }
        #expect(
            here.map(\.code) == [.lossHere] && here[0].side == .pathHere && here[0].evidence.contains("9.1 % of 3295"))
        let there = Self.found { $1.remoteLost = 300 }
        #expect(
            there.map(\.code) == [.lossThere] && there[0].side == .pathThere
                && there[0].evidence.contains("10.0 % of 3000"))
        #expect(Self.codes { ($1.lost, $1.remoteLost) = (300, 300) } == [.lossHere, .lossThere])
        #expect(Self.codes { $1.remoteLost = 2_990 } == [.nothingSentArrives], "not as loss besides")
        #expect(Self.codes { ($1.remoteLost, $1.reports) = (2_990, 0) } == [], "without a report nobody says so")
    }

    @Test("Delays and orders of packets are distinguished")
    func delays() {
        #expect(Self.codes { ($1.late, $1.buffered, $1.bufferedMost) = (400, 180, 290) } == [.jitter])
        #expect(Self.codes { $1.discarded = 400 } == [.jitter])
        #expect(Self.codes { $1.reordered = 400 } == [.reordering])
        let long = Self.found { $1.roundTrip = 700 }
        #expect(long.map(\.code) == [.longDelay] && long[0].advice.contains("relay"))
        #expect(Self.found { $1.buffered = 320 }.first?.advice.contains("jitter buffer") == true)
        #expect(Self.codes { facts, _ in facts.flowingAfter = 6_000 } == [.slowMedia])
    }

    @Test("Silence is named by where it comes from; a muted microphone is not silent besides")
    func silence() {
        func codes(_ source: String, _ peak: Int, muted: Bool? = nil) -> [Finding.Code] {
            Self.codes { _, media in
                (media.source, media.sentPeak) = (source, peak)
                guard let muted else { return }
                media.card = MediaFacts.Card()
                media.card?.isMuted = muted
            }
        }
        #expect(codes("card", -70, muted: false) == [.microphoneSilent])
        #expect(codes("card", -70, muted: true) == [.muted])
        #expect(codes("card", -40, muted: false) == [])
        #expect(codes("program", -100) == [.programSilent])
        #expect(codes("silence", -100) == [] && codes("file", -100) == [])
        #expect(Self.codes { $1.receivedPeak = -70 } == [.peerSilent])
        #expect(Self.codes { $1.receivedPeak = -59 } == [])
        #expect(Self.codes { ($1.receivedPeak, $1.quiet) = (-100, 8_000) } == [.peerVanished])
    }

    @Test(
        "Timestamps of another codec's rate and a clock that is off have their own names, and a short call has neither")
    func clocks() {
        func codes(_ rate: Double, over span: Int = 60_000, of expected: Int = 48_000) -> [Finding.Code] {
            Self.codes { ($1.clockRate, $1.measuredRate, $1.clockSpan) = (expected, rate, span) }
        }
        #expect(codes(8_010) == [.wrongClockRate] && codes(44_050) == [.wrongClockRate])
        #expect(codes(48_000, of: 8_000) == [.wrongClockRate])
        #expect(codes(8_010, over: 2_500) == [] && codes(39_000) == [], "not clear")
        // 70 ms of jitter leave 1,167 millionths open over a minute.
        #expect(codes(48_150) == [] && codes(48_200) == [.clockDrift] && codes(47_800) == [.clockDrift])
        #expect(codes(48_030, over: 600_000) == [.clockDrift] && codes(48_020, over: 600_000) == [])
        #expect(codes(48_004, over: 600_000) == [])
    }

    @Test("Reports that are never on our packets say that none arrives; too few reports say nothing")
    func unreported() {
        func codes(_ reports: Int, _ onUs: Int?, sent: Int = 3_000) -> [Finding.Code] {
            Self.codes { ($1.reports, $1.reportsOnUs, $1.sent) = (reports, onUs, sent) }
        }
        #expect(codes(12, 0) == [.nothingSentArrives])
        #expect(codes(12, 1) == [] && codes(2, 0) == [] && codes(12, nil) == [] && codes(12, 0, sent: 400) == [])
    }

    @Test("What is this side's fault is said to be so")
    func ours() {
        for finding in [
            Self.found { $1.skipped = 100 }, Self.found { $1.recordGap = 400 }, Self.found { $1.playGap = 400 },
            Self.found { _, media in
                media.card = MediaFacts.Card()
                media.card?.isMuted = true
            },
            Self.found { _, media in
                media.card = MediaFacts.Card()
                media.card?.captureGap = 900
            },
            Self.found { facts, _ in
                (facts.reason, facts.endedBy, facts.error) = (
                    .internalError, .neither, "the device stopped while the call stood"
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
        #expect(Self.codes { $1.malformed = 600 } == [.wrongFormat])
        #expect(Self.codes { ($1.discarded, $1.receivedPeak) = (2_995, -100) } == [.wrongFormat], "and not as jitter")
        #expect(Self.codes { $1.dropped = ["unauthenticated": 600] } == [.wrongKeys])
        #expect(Self.codes { $1.dropped = ["unknown payload type": 600] } == [.wrongPayloadType])
        #expect(Self.codes { $1.quiet = 8_000 } == [.peerVanished])
        let lost = Self.found { facts, media in
            (facts.reason, facts.endedBy, media.quiet) = (.connectionLost, .neither, 31_000)
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

    @Test("Every sentence ends as one, and no evidence is empty")
    func sentences() {
        let all = [
            Self.found { $1.lost = 300 }, Self.found { $1.remoteLost = 2_990 }, Self.found { $1.late = 400 },
            Self.found { $1.skipped = 100 },
            Self.found { ($1.received, $1.reports) = (0, 0) }, Self.found { $1.quiet = 8_000 },
            Self.found { $1.roundTrip = 700 },
        ].flatMap(\.self)
        #expect(all.count >= 7)
        for finding in all {
            #expect(
                finding.text.hasSuffix(".") && finding.advice.hasSuffix(".") && !finding.evidence.isEmpty, "\(finding)")
        }
    }
}
