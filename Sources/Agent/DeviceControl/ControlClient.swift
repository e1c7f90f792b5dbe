public import ControlPlane
public import ControlWire
internal import Glibc
internal import Synchronization

/// A program's side of a device's control socket. Calls block; for programs that wait for nothing else meanwhile.
public final class ControlClient: Sendable {
    private let path: String
    private let descriptor: Int32
    private let incoming = Mutex(Incoming())
    /// How long a device may take to answer.
    private static let patienceSeconds = 10
    /// The longest line is a status with many calls.
    private static let longestLine = 262_144

    private struct Incoming {
        var cutter = LineCutter(maximumBytes: ControlClient.longestLine)
        var lines: [LineCutter.Line] = []
    }

    /// Connects to the device that listens at `path`.
    public init(path: String) throws(ControlSocketError) {
        self.path = path
        guard let address = UnixAddress(path) else {
            throw ControlSocketError(.noDevice, path, "connect", cause: UnixAddress.tooLong)
        }
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        descriptor = Glibc.socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { throw ControlSocketError(.noDevice, path, "make a socket", errno: errno) }
        guard address.connect(descriptor) else {
            throw ControlSocketError(.noDevice, path, "connect", errno: errno)
        }
        setPatience(seconds: Self.patienceSeconds)
    }

    deinit { close(descriptor) }

    /// Sends a request and waits for its answer.
    ///
    /// - Returns: The answer, and the line that it came in.
    public func ask(_ request: ControlRequest) throws(ControlSocketError) -> (reply: ControlReply, line: String) {
        try send(ControlCoding.line(request))
        guard let line = try nextLine() else { throw lost("it closed the connection without an answer") }
        guard let reply = ControlCoding.decode(ControlReply.self, from: line) else {
            throw lost("it answered with something else than a line of JSON")
        }
        return (reply, String(decoding: line, as: UTF8.self))
    }

    /// Waits for the next line about an event, as long as it takes, after a request `watch`.
    ///
    /// - Returns: Nil when the device has gone, or ``stop()`` was called.
    public func nextEvent() throws(ControlSocketError) -> (event: ControlEvent, line: String)? {
        setPatience(seconds: 0)
        while let line = try nextLine() {
            guard let event = ControlCoding.decode(ControlEvent.self, from: line) else { continue }
            return (event, String(decoding: line, as: UTF8.self))
        }
        return nil
    }

    /// Ends the connection; a waiting reader gets no line. From any thread.
    public func stop() { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }

    private func send(_ bytes: [UInt8]) throws(ControlSocketError) {
        var sent = 0
        while sent < bytes.count {
            let count = unsafe bytes.withUnsafeBytes {
                unsafe Glibc.send(
                    descriptor, $0.baseAddress.map { unsafe $0 + sent }, $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            // A refused client has the reason waiting, and may not send any more.
            if count < 0, errno == EPIPE { return }
            guard count >= 0 else { throw ControlSocketError(.lost, path, "send a request", errno: errno) }
            sent += count
        }
    }

    private func nextLine() throws(ControlSocketError) -> [UInt8]? {
        while true {
            let line = incoming.withLock { $0.lines.isEmpty ? nil : $0.lines.removeFirst() }
            switch line {
            case .whole(let bytes)?: return bytes
            case .tooLong?: throw lost("it sent a line of more than \(Self.longestLine) bytes")
            case nil: guard try receive() else { return nil }
            }
        }
    }

    /// Waits for bytes; false when there are no more.
    private func receive() throws(ControlSocketError) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 16_384)
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
        if count < 0, errno == EINTR { return true }
        if count < 0, errno == ECONNRESET { return false }
        if count < 0, errno == EAGAIN { throw lost("it did not answer within \(Self.patienceSeconds) s") }
        guard count >= 0 else { throw ControlSocketError(.lost, path, "wait for an answer", errno: errno) }
        incoming.withLock { incoming in incoming.cutter.take(bytes.prefix(count), into: &incoming.lines) }
        return count > 0
    }

    private func setPatience(seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    private func lost(_ cause: String) -> ControlSocketError {
        ControlSocketError(.lost, path, "ask the device", cause: cause)
    }
}
