import Foundation
import Testing

/// An exchange that has no descriptor left.
@Suite("handset serve without descriptors", .serialized)
struct DescriptorTests {
    @Test("With descriptors used up new clients are notified at once, others are served, and the log reports it once")
    func usedUp() async throws {
        let site = try Site()
        defer { site.remove() }
        let exchange = try HandsetProcess(["serve", "--config", site.exchangeConfiguration, "--log-format", "json"])
        let line = try await exchange.line(containing: #""Listening""#)
        let port = try #require(line.firstMatch(of: #/:(\d+)"/#).flatMap { UInt16($0.1) })
        let early = try TCPClient(port: port)
        try early.ask()
        #expect(early.answer().hasPrefix("HTTP/1.1 401"))

        // The exchange has reckoned with more: what else a process has open counts, too.
        try limit(exchange, to: 32)
        var clients: [TCPClient] = []
        for _ in 0..<120 { clients.append(try TCPClient(port: port)) }
        let told = try await exchange.line(containing: "Cannot accept connections")
        #expect(told.contains("LimitNOFILE") && told.contains(#""open_files":"32""#))
        // What was accepted before waits for its request; the others are told.
        try await eventually { clients.count { $0.hasEnded } >= 64 }
        try early.ask()
        #expect(early.answer().hasPrefix("HTTP/1.1 401"))

        clients = []
        try limit(exchange, to: 200)
        try await eventually { (try? TCPClient(port: port))?.isServed == true }
        exchange.send(SIGTERM)
        #expect(await exchange.ending() == 0)
        let lines = exchange.errorText.split(separator: "\n")
        #expect(lines.count { $0.contains("Cannot accept connections") } == 1, "\(exchange.errorText)")
    }

    @Test("An exchange that may have 64 descriptors takes as many connections as leave it room for everything else")
    func few() async throws {
        let site = try Site(database: "exchange.sqlite")
        defer { site.remove() }
        // All come from here.
        let text = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        try (text + "\nconnections_from_this_machine: 32\n").write(
            toFile: site.exchangeConfiguration, atomically: true, encoding: .utf8)
        let exchange = try HandsetProcess(
            [
                "--nofile=64:64", try HandsetProcess.executable().path, "serve", "--config", site.exchangeConfiguration,
                "--log-format", "json",
            ], executable: "/usr/bin/prlimit")
        let line = try await exchange.line(containing: #""Listening""#)
        let port = try #require(line.firstMatch(of: #/:(\d+)"/#).flatMap { UInt16($0.1) })
        var clients: [TCPClient] = []
        for _ in 0..<100 { clients.append(try TCPClient(port: port)) }
        try await exchange.line(containing: "Refusing connections")
        let first = try #require(clients.first)
        try first.ask()
        #expect(first.answer().hasPrefix("HTTP/1.1 401"))
        try await eventually { clients.count { $0.hasEnded } == 100 - 32 }
        #expect(!exchange.errorText.contains("Cannot accept"))
        exchange.send(SIGTERM)
        #expect(await exchange.ending() == 0)
    }

    @Test("Without descriptors a device says so once, and its control socket takes clients when there are some")
    func controlSocket() async throws {
        // Only of a process that may be dumped another user than root may count the descriptors.
        let running = try await RunningSite(Site(isControlled: true), environment: ["HANDSET_DUMPABLE": "1"])
        defer { running.site.remove() }
        let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(running.device.identifier)/fd").count
        try limit(running.device, to: open)
        let clients = try (0..<8).map { _ in try SocketClient(running.site.controlSocket) }
        let told = try await running.device.line(containing: "takes no clients")
        #expect(told.contains("LimitNOFILE"))
        try limit(running.device, to: 1_024)
        #expect(try await running.control("status").code == 0)
        #expect(running.device.errorText.split(separator: "\n").count { $0.contains("takes no clients") } == 1)
        withExtendedLifetime(clients) {}
    }

    private func limit(_ process: HandsetProcess, to count: Int) throws {
        let command = Process()
        command.executableURL = URL(fileURLWithPath: "/usr/bin/prlimit")
        command.arguments = ["--pid", "\(process.identifier)", "--nofile=\(count):"]
        try command.run()
        command.waitUntilExit()
        try #require(command.terminationStatus == 0)
    }
}

/// A TCP connection to this machine.
private final class TCPClient {
    private let descriptor: Int32
    private var isOver = false

    init(port: UInt16) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(status == 0, "\(String(cString: strerror(errno)))")
    }

    deinit { close(descriptor) }

    func ask() throws {
        let request = Array("GET /v1/connection HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        try #require(send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count)
    }

    /// Whether the other side has closed it.
    var hasEnded: Bool {
        _ = answer(within: 0)
        return isOver
    }

    /// Whether a request is answered.
    var isServed: Bool {
        guard (try? ask()) != nil else { return false }
        return answer(within: 2).hasPrefix("HTTP/1.1 401")
    }

    /// What has come, or comes within `seconds`.
    func answer(within seconds: Int32 = 30) -> String {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&waiting, 1, seconds * 1_000) > 0 else { return "" }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = read(descriptor, &bytes, bytes.count)
        if count <= 0 { isOver = true }
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }
}
