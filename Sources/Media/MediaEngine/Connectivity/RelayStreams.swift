internal import ICE
internal import Core
internal import CallMedia
internal import Realtime
internal import TLS

/// All calls' TURN connections over TCP and TLS, and the wait for them. For the connection thread alone.
final class RelayStreams {
    /// Which call's connection to which of its servers.
    struct Owner {
        let session: MediaCallID
        let server: Int
    }

    private struct Entry {
        let owner: Owner
        let stream: RelayStream
        /// The set watches for the stream to be writable.
        var watchesWriting = true
    }

    private let members: DescriptorSet
    private let trust: TrustRoots
    /// Made for the first server over TLS, because the authorities take memory.
    private var context: TLSContext?
    private var entries: [UInt64: Entry] = [:]
    /// Even, and above 0; with the lowest bit set it means the connection's end of the pair.
    private var lastToken: UInt64 = 0
    private var batch = DatagramBatch()
    private var buffer = [UInt8](repeating: 0, count: 16_384)

    /// - Parameter trust: Certificate authorities for servers over TLS.
    init(trust: TrustRoots) throws(RealtimeError) {
        self.trust = trust
        members = try DescriptorSet()
    }

    /// Readable when ``step(at:tell:)`` has something to do.
    var descriptor: Int32 { members.descriptor }

    /// Makes ``descriptor`` readable when `other` is, too, until that is closed.
    func watch(_ other: Int32) throws(RealtimeError) { try members.insert(other, token: 0, forWriting: false) }

    /// When ``step(at:tell:)`` must be called even if nothing comes.
    var nextDeadline: Instant? { entries.values.compactMap(\.stream.nextDeadline).min() }

    /// Begins to connect to a server.
    ///
    /// - Returns: The connection. ``step(at:tell:)`` reports its result.
    /// - Throws: A text for people.
    func open(
        _ owner: Owner, at address: SocketAddress, hostName: String?, of worker: any ConnectionTransport,
        at now: Instant
    ) throws -> RelayStream {
        let tls: TLSSession? = if let hostName { try TLSSession(to: hostName, in: try sharedContext()) } else { nil }
        let socket = try StreamSocket(connectingTo: address)
        var end: UDPSocket?
        let slot = try worker.openPair(holdingBack: RelayStream.bridgeBytes, otherEnd: &end)
        guard let bridge = end.take() else { throw RealtimeError(doing: "joining two sockets", errno: 0) }
        let stream = RelayStream(to: address, tls: tls, stream: socket, bridge: bridge, slot: slot, at: now)
        lastToken += 2
        do throws(RealtimeError) {
            try members.insert(stream.descriptors.stream, token: lastToken, forWriting: true)
            try members.insert(stream.descriptors.bridge, token: lastToken | 1, forWriting: false)
        } catch {
            stream.close()
            worker.closeSocket(slot)
            throw error
        }
        entries[lastToken] = Entry(owner: owner, stream: stream)
        return stream
    }

    private func sharedContext() throws(TLSError) -> TLSContext {
        if let context { return context }
        let made = try TLSContext.client(trusting: trust)
        context = made
        return made
    }

    /// Sends a message.
    ///
    /// - Returns: What went wrong, if anything.
    func send(_ bytes: [UInt8], through stream: RelayStream) -> RelayStream.Event? {
        let failure = stream.send(bytes)
        if let token = token(of: stream) { updateWatch(token) }
        return failure
    }

    /// Closes a connection; nothing more is reported about it.
    func close(_ stream: RelayStream) {
        stream.close()
        if let token = token(of: stream) { entries[token] = nil }
    }

    /// Moves as much data as possible, and reports the results.
    func step(at now: Instant, tell: (Owner, RelayStream.Event) -> Void) {
        for ready in members.ready() {
            // The receiver of a report may close any of them.
            guard let entry = entries[ready.token & ~1] else { continue }
            if ready.token & 1 == 1 {
                if let failure = entry.stream.carryMedia(through: &batch) { tell(entry.owner, failure) }
            } else {
                let events = entry.stream.step(
                    readable: ready.isReadable, writable: ready.isWritable, buffer: &buffer)
                for event in events where entries[ready.token] != nil { tell(entry.owner, event) }
            }
            updateWatch(ready.token & ~1)
        }
        for entry in Array(entries.values) {
            if let failure = entry.stream.checkTime(now) { tell(entry.owner, failure) }
        }
    }

    private func token(of stream: RelayStream) -> UInt64? { entries.first { $0.value.stream === stream }?.key }

    private func updateWatch(_ token: UInt64) {
        guard let entry = entries[token], entry.watchesWriting != entry.stream.wantsToWrite else { return }
        entries[token]?.watchesWriting = entry.stream.wantsToWrite
        members.update(entry.stream.descriptors.stream, token: token, forWriting: entry.stream.wantsToWrite)
    }
}
