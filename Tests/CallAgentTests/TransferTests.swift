import CallAgent
import CallControl
import CallMedia
import MediaEngine
import SIP
import TestSupport
import Testing

@Suite("Transfers that concern a device, on real sockets", .timeLimit(.minutes(2)))
struct TransferTests {
    private static let plain = "media: { offers: plain, allow_plain_rtp: true }"
    private let tone = AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12))

    private func answering(_ calls: Int) -> AnswerPolicy {
        AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(calls))
    }

    private func progress(_ device: Handheld) async throws -> CallTransfer.Progress {
        while let event = await device.next() {
            if case .transferProgress(_, _, let progress) = event, progress.isFinal { return progress }
        }
        throw StreamEnded()
    }

    @Test(
        "CALL-8: At the exchange the target of an attended transfer takes the new call in place of the one that it has")
    func attendedAtExchange() async throws {
        let site = try await Site(users: ["alice", "bob", "carol"])
        let alice = try await site.device("alice", named: "a")
        let bob = try await site.device("bob", named: "b", answer: answering(2))
        let carol = try await site.device("carol", named: "c", answer: answering(1))
        let first = await alice.device.call("bob", audio: tone)
        _ = try await alice.flowing()
        let second = await alice.device.call("carol", audio: tone)
        _ = try await alice.flowing()
        let replaced = try await carol.incoming()
        try await alice.device.transfer(first, to: "carol", replacing: second)
        #expect(try await progress(alice) == .accepted)
        let new = try await carol.incoming()
        #expect(new != replaced)
        let record = try await carol.ended().record
        #expect(record.peer == "alice" && record.reason == .completed)
        #expect(record.transferredTo == "bob")
        #expect(await carol.device.goesOn(new))
        try await site.close(alice, bob, carol)
    }

    @Test("RFC 3891: An INVITE with Replaces is answered, and the call that it names ends with BYE")
    func replaces() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(Self.plain, "answer: { mode: auto, max_calls: 1 }")
        let old = try await telephone.call("old")
        let tag = try #require(old.to.split(separator: "tag=").last)
        let new = try await telephone.call("new", "Replaces: old;to-tag=\(tag);from-tag=peer-old")
        #expect(!new.body.isEmpty)
        #expect(try await telephone.request(.bye).headers.callID == "old")
        let record = try await device.ended().record
        #expect(record.transferredTo == "bob@sip.test")
        await device.device.shutDown()
    }

    @Test(
        "RFC 3891: Who may not call does not get through by an INVITE with Replaces, and the call that it names continues"
    )
    func replacesOfDenied() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(
            Self.plain, "answer: { mode: auto, max_calls: 1, deny: [mallory@sip.test] }")
        var old = try await telephone.call("old")
        let tag = try #require(old.to.split(separator: "tag=").last)
        let refusal = await #expect(throws: SIPTelephone.Refused.self) {
            try await telephone.call(
                "new", "Replaces: old;to-tag=\(tag);from-tag=peer-old", "From: <sip:mallory@sip.test>;tag=peer-new")
        }
        #expect(refusal?.status == 603)
        #expect(try await telephone.request("INFO", in: &old).status == 200)
        #expect(telephone.requests(.bye).isEmpty)
        await device.device.shutDown()
    }

    @Test("CALL-8: A REFER right after the answer is carried out, before media flows")
    func earlyRefer() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(Self.plain, "answer: { mode: auto, max_calls: 2, transfers: service }")
        var call = try await telephone.call("one")
        let answer = try await telephone.request("REFER", in: &call, "Refer-To: <sip:carol@sip.test>")
        #expect(answer.status == 202)
        let invite = try await telephone.request(.invite)
        #expect(invite.uri.description == "sip:carol@sip.test")
        telephone.answer(486, invite)
        await device.device.shutDown()
    }

    @Test("A REFER in a call that five others led to gets 603, and otherwise the new call counts one more")
    func hops() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(Self.plain, "answer: { mode: auto, max_calls: 4, transfers: service }")
        var last = try await telephone.call("last", "Handset-Hops: 5")
        #expect(try await telephone.request("REFER", in: &last, "Refer-To: <sip:carol@sip.test>").status == 603)
        var call = try await telephone.call("one", "Handset-Hops: 4")
        #expect(try await telephone.request("REFER", in: &call, "Refer-To: <sip:carol@sip.test>").status == 202)
        let invite = try await telephone.request(.invite)
        #expect(invite.headers["Handset-Hops"] == "5" && invite.headers["Max-Forwards"] == "69")
        telephone.answer(486, invite)
        await device.device.shutDown()
    }

    @Test("A peer that asks for the next transfer as soon as one has failed is refused after five")
    func many() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(Self.plain, "answer: { mode: auto, max_calls: 9, transfers: service }")
        var call = try await telephone.call("one")
        var invites: Set<String?> = []
        func isNew(_ request: SIPRequest) -> Bool { !invites.contains(request.headers.callID) }
        // One more is allowed after each 12 s, which a busy machine may take.
        while invites.count < 9 {
            let answer = try await telephone.request("REFER", in: &call, "Refer-To: <sip:carol@sip.test>")
            guard answer.status == 202 else {
                #expect(answer.status == 603)
                break
            }
            try await until { telephone.requests(.invite).contains(where: isNew) }
            let invite = try #require(telephone.requests(.invite).first(where: isNew))
            invites.insert(invite.headers.callID)
            telephone.answer(486, invite)
            try await until {
                let last = telephone.requests(.notify).filter {
                    $0.headers["Subscription-State"]?.hasPrefix("terminated") == true
                }
                return Set(last.map { $0.headers["CSeq"] }).count == invites.count
            }
        }
        #expect((5..<9).contains(invites.count))
        #expect(!telephone.requests(.invite).contains(where: isNew))
        await device.device.shutDown()
    }

    @Test(
        "A REFER gets 603, and calls nobody, without transfers, at the limit of calls, and for a number that no list has",
        arguments: [
            ("max_calls: 2", "carol"), ("max_calls: 1, transfers: service", "carol"),
            ("max_calls: 2, transfers: service", "11880"), ("max_calls: 2, transfers: anywhere", "0900123456x"),
        ])
    func refused(_ answers: String, _ target: String) async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(Self.plain, "answer: { mode: auto, \(answers) }")
        var call = try await telephone.call("one")
        let answer = try await telephone.request("REFER", in: &call, "Refer-To: <sip:\(target)@sip.test>")
        #expect(answer.status == 603)
        #expect(telephone.requests(.invite).isEmpty)
        await device.device.shutDown()
    }
}
