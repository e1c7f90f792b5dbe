import FuzzInput
import ICE
import Core

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzTURN(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

/// Transaction IDs of all ones, so that answers among the inputs meet their requests.
private struct Ones: RandomNumberGenerator, Sendable {
    func next() -> UInt64 { .max }
}

/// The input is cut into datagrams, or pieces of a stream: each begins with its length.
private func read(_ bytes: [UInt8]) {
    for isStream in [false, true] {
        var client = TURNClient(username: "user", password: "secret", isStream: isStream, generator: Ones())
        var now = Instant.zero
        var outputs: [TURNOutput] = []
        client.handle(.opened, at: now, into: &outputs)
        var rest = bytes[...]
        while let length = rest.popFirst() {
            let piece = rest.prefix(Int(length))
            rest = rest.dropFirst(piece.count)
            client.handle(.bytes(Array(piece)), at: now, into: &outputs)
            for relay in client.relays {
                client.handle(.permit(relay), at: now, into: &outputs)
                client.handle(.bindChannel(relay), at: now, into: &outputs)
                client.handle(.send([1, 2, 3], to: relay), at: now, into: &outputs)
            }
            now = now.advanced(byNanoseconds: 100_000_000)
            client.handle(.timerFired, at: now, into: &outputs)
        }
        client.handle(.end, at: now, into: &outputs)
        for _ in 0..<100 {
            guard let deadline = client.nextDeadline else { break }
            now = max(now, deadline)
            client.handle(.timerFired, at: now, into: &outputs)
        }
        require(client.nextDeadline == nil, "a client that has ended comes to rest")
    }
}
