import FuzzInput
import RTP
import Core

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzRTP(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    let packet = bytes.span.bytes
    _ = DatagramKind(of: packet)
    guard let header = try? RTPHeader(parsing: packet) else { return }
    require(header.payload.lowerBound >= RTPHeader.fixedSize, "the payload begins behind the header")
    require(header.payload.upperBound <= bytes.count, "the payload ends inside of the packet")
    if let headerExtension = header.headerExtension {
        var cursor = HeaderExtension.Cursor(headerExtension)
        while let element = cursor.next(in: packet) {
            require(headerExtension.data.lowerBound < element.data.lowerBound, "an element begins inside")
            require(element.data.upperBound <= headerExtension.data.upperBound, "an element ends inside")
        }
    }
    readPayload(header, packet)
    var statistics = ReceptionStatistics()
    _ = statistics.receive(header, at: Instant(nanoseconds: Int64(header.timestamp) << 24))
    _ = statistics.makeReport(on: header.ssrc)

    var written = [UInt8](repeating: 0, count: RTPHeader.fixedSize)
    var span = written.mutableSpan
    var raw = span.mutableBytes
    require(header.write(into: &raw) == RTPHeader.fixedSize, "a header is written whole")
    let again = try? RTPHeader(parsing: written.span.bytes)
    require(
        again?.ssrc == header.ssrc && again?.timestamp == header.timestamp && again?.marker == header.marker
            && again?.sequenceNumber == header.sequenceNumber && again?.payloadType == header.payloadType,
        "a header reads back as written")
}

/// The payload as each of the formats that it may be of.
private func readPayload(_ header: RTPHeader, _ packet: RawSpan) {
    _ = AudioLevel(1, of: header, in: packet)
    _ = header.transportSequenceNumber(3, in: packet)
    if let payload = RedundantPayload(header.payload, of: packet) {
        var end: Int?
        for index in 0..<payload.count {
            guard let block = payload.block(at: index, in: packet) else { broken("announced frames are there") }
            require(end == nil || block.data.lowerBound == end, "frames lie one behind the other")
            end = block.data.upperBound
        }
        require(end == header.payload.upperBound, "the primary ends with the payload")
    }
    if let event = TelephoneEventPayload(header.payload, of: packet) {
        var receiver = TelephoneEventReceiver()
        let outcome = receiver.receive(
            event, number: Int64(header.sequenceNumber), timestamp: header.timestamp, ssrc: header.ssrc, at: .zero)
        require(outcome.began == event.event, "the first packet begins a key")
        require((receiver.nextDeadline == nil) == event.isEnd, "a key is over with its end")
    }
}
