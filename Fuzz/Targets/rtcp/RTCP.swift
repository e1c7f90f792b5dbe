import FuzzInput
import RTP
import Core

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzRTCP(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    readPackets(bytes)
    readInSession(bytes)
}

private func readPackets(_ bytes: [UInt8]) {
    let datagram = bytes.span.bytes
    guard var reader = try? RTCPReader(validating: datagram) else { return }
    while let packet = reader.next(in: datagram) {
        switch packet {
        case .senderReport(_, _, let blocks), .receiverReport(_, let blocks):
            for index in 0..<blocks.count {
                guard case .some = blocks.block(at: index, in: datagram) else {
                    broken("announced blocks are there")
                }
            }
        case .sourceDescription(let description):
            guard let name = description.canonicalName(of: 1, in: datagram) else { continue }
            require(name.upperBound <= bytes.count, "a name ends inside of the datagram")
            _ = ShortText(copying: name, of: datagram).string
        case .goodbye(let goodbye):
            _ = goodbye.names(1, in: datagram)
            require((goodbye.reason?.upperBound ?? 0) <= bytes.count, "a reason ends inside of the datagram")
        case .other(let type, let body):
            require(body.upperBound <= bytes.count, "a body ends inside of the datagram")
            readFeedback(type, body, datagram)
        }
    }
}

private func readFeedback(_ type: UInt8, _ body: Range<Int>, _ datagram: RawSpan) {
    if let report = ExtendedReport(type: type, body: body, answering: 1, in: datagram) {
        _ = report.roundTripNanoseconds(arrival: NTPTimestamp(rawValue: 0))
    }
    switch RTCPFeedback(type: type, body: body, in: datagram) {
    case .nack(_, var missing):
        var count = 0
        while missing.next(in: datagram) != nil { count += 1 }
        require(count <= body.count / 4 * 17, "a group has seventeen numbers at most")
    case .transportWide(let feedback):
        var cursor = TransportFeedback.Cursor(feedback)
        var count = 0
        while cursor.next(in: datagram) != nil { count += 1 }
        require(count == feedback.count, "as many packets are told of as announced")
    case .pictureRequest, .maximumBitrate, .other, nil: break
    }
}

private func readInSession(_ bytes: [UInt8]) {
    var now = Instant.zero
    var session = RTCPSession(configuration: .init(ssrc: 2, canonicalName: "fuzz"), at: now)
    session.sentMedia(payloadOctets: 80, timestamp: 960, at: now)
    _ = session.receivedMedia(RTPHeader(payloadType: 111, sequenceNumber: 1, timestamp: 0, ssrc: 1), at: now)
    var out = [UInt8](repeating: 0, count: CompoundReport.maximumSize)
    for round in 0..<3 {
        _ = try? session.received(bytes.span.bytes, at: now)
        now = max(now, session.nextDeadline)
        var span = out.mutableSpan
        var raw = span.mutableBytes
        let size = session.writeReport(
            at: now, ntp: NTPTimestamp(unixNanoseconds: now.nanoseconds), random: UInt64(round), into: &raw)
        guard size > 0 else { continue }
        let report = Array(out.prefix(size))
        guard case .some = try? RTCPReader(validating: report.span.bytes) else {
            broken("a report of ours can be read")
        }
    }
}
