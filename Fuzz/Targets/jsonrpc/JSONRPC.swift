import FuzzInput
import SignalWire

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzJSONRPC(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    guard let message = try? RPCMessage(decoding: bytes) else { return }
    switch message.kind {
    case .request(_, let method):
        _ = try? ClientRequest(method: method, in: message)
    case .notification:
        guard let event = try? message.params(NumberedEvent.self) else { return }
        guard let written = try? SignalCoding.encode(event) else {
            broken("an event that was read can be written")
        }
        // Escaped characters may grow when written, beyond what is read.
        guard written.count <= SignalLimits.messageBytes else { return }
        require(
            (try? SignalCoding.decode(NumberedEvent.self, from: written)) == event, "an event reads back as written")
    case .result:
        _ = try? message.result(SessionStart.Result.self)
        _ = try? message.result(InviteSend.Result.self)
    case .failure:
        break
    }
}
