import Testing
import Core

@testable import CallControl
@testable import handset

@Suite("The report of a call")
struct CallReportTests {
    private func run(_ reason: CallEndReason, _ change: (inout CallRecord) -> Void = { _ in }) -> CallRun {
        var record = CallRecord(
            invite: "i1", direction: .outgoing, peer: "bob", began: .zero, duration: .seconds(1), reason: reason,
            endedBy: .local)
        change(&record)
        var run = CallRun(callee: "bob", play: nil, record: nil, watched: [], cards: nil)
        run.ended(record, nil, nil)
        return run
    }

    @Test("A completed call whose keys could not be pressed has failed, and says so to people and programs")
    func keys() {
        var run = run(.completed)
        #expect(run.report().failure == nil)
        run.keyError = "the peer takes no telephone events (RFC 4733)"
        let report = run.report()
        #expect(report.failure == .failed)
        #expect(report.text.contains("the keys could not be pressed: the peer takes no telephone events"))
        #expect(report.json.contains("the keys could not be pressed"))
    }

    @Test(
        "A call that was not answered has the status of its cause",
        arguments: [
            (CallFailureCause.noSuchNumber, handset.ExitStatus.noSuchNumber), (.notReachable, .calleeNotReachable),
            (.noCommonCodec, .failed), (nil, .failed),
        ] as [(CallFailureCause?, handset.ExitStatus)])
    func causes(cause: CallFailureCause?, status: handset.ExitStatus) {
        #expect(run(.dialFailed) { $0.cause = cause }.report().failure == status)
        #expect(run(.busy) { $0.cause = cause }.report().failure == .callNotAnswered)
    }
}
