import DomainNames
import Foundation
import NameLookup
import Core
import TestSupport
import Testing

/// dnsmasq with a zone of its own, at a port of this machine.
private final class NameServer {
    let address: SocketAddress
    private let process = Process()

    init(_ records: [String]) throws {
        let program = try #require(
            ["/usr/sbin/dnsmasq", "/usr/bin/dnsmasq"].first(where: FileManager.default.isExecutableFile),
            "install dnsmasq-base")
        let port = UInt16.random(in: 20_000..<40_000)
        address = try #require(SocketAddress(host: "127.0.0.1", port: port))
        process.executableURL = URL(filePath: program)
        process.arguments =
            [
                "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--bind-interfaces",
                "--listen-address=127.0.0.1", "--port=\(port)", "--local=/test/", "--user=", "--group=",
                "--pid-file=", "--local-ttl=77", "--log-facility=-",
            ] + records
        let log = Pipe()
        process.standardError = log
        try process.run()
        // It listens once it says so; if it ends, so does its log.
        var text = ""
        while !text.contains("started") {
            let data = log.fileHandleForReading.availableData
            guard !data.isEmpty else { throw CocoaError(.executableLoad) }
            text += String(decoding: data, as: UTF8.self)
        }
    }

    /// SIGTERM may be blocked in what a test starts.
    deinit { kill(process.processIdentifier, SIGKILL) }
}

/// A name server that knows no name, and says for how long that may be kept, or not.
private final class Denier {
    let address: SocketAddress
    private let descriptor: Int32

    /// - Parameter soa: The lifetime and the minimum of the zone's SOA record; none if nil.
    init(soa: UInt32?) throws {
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        self.descriptor = descriptor
        var local = sockaddr_in()
        local.sin_family = sa_family_t(AF_INET)
        local.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &local) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        try #require(isBound)
        address = try #require(SocketAddress(host: "127.0.0.1", port: UInt16(bigEndian: local.sin_port)))
        // It ends when the socket is shut down.
        Thread { Self.serve(descriptor, soa) }.start()
    }

    deinit { shutdown(descriptor, Int32(SHUT_RDWR)) }

    private static func serve(_ descriptor: Int32, _ soa: UInt32?) {
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 2_048)
        while true {
            var peer = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let count = withUnsafeMutablePointer(to: &peer) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    recvfrom(descriptor, &bytes, bytes.count, 0, $0, &length)
                }
            }
            guard count > 12 else { return }
            let reply = Self.denial(of: Array(bytes.prefix(count)), soa)
            _ = withUnsafePointer(to: &peer) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    sendto(descriptor, reply, reply.count, 0, $0, length)
                }
            }
        }
    }

    /// NXDOMAIN to a question.
    private static func denial(of query: [UInt8], _ soa: UInt32?) -> [UInt8] {
        var end = 12
        while end < query.count, query[end] > 0 { end += Int(query[end]) + 1 }
        let header: [UInt8] = Array(query.prefix(2)) + [0x81, 0x83, 0, 1, 0, 0, 0, soa == nil ? 0 : 1, 0, 0]
        let question = Array(query[12..<min(end + 5, query.count)])
        guard let soa else { return header + question }
        let seconds = (0..<4).map { UInt8(truncatingIfNeeded: soa >> (24 - 8 * $0)) }
        // Both names are the root; serial, refresh, retry and expire are 1.
        let data: [UInt8] = [0, 0] + (0..<4).flatMap { _ in [0, 0, 0, 1] as [UInt8] } + seconds
        return header + question + [0, 0, 6, 0, 1] + seconds + [0, UInt8(data.count)] + data
    }
}

@Suite("Questions to a name server", .witnessed(slack: .seconds(2)), .timeLimit(.minutes(1)))
struct NameClientTests {
    private func ask(_ server: NameServer, _ questions: DNSQuestion...) -> [DNSQuestion: DNSAnswer] {
        NameClient(servers: [server.address], limit: .seconds(30)).answers(to: questions)
    }

    @Test("SRV, NAPTR, A and AAAA records of dnsmasq are read, with their lifetime; an unknown name is nothing")
    func records() throws {
        let server = try NameServer([
            "--host-record=s1.sip.test,192.0.2.1,2001:db8::1",
            "--srv-host=_sip._udp.sip.test,s1.sip.test,5060,10,60",
            "--srv-host=_sip._udp.sip.test,s2.sip.test,5062,20,40",
            "--naptr-record=sip.test,10,50,s,SIPS+D2T,,_sips._tcp.sip.test",
        ])
        let services = DNSQuestion("_sip._udp.sip.test", .services)
        let rules = DNSQuestion("SIP.test.", .rules)
        let addresses = DNSQuestion("s1.sip.test", .addresses)
        let nobody = DNSQuestion("nobody.sip.test", .addresses)
        let noService = DNSQuestion("_sip._tcp.sip.test", .services)
        let answers = ask(server, services, rules, addresses, nobody, noService)
        guard case .found(.services(let found), _)? = answers[services] else {
            return #expect(Bool(false), "\(answers)")
        }
        #expect(found.sorted { $0.priority < $1.priority }.map(\.target) == ["s1.sip.test", "s2.sip.test"])
        guard case .found(.rules(let rule), _)? = answers[rules] else { return #expect(Bool(false), "\(answers)") }
        #expect(rule.map(\.replacement) == ["_sips._tcp.sip.test"])
        guard case .found(.addresses(let hosts), let lifetime)? = answers[addresses] else {
            return #expect(Bool(false), "\(answers)")
        }
        #expect(Set(hosts.map(\.host)) == ["192.0.2.1", "2001:db8::1"])
        #expect(lifetime == .seconds(77))
        for question in [nobody, noService] {
            guard case .nothing? = answers[question] else { return #expect(Bool(false), "\(answers)") }
        }
    }

    @Test(
        "A name that does not exist is kept as long as the zone's SOA record says, and not at all without one",
        arguments: [nil, 90] as [UInt32?])
    func negative(_ seconds: UInt32?) throws {
        let server = try Denier(soa: seconds)
        let question = DNSQuestion("_sip._udp.sip.test", .services)
        let address = DNSQuestion("nobody.sip.test", .addresses)
        let answers = NameClient(servers: [server.address], limit: .seconds(30)).answers(to: [question, address])
        #expect(answers[question] == .nothing(lifetime: .seconds(Int64(seconds ?? 0))))
        // c-ares does not say what the zone says of addresses.
        #expect(answers[address] == .nothing(lifetime: .zero))
    }

    @Test("Addresses of /etc/hosts need no name server")
    func hosts() throws {
        let silent = try #require(SocketAddress(host: "127.0.0.1", port: 9))
        let question = DNSQuestion("localhost", .addresses)
        let answers = NameClient(servers: [silent], limit: .seconds(2)).answers(to: [question])
        guard case .found(.addresses(let found), _)? = answers[question] else {
            return #expect(Bool(false), "\(answers)")
        }
        #expect(found.allSatisfy { $0.isLoopback })
    }

    @Test("A server that says nothing fails within the limit")
    func silence() throws {
        let socket = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, length) == 0 && getsockname(socket, $0, &length) == 0
            }
        }
        #expect(bound)
        let server = try #require(SocketAddress(host: "127.0.0.1", port: UInt16(bigEndian: address.sin_port)))
        let question = DNSQuestion("_sip._udp.sip.test", .services)
        let begun = ContinuousClock.now
        let answers = NameClient(servers: [server], limit: .milliseconds(400)).answers(to: [question])
        #expect(answers == [question: .failed])
        #expect(begun.duration(to: .now) < .seconds(5))
    }
}
