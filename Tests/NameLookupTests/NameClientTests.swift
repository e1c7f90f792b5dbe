import DomainNames
import Foundation
import NameLookup
import NetworkAddress
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
        #expect(answers[nobody] == .nothing && answers[noService] == .nothing)
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
