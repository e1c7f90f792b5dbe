import FuzzInput
import RTP
import Core

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzFeedback(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

/// Arrivals as the input has them, four bytes each: a step of the number, a step of time, and whether to tell now.
private func read(_ bytes: [UInt8]) {
    var writer = TransportFeedbackWriter(sender: 1)
    var number: UInt16 = 0
    var now: Int64 = 0
    var offset = 0
    while offset + 4 <= bytes.count {
        number &+= UInt16(bitPattern: Int16(Int8(bitPattern: bytes[offset]))) &* (bytes[offset + 3] & 2 == 0 ? 1 : 97)
        now = max(
            0, now + Int64(Int16(bitPattern: UInt16(bytes[offset + 1]) << 8 | UInt16(bytes[offset + 2]))) * 50_000)
        writer.received(number, at: Instant(nanoseconds: now))
        if bytes[offset + 3] & 1 != 0 { tell(&writer) }
        offset += 4
    }
    var rounds = 0
    while writer.pending > 0, rounds < 600 {
        tell(&writer)
        rounds += 1
    }
}

private func tell(_ writer: inout TransportFeedbackWriter) {
    let pending = writer.pending
    var out = [UInt8](repeating: 0, count: 600)
    var span = out.mutableSpan
    var raw = span.mutableBytes
    let size = writer.write(media: 2, into: &raw)
    guard size > 0 else { return }
    require(writer.pending < pending, "what was told is not told again")
    let packet = Array(out.prefix(size))
    let datagram = packet.span.bytes
    guard var reader = try? RTCPReader(validating: datagram),
        case .other(let type, let body)? = reader.next(in: datagram),
        case .transportWide(let feedback)? = RTCPFeedback(type: type, body: body, in: datagram)
    else { broken("what is written can be read") }
    var cursor = TransportFeedback.Cursor(feedback)
    var told = 0
    while cursor.next(in: datagram) != nil { told += 1 }
    require(told == feedback.count && told <= TransportFeedbackWriter.maximumCount, "all is told that is announced")
}
