import Foundation
import Glibc
import Testing

/// The end of a command, and what it printed.
struct CommandResult {
    let code: Int32
    let output: String
    let error: String

    /// Runs `handset` to its end.
    init(_ arguments: [String]) async throws {
        let command = try HandsetProcess(arguments)
        code = await command.ending()
        (output, error) = (command.outputText, command.errorText)
    }

    /// What it printed with `--json`, an object on each line.
    func objects() throws -> [[String: Any]] {
        try output.split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
        }
    }
}

/// A Unix socket at which something else listens than a process of Handset: it answers each client with the same bytes.
final class ForeignSocket: Sendable {
    let path: String
    private let descriptor: Int32

    init(at path: String, answering answer: String) throws {
        self.path = path
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let isBound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        try #require(isBound && listen(descriptor, 4) == 0)
        Thread.detachNewThread { [descriptor] in
            while true {
                let client = accept(descriptor, nil, nil)
                guard client >= 0 else { return }
                var bytes = [UInt8](repeating: 0, count: 65_536)
                _ = read(client, &bytes, bytes.count)
                _ = send(client, answer, answer.utf8.count, Int32(MSG_NOSIGNAL))
                shutdown(client, Int32(SHUT_WR))
                // Until the client has read it.
                _ = read(client, &bytes, bytes.count)
                close(client)
            }
        }
    }

    deinit {
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }

    /// What a server of another program may answer.
    static func http(_ body: String) -> String {
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }
}

extension HandsetProcess {
    /// The URL of a control interface on TCP, from the log in JSON.
    func controlURL() async throws -> String {
        let text = try await line(containing: #""Listening to programs, over HTTP""#)
        return String(try #require(text.firstMatch(of: #/"url":"([^"]+)"/#)).1)
    }
}
