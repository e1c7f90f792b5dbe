internal import BlockingWork
internal import HTTPTransport
internal import NIOCore

/// The clients that receive recordings, piece by piece. On the server's event loop.
///
/// A client holds an open file and one piece, whether it reads or not: the next piece is read when the client has taken the last.
final class RecordingStreams {
    /// Clients at a time.
    static let limit = 16
    /// Bytes of a piece.
    static let pieceBytes = 65_536
    /// For a client to take a piece.
    static let patience = TimeAmount.seconds(30)

    /// Reads recordings, so that a disk that hangs holds up no other work.
    static let threads = BlockingThreads(name: "recordings", most: 2)

    private final class Client {
        let stream: HTTPStream
        let file: RecordingFile
        /// What was not read yet.
        var rest: Range<Int>
        /// Closes the connection of a client that does not read.
        var timeout: Scheduled<Void>?

        init(_ stream: HTTPStream, _ file: RecordingFile, _ part: Range<Int>) {
            self.stream = stream
            self.file = file
            rest = part
        }
    }

    private let loop: any EventLoop
    private var clients: [Int: Client] = [:]
    private var last = 0

    init(on loop: any EventLoop) { self.loop = loop }

    /// Clients now.
    var count: Int { clients.count }

    /// Disconnects all clients.
    func close() { for client in clients.values { client.stream.close() } }

    /// Sends a part of a recording, and closes the connection.
    func add(_ stream: HTTPStream, _ file: RecordingFile, _ part: Range<Int>) {
        last += 1
        let number = last
        clients[number] = Client(stream, file, part)
        stream.onClose { [weak self] in self?.remove(number) }
        readNext(for: number)
    }

    private func remove(_ number: Int) { clients.removeValue(forKey: number)?.timeout?.cancel() }

    private func readNext(for number: Int) {
        guard let client = clients[number] else { return }
        guard !client.rest.isEmpty else { return client.stream.close() }
        let (file, rest) = (client.file, client.rest)
        let piece = rest.lowerBound..<min(rest.upperBound, rest.lowerBound + Self.pieceBytes)
        let own = NIOLoopBound(self, eventLoop: loop)
        Task { [loop] in
            let bytes = await RecordingStreams.threads.run { file.read(piece) }
            loop.execute { own.value.send(bytes, to: number) }
        }
    }

    private func send(_ bytes: [UInt8], to number: Int) {
        guard let client = clients[number] else { return }
        // The client notices by the length that it has not all.
        guard !bytes.isEmpty else { return client.stream.close() }
        client.rest = client.rest.lowerBound + bytes.count..<client.rest.upperBound
        client.timeout = loop.assumeIsolated().scheduleTask(in: Self.patience) { [weak client] in
            guard let client else { return }
            client.stream.close()
        }
        client.stream.send(bytes) { [weak self, weak client] in
            client?.timeout?.cancel()
            self?.readNext(for: number)
        }
    }
}
