import CallControl
import Glibc
import SecureTransport

/// Offers `count` calls, 20 a second, and has loadgen talk in those that are taken from the moment they are.
func offer(_ count: Int, _ suite: SRTPSuite, _ caller: Caller) async throws {
    let begun = ContinuousClock.now
    var taken: [CallLine] = []
    var (busy, failed) = (0, 0)
    for number in 0..<count {
        try await Task.sleep(until: begun.advanced(by: .milliseconds(50 * number)))
        do {
            taken.append(try await place(number, suite, caller))
            print(taken[taken.count - 1].text)
            fflush(nil)
        } catch let failure as CallFailure {
            if failure.isBusy { busy += 1 } else { failed += 1 }
        }
    }
    print("go")
    fflush(nil)
    say(#"{"accepted": \#(taken.count), "busy": \#(busy), "failed": \#(failed)}"#)

    while let line = readLine() {
        guard line.hasPrefix("keep "), let kept = Int(line.dropFirst(5)) else { continue }
        while taken.count > max(0, kept) {
            try await caller.hangUp(taken.removeLast().invite, after: begun.duration(to: .now))
        }
    }
    for line in taken { try await caller.hangUp(line.invite, after: begun.duration(to: .now)) }
}

/// The call's socket is closed when this returns, so that loadgen can open its port. This program chooses ports, below those
/// that the system gives out, so that none is given out again meanwhile.
private func place(_ number: Int, _ suite: SRTPSuite, _ caller: Caller) async throws -> CallLine {
    let end = try LocalEnd(suite, port: UInt16(20_000 + 2 * number))
    let (invite, remote) = try await caller.place(end)
    return CallLine(invite, end, remote)
}

private func say(_ text: String) {
    let bytes = Array((text + "\n").utf8)
    _ = write(STDERR_FILENO, bytes, bytes.count)
}
