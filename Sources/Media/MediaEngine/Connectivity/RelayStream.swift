internal import Realtime
internal import Core
internal import ICE
internal import TLS

/// The connection to one TURN server over TCP or TLS, for one call. Used only by the connection thread.
///
/// Media passes through a pair of joined sockets: the worker has one end in a slot, and sends and receives channel data
/// there as with a TURN server over UDP; this side has the other end, and moves data between it and the stream. Both
/// directions are bounded, and media that does not fit is dropped and counted: a stream that stalls delays nothing but
/// itself.
final class RelayStream {
    /// The result of a step.
    enum Event {
        /// The server can be spoken to.
        case opened
        /// A whole message that is not media.
        case message([UInt8])
        /// The connection is lost, with the reason as text for people. Nothing follows.
        case closed(String)
    }

    private enum State {
        case connecting
        case shakingHands
        case open
        case closed
    }

    /// Where the server is.
    let address: SocketAddress
    /// The worker's end of the pair.
    let slot: Int
    /// When a connection that is still being made is given up.
    private let givingUpAt: Instant
    private var state = State.connecting
    private var stream: StreamSocket
    private var tls: TLSSession?
    /// There is a `tls`.
    private let isSecure: Bool
    private let bridge: UDPSocket
    private var framer = STUNStreamFramer()
    /// Bytes that the stream has not taken yet.
    private var outgoing: [UInt8] = []
    /// Media that did not fit, to the server and to the worker.
    private(set) var (mediaNotSent, mediaNotReceived) = (0, 0)

    /// How long a connection, TLS included, may take to be made.
    private static let patience = Duration.seconds(7)
    /// Bytes that may wait when more media comes: with what the kernel holds, about a second of a call. Older media
    /// would be too late.
    private static let mediaLimit = 4_096
    /// Bytes that may wait at all; requests are small and few, so a stream that has stalled like this is given up.
    private static let limit = 65_536
    /// Capacity of the pair in each direction, including the kernel's overhead: some two seconds of a call.
    static let bridgeBytes: Int32 = 131_072

    /// Begins to connect.
    init(
        to address: SocketAddress, tls: consuming TLSSession?, stream: consuming StreamSocket,
        bridge: consuming UDPSocket, slot: Int, at now: Instant
    ) {
        self.address = address
        isSecure = Self.isThere(tls)
        self.tls = tls
        self.stream = stream
        self.bridge = bridge
        self.slot = slot
        givingUpAt = now.advanced(by: Self.patience)
    }

    private static func isThere(_ tls: borrowing TLSSession?) -> Bool {
        switch tls {
        case .some: true
        case .none: false
        }
    }

    /// The descriptors to watch: the stream's, and the pair's.
    var descriptors: (stream: Int32, bridge: Int32) { (stream.descriptor, bridge.descriptor) }

    /// Whether the stream is to be watched for being writable.
    var wantsToWrite: Bool {
        switch state {
        case .connecting: true
        case .shakingHands, .open: !outgoing.isEmpty
        case .closed: false
        }
    }

    /// When ``checkTime(_:)`` is due; nil if never.
    var nextDeadline: Instant? {
        switch state {
        case .connecting, .shakingHands: givingUpAt
        case .open, .closed: nil
        }
    }

    /// Gives a connection up that takes too long to be made.
    func checkTime(_ now: Instant) -> Event? {
        guard let deadline = nextDeadline, deadline <= now else { return nil }
        return fail("it has not been made within \(Self.patience.text)")
    }

    /// Sends a message of TURN, padding included.
    func send(_ bytes: [UInt8]) -> Event? {
        guard case .open = state else { return nil }
        return put(bytes) ?? flush()
    }

    /// Says goodbye and closes; what has not been sent by then is lost.
    func close() {
        tls?.close()
        tls?.takeOutgoing(into: &outgoing)
        _ = flush()
        state = .closed
    }

    private func fail(_ reason: String) -> Event {
        state = .closed
        return .closed(reason)
    }
}

// MARK: The stream

extension RelayStream {
    /// Does what the stream is ready for. Bounded: what is left then is reported as ready again.
    func step(readable: Bool, writable: Bool, buffer: inout [UInt8]) -> [Event] {
        var events: [Event] = []
        if case .closed = state { return [] }
        if writable {
            if case .connecting = state, let failure = connected(&events) { return [failure] }
            if let failure = flush() { return events + [failure] }
        }
        if readable { read(into: &buffer, &events) }
        return events
    }

    private func connected(_ events: inout [Event]) -> Event? {
        if let error = stream.connectionError(with: address) { return fail("\(error)") }
        guard isSecure else {
            state = .open
            events.append(.opened)
            return nil
        }
        state = .shakingHands
        tls?.takeOutgoing(into: &outgoing)
        return nil
    }

    private func read(into buffer: inout [UInt8], _ events: inout [Event]) {
        switch stream.read(into: &buffer) {
        case .wait: return
        case .gone(let reason): events.append(fail(reason))
        case .bytes(let count):
            do throws(TLSError) {
                var plain: [UInt8] = []
                guard try decrypt(buffer[..<count], into: &plain, &events) else {
                    plain = Array(buffer[..<count])
                    return take(plain, &events)
                }
                take(plain, &events)
                if tls?.hasEnded == true { events.append(fail("the server has closed the connection")) }
                if let failure = flush() { events.append(failure) }
            } catch {
                // An alert for the server, if there is one.
                tls?.takeOutgoing(into: &outgoing)
                _ = flush()
                events.append(fail("\(error)"))
            }
        }
    }

    /// - Returns: False if there is no TLS.
    private func decrypt(
        _ bytes: ArraySlice<UInt8>, into plain: inout [UInt8], _ events: inout [Event]
    ) throws(TLSError) -> Bool {
        guard isSecure else { return false }
        try tls?.receive(bytes.span, into: &plain)
        tls?.takeOutgoing(into: &outgoing)
        if case .shakingHands = state, tls?.isOpen == true {
            state = .open
            events.append(.opened)
        }
        return true
    }

    private func take(_ bytes: [UInt8], _ events: inout [Event]) {
        for frame in framer.push(bytes) {
            if Self.isMedia(frame) {
                if frame.count > DatagramBatch.slotBytes || !bridge.sendToOtherEnd(frame) { mediaNotReceived += 1 }
            } else {
                events.append(.message(frame))
            }
        }
        if framer.isBroken { events.append(fail("the server does not speak TURN")) }
    }

    /// Whether a message is a relayed packet of RTP or RTCP (RFC 7983 §7), which goes to the worker.
    private static func isMedia(_ frame: [UInt8]) -> Bool {
        if frame.count > 4 && frame[0] & 0xC0 == 0x40 { return (128...191).contains(frame[4]) }
        guard let data = unsafe STUNPeek.relayedData(frame.span.bytes), !data.isEmpty else { return false }
        return (128...191).contains(frame[data.lowerBound])
    }

    /// Adds to what the stream has to take.
    private func put(_ bytes: [UInt8]) -> Event? {
        guard outgoing.count + bytes.count <= Self.limit else { return fail("the server takes nothing any more") }
        guard isSecure else {
            outgoing.append(contentsOf: bytes)
            return nil
        }
        do throws(TLSError) {
            try tls?.send(bytes.span)
            tls?.takeOutgoing(into: &outgoing)
            return nil
        } catch {
            return fail("\(error)")
        }
    }

    private func flush() -> Event? {
        if case .connecting = state { return nil }
        guard !outgoing.isEmpty else { return nil }
        switch stream.write(outgoing) {
        case .bytes(let count): outgoing.removeFirst(count)
        case .wait: break
        case .gone(let reason): return fail(reason)
        }
        return nil
    }
}

// MARK: Media

extension RelayStream {
    /// Moves what the worker has sent to the stream.
    func carryMedia(through batch: inout DatagramBatch) -> Event? {
        _ = bridge.receive(into: &batch)
        guard case .open = state else {
            mediaNotSent += batch.count
            return nil
        }
        var waiting: [UInt8] = []
        for index in 0..<batch.count {
            guard !batch.isTruncated(index), outgoing.count + waiting.count <= Self.mediaLimit else {
                mediaNotSent += 1
                continue
            }
            let datagram = batch.bytes(index)
            for offset in 0..<datagram.byteCount { waiting.append(byte(of: datagram, at: offset)) }
            // On a stream channel data is padded (RFC 8656 §12.5).
            while waiting.count % 4 != 0 { waiting.append(0) }
        }
        guard !waiting.isEmpty else { return nil }
        return put(waiting) ?? flush()
    }

    private func byte(of datagram: borrowing MutableRawSpan, at offset: Int) -> UInt8 {
        unsafe datagram.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }
}
