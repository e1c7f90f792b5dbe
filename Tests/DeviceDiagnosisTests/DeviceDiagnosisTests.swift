import CallDiagnosis
import Core
import DeviceDiagnosis
import Testing

@Suite("What is wrong with a device that has no call")
struct DeviceDiagnosisTests {
    /// 2026-11-29 09:14 UTC.
    static let now = WallClock(unixMilliseconds: 1_795_943_640_000)
    static let day: Int64 = 86_400_000

    static func time(_ days: Int64) -> WallClock { WallClock(unixMilliseconds: now.unixMilliseconds + days * day) }

    static func certificate() -> CertificateFacts {
        CertificateFacts(
            names: ["example.org"], issuer: "/CN=Example Root", notBefore: time(-30), notAfter: time(60),
            isForServer: true, isTrusted: true)
    }

    static func server() -> ServerFacts {
        var server = ServerFacts(
            url: "https://example.org", isSecure: true,
            attempts: [ServerFacts.Attempt("192.0.2.1:443", .open(milliseconds: 20))])
        server.answer = .answered(status: 404, date: now, at: now)
        server.certificate = certificate()
        return server
    }

    static func address(_ host: String, _ port: UInt16) -> SocketAddress {
        SocketAddress(host: host, port: port) ?? .anyIPv4
    }

    static func stun(_ number: UInt16, sees port: UInt16) -> STUNFacts {
        STUNFacts(
            "stun:stun\(number).example.org", at: address("192.0.2.\(number)", 3_478),
            from: address("10.0.0.2", 40_000), .mapped(address("203.0.113.7", port)))
    }

    /// A device with everything configured, and nothing wrong.
    static func clean() -> DeviceFacts {
        var facts = DeviceFacts(ConfigurationFacts(path: "front.yaml"), at: now)
        facts.device = .facts(RunningFacts(isRunning: false, evidence: ["no lock is held"]))
        facts.names = .facts([NameFacts("example.org", .found(["192.0.2.1"]))])
        facts.servers = .facts([server()])
        facts.login = .facts(.granted(user: "front"))
        facts.ports = .facts([PortFacts("media.ports: UDP 16384-16583", count: 200, needed: 4)])
        facts.nat = .facts([stun(1, sees: 40_000), stun(2, sees: 40_000)])
        facts.relays = .facts([RelayFacts("turn:turn.example.org", true, .relayed(address("192.0.2.3", 50_000)))])
        facts.card = .facts(SoundCardFacts("default", peakDBFS: -52))
        facts.rights = .facts(RightsFacts(user: 999, priority: 20))
        facts.folders = .facts([FolderFacts("/rec", key: "behaviour.record_folder", freeBytes: 5_000_000_000)])
        facts.descriptors = .facts(DescriptorFacts(limit: 1_024, calls: nil))
        facts.call = .facts(.flowed(milliseconds: 180))
        return facts
    }

    static func found(_ change: (inout DeviceFacts) -> Void) -> [DeviceFinding] {
        var facts = clean()
        change(&facts)
        return DeviceDiagnosis(facts).findings
    }

    static func codes(_ change: (inout DeviceFacts) -> Void) -> [DeviceFinding.Code] { found(change).map(\.code) }

    static func codes(server: (inout ServerFacts) -> Void) -> [DeviceFinding.Code] {
        var changed = Self.server()
        server(&changed)
        return codes { facts in facts.servers = .facts([changed]) }
    }

    static func codes(certificate change: (inout CertificateFacts) -> Void) -> [DeviceFinding.Code] {
        codes(server: { server in
            var facts = certificate()
            change(&facts)
            server.certificate = facts
        })
    }

    static func step(_ name: DeviceStep.Name, _ change: (inout DeviceFacts) -> Void = { _ in }) throws -> DeviceStep {
        var facts = clean()
        change(&facts)
        return try #require(DeviceDiagnosis(facts).steps.first { $0.name == name })
    }

    @Test("A device without a fault has no finding, and every step says what it looked at")
    func clean() {
        let diagnosis = DeviceDiagnosis(Self.clean())
        #expect(diagnosis.findings == [])
        #expect(diagnosis.steps.map(\.name) == DeviceStep.Name.allCases)
        #expect(diagnosis.steps.allSatisfy { $0.outcome == .fine && !$0.evidence.isEmpty })
    }

    @Test(
        "Without a configuration that can be read, that is the one finding, and every other step says why it was skipped"
    )
    func unread() {
        let facts = DeviceFacts(
            ConfigurationFacts(path: "front.yaml", errors: ["front.yaml:3: acount: is not a key"]), at: Self.now)
        let diagnosis = DeviceDiagnosis(facts)
        #expect(diagnosis.findings.map(\.code) == [.configurationWrong])
        #expect(diagnosis.findings.first?.evidence == "front.yaml:3: acount: is not a key")
        #expect(diagnosis.steps.dropFirst().allSatisfy { $0.outcome == .skipped("the configuration cannot be used") })
    }

    @Test("A warning of the configuration is shown, and is no finding")
    func warning() throws {
        let step = try Self.step(.configuration) { $0.configuration.warnings = ["front.yaml:3: account: warning: …"] }
        #expect(step.outcome == .fine && step.evidence.count == 2)
    }

    @Test("A name that does not exist is distinguished from name servers that do not answer")
    func names() {
        #expect(Self.codes { $0.names = .facts([NameFacts("exmple.org", .unknown)]) } == [.nameUnknown])
        let unanswered = Self.found { $0.names = .facts([NameFacts("example.org", .unanswered)]) }
        #expect(unanswered.map(\.code) == [.namesUnanswered] && unanswered.map(\.side) == [.path])
    }

    @Test("A refused connection, one without an answer, and one without a route are three findings")
    func connections() {
        func attempt(_ results: ServerFacts.Attempt.Result...) -> [DeviceFinding.Code] {
            Self.codes(server: { server in
                server.attempts = results.map { ServerFacts.Attempt("192.0.2.1:443", $0) }
                (server.answer, server.certificate) = (nil, nil)
            })
        }
        #expect(attempt(.refused) == [.connectionRefused])
        #expect(attempt(.silent(seconds: 5)) == [.connectionTimeout])
        #expect(attempt(.unreachable("Network is unreachable")) == [.noRoute])
        #expect(attempt(.unanswered(seconds: 3)) == [.sipSilent])
        // One address that works is enough, and a refusal shows more than silence.
        #expect(attempt(.unreachable("Network is unreachable"), .open(milliseconds: 3)) == [])
        #expect(attempt(.silent(seconds: 5), .refused) == [.connectionRefused])
    }

    @Test("A server that takes connections and is silent, and one that speaks another protocol, are named")
    func answers() {
        #expect(Self.codes(server: { server in server.answer = .silent(seconds: 5) }) == [.serverSilent])
        #expect(Self.codes(server: { server in server.answer = .failed("no HTTP") }) == [.wrongProtocol])
        // A certificate that is not trusted ends the connection, too, and explains it.
        let untrusted = Self.codes(server: { server in
            server.answer = .failed("not trusted")
            server.certificate?.isTrusted = false
        })
        #expect(untrusted == [.certificateUntrusted])
    }

    @Test("What is wrong with a certificate is named: expired, early, another name, unknown authority, its end")
    func certificates() {
        #expect(
            Self.codes(certificate: { ($0.notAfter, $0.isTrusted) = (Self.time(-1), false) }) == [.certificateExpired])
        #expect(
            Self.codes(certificate: { ($0.notBefore, $0.isTrusted) = (Self.time(1), false) }) == [.certificateEarly])
        #expect(Self.codes(certificate: { ($0.isForServer, $0.isTrusted) = (false, false) }) == [.certificateWrongName])
        #expect(Self.codes(certificate: { $0.isTrusted = false }) == [.certificateUntrusted])
        #expect(Self.codes(certificate: { $0.isTrusted = nil }) == [])
        #expect(Self.codes(certificate: { $0.notAfter = Self.time(13) }) == [.certificateEndsSoon])
        #expect(Self.codes(certificate: { $0.notAfter = Self.time(14) }) == [])
        let both = Self.codes(certificate: {
            ($0.notAfter, $0.isForServer, $0.isTrusted) = (Self.time(-1), false, false)
        })
        #expect(both == [.certificateExpired, .certificateWrongName])
    }

    @Test("A clock that differs by more than a minute is a finding; whose it is, two servers that agree show")
    func clock() {
        func server(_ seconds: Int64, _ url: String = "https://example.org") -> ServerFacts {
            var server = Self.server()
            server.url = url
            let date = WallClock(unixMilliseconds: Self.now.unixMilliseconds - seconds * 1_000)
            server.answer = .answered(status: 404, date: date, at: Self.now)
            return server
        }
        #expect(Self.codes { $0.servers = .facts([server(60)]) } == [])
        let one = Self.found { $0.servers = .facts([server(3_600)]) }
        #expect(one.map(\.code) == [.clockOff] && one.map(\.side) == [.unclear])
        #expect(one.first?.evidence.contains("3600 s later") == true)
        let two = Self.found { $0.servers = .facts([server(-3_600), server(-3_590, "https://example.com")]) }
        #expect(two.map(\.code) == [.clockOff] && two.map(\.side) == [.ours])
        let apart = Self.found { $0.servers = .facts([server(0), server(3_600, "https://example.com")]) }
        #expect(apart.map(\.side) == [.unclear])
        let implausible = Self.found { $0.isTimePlausible = false }
        #expect(implausible.map(\.code) == [.clockImplausible] && implausible.map(\.side) == [.ours])
    }

    @Test("A server that sends no time leaves the clock unjudged, and says so")
    func noDate() throws {
        let step = try Self.step(.clock) { facts in
            var server = Self.server()
            server.answer = .answered(status: 200, date: nil, at: Self.now)
            facts.servers = .facts([server])
        }
        #expect(step.outcome == .skipped("no server sent its time"))
    }

    @Test("A login that is refused, expired, or has no result is named with the server's words")
    func login() {
        let refused = Self.found { $0.login = .facts(.refused(cause: "no such token", advice: "Check the token.")) }
        #expect(refused.map(\.code) == [.loginRefused] && refused.first?.evidence == "no such token")
        #expect(refused.first?.advice == "Check the token.")
        #expect(Self.codes { $0.login = .facts(.expired(cause: "expired")) } == [.tokenExpired])
        #expect(Self.codes { $0.login = .facts(.failed(cause: "status 500", advice: "")) } == [.loginFailed])
        #expect(Self.codes { $0.login = .facts(.late(seconds: 10)) } == [.loginFailed])
    }

    @Test("The login of a SIP account: an unknown user is this side's, and what a silent server means is not clear")
    func sipLogin() {
        #expect(Self.codes { $0.login = .facts(.confirmed(address: "sip:bob@sip.test")) } == [])
        let unknown = Self.found { $0.login = .facts(.unknownUser(cause: "the server says 404 Not Found")) }
        #expect(unknown.map(\.code) == [.userUnknown] && unknown.map(\.side) == [.ours])
        let silent = Self.found { $0.login = .facts(.unanswered(seconds: 10)) }
        #expect(silent.map(\.code) == [.registrarSilent] && silent.map(\.side) == [.unclear])
        #expect(Self.codes { $0.login = .facts(.untrusted(cause: "another name")) } == [.certificateUntrusted])
    }

    @Test("A port in use is a finding; ports of a range are one only if fewer are left than calls need")
    func ports() {
        #expect(Self.codes { $0.ports = .facts([PortFacts("media.port: UDP 4000", inUse: [4_000])]) } == [.portInUse])
        func range(_ used: Int) -> [DeviceFinding.Code] {
            Self.codes {
                $0.ports = .facts([PortFacts("media.ports", count: 8, needed: 4, inUse: [1, 2], countInUse: used)])
            }
        }
        #expect(range(4) == [])
        #expect(range(5) == [.portInUse])
        var refused = PortFacts("media.port: UDP 192.0.2.9:4000")
        refused.fault = "No interface of this machine has that address."
        #expect(Self.codes { $0.ports = .facts([refused]) } == [.portUnusable])
    }

    @Test(
        "A mapping is endpoint-dependent if two servers see different ports, and a finding unless a TURN server answers"
    )
    func mapping() throws {
        let relay = STUNFacts("turn:turn.example.org", at: Self.address("192.0.2.3", 3_478), .relays)
        let servers = [Self.stun(1, sees: 40_000), Self.stun(2, sees: 40_001)]
        let dependent = Self.found { $0.nat = .facts(servers) }
        #expect(dependent.map(\.code) == [.mappingDependent] && dependent.map(\.side) == [.path])
        #expect(dependent.first?.evidence.contains("203.0.113.7:40001") == true)
        #expect(Self.codes { $0.nat = .facts(servers + [relay]) } == [])
        let one = try Self.step(.nat) { $0.nat = .facts([Self.stun(1, sees: 40_000)]) }
        #expect(one.outcome == .fine && one.evidence.last?.contains("not clear") == true)
        let direct = try Self.step(.nat) { facts in
            var server = Self.stun(1, sees: 40_000)
            server.answer = .mapped(Self.address("10.0.0.2", 40_000))
            facts.nat = .facts([server])
        }
        #expect(direct.outcome == .fine && direct.evidence.last?.contains("no NAT") == true)
    }

    @Test("Silence of one STUN server beside another is that server's; of all, UDP's; of the only one, not clear whose")
    func silence() {
        func silent(_ number: UInt16) -> STUNFacts {
            STUNFacts("stun:stun\(number).example.org", at: Self.address("192.0.2.1", 3_478), .silent(seconds: 3))
        }
        let one = Self.found { $0.nat = .facts([silent(1)]) }
        #expect(one.map(\.code) == [.stunSilent] && one.map(\.side) == [.unclear])
        let all = Self.found { $0.nat = .facts([silent(1), silent(2)]) }
        #expect(all.map(\.code) == [.udpBlocked] && all.map(\.side) == [.path])
        let beside = Self.found { $0.nat = .facts([silent(1), Self.stun(2, sees: 40_000)]) }
        #expect(beside.map(\.code) == [.stunSilent] && beside.map(\.side) == [.service])
        #expect(
            Self.codes { $0.nat = .facts([STUNFacts("turns:a", at: nil, .notTried("over TLS"))]) } == [])
    }

    @Test(
        "A TURN server that refuses the login names the side that gave the login; other failures have codes of their own"
    )
    func relays() throws {
        func found(_ result: RelayFacts.Result, isConfigured: Bool = true) -> DeviceFinding? {
            Self.found { $0.relays = .facts([RelayFacts("turn:a", isConfigured, result)]) }.first
        }
        let refused = RelayFacts.Result.unauthorized("it answers 401 \"Unauthorized\"")
        #expect(found(refused)?.code == .relayUnauthorized && found(refused)?.side == .ours)
        #expect(found(refused, isConfigured: false)?.side == .service)
        #expect(found(.refused("it answers 486 \"Quota\""))?.code == .relayRefused)
        #expect(found(.unreachable("refused"))?.code == .relayUnreachable)
        #expect(found(.silent(seconds: 5))?.code == .relayUnreachable)
        #expect(found(.redirected(to: Self.address("192.0.2.9", 3_478))) == nil)
        let none = try Self.step(.relays) { $0.relays = .facts([]) }
        #expect(none.outcome == .skipped("there is no TURN server"))
        let unasked = try Self.step(.relays) { $0.relays = .facts([RelayFacts("turn:a", true, .notTried("no login"))]) }
        #expect(unasked.outcome == .skipped("no TURN server is asked") && unasked.evidence == ["turn:a: no login"])
    }

    @Test("A card that does not open, one that stalls, and a microphone that gives zeros are named")
    func card() {
        func codes(_ change: (inout SoundCardFacts) -> Void) -> [DeviceFinding.Code] {
            Self.codes { facts in
                var card = SoundCardFacts("default", peakDBFS: -52)
                change(&card)
                facts.card = .facts(card)
            }
        }
        #expect(codes { $0.failure = "no such card" } == [.cardUnusable])
        #expect(codes { $0.stalled = "capture" } == [.cardStalled])
        #expect(codes { $0.peakDBFS = -100 } == [.microphoneSilent])
        #expect(codes { $0.peakDBFS = nil } == [])
    }

    @Test("Rights are judged only if the configuration asks for a priority")
    func rights() {
        func codes(priority: Int?) -> [DeviceFinding.Code] {
            Self.codes { facts in
                var rights = RightsFacts(user: 1_000, priority: priority)
                (rights.priorityRefusal, rights.lockRefusal) = ("not permitted", "too little")
                facts.rights = .facts(rights)
            }
        }
        #expect(codes(priority: 20) == [.realtimeRefused, .memoryLockRefused])
        #expect(codes(priority: nil) == [])
    }

    @Test("A folder that cannot be written to, a full disk, and one that is full before its limit are named")
    func disk() {
        func codes(_ change: (inout FolderFacts) -> Void) -> [DeviceFinding.Code] {
            Self.codes { facts in
                var folder = FolderFacts("/rec", key: "behaviour.record_folder", freeBytes: 5_000_000_000)
                change(&folder)
                facts.folders = .facts([folder])
            }
        }
        #expect(codes { $0.fault = "Permission denied" } == [.folderUnusable])
        #expect(codes { $0.freeBytes = 99_999_999 } == [.diskFull])
        #expect(codes { $0.freeBytes = 100_000_000 } == [])
        #expect(codes { ($0.limitBytes, $0.heldBytes) = (6_000_000_000, 999_999_999) } == [.diskSmall])
        #expect(codes { ($0.limitBytes, $0.heldBytes) = (6_000_000_000, 1_000_000_000) } == [])
        #expect(codes { $0.freeBytes = nil } == [])
    }

    @Test("The limit on open files is compared with the calls that are configured")
    func descriptors() {
        func codes(_ limit: Int, _ calls: Int?) -> [DeviceFinding.Code] {
            Self.codes { $0.descriptors = .facts(DescriptorFacts(limit: limit, calls: calls)) }
        }
        #expect(codes(64 + 16 * 60, 60) == [])
        #expect(codes(64 + 16 * 60 - 1, 60) == [.descriptorsFew])
        #expect(codes(191, nil) == [.descriptorsFew])
        #expect(codes(192, nil) == [])
    }

    @Test("A call to itself that fails is a finding, and it is not clear whose fault")
    func call() {
        let found = Self.found { $0.call = .facts(.failed("its sound did not arrive")) }
        #expect(found.map(\.code) == [.callFailed] && found.map(\.side) == [.unclear])
    }
}
