// DeviceDiagnosis: what is wrong with a device that has no call, whose fault it looks like, and what to try, from gathered facts. Pure.

public import CallDiagnosis

/// One thing that is wrong with a device, its machine, or its path to its servers.
public struct DeviceFinding: Hashable, Sendable {
    /// What kind of thing.
    public enum Code: String, CaseIterable, Hashable, Sendable {
        case configurationWrong = "configuration_wrong"
        case nameUnknown = "name_unknown"
        case namesUnanswered = "names_unanswered"
        case connectionRefused = "connection_refused"
        case connectionTimeout = "connection_timeout"
        case noRoute = "no_route"
        case serverSilent = "server_silent"
        case sipSilent = "sip_silent"
        case wrongProtocol = "wrong_protocol"
        case certificateExpired = "certificate_expired"
        case certificateEarly = "certificate_not_yet_valid"
        case certificateWrongName = "certificate_wrong_name"
        case certificateUntrusted = "certificate_untrusted"
        case certificateEndsSoon = "certificate_ends_soon"
        case clockImplausible = "clock_implausible"
        case clockOff = "clock_off"
        case loginRefused = "login_refused"
        case userUnknown = "user_unknown"
        case registrarSilent = "registrar_silent"
        case tokenExpired = "token_expired"
        case loginFailed = "login_failed"
        case portInUse = "port_in_use"
        case portUnusable = "port_unusable"
        case udpBlocked = "udp_blocked"
        case stunSilent = "stun_silent"
        case mappingDependent = "mapping_endpoint_dependent"
        case relayUnauthorized = "relay_unauthorized"
        case relayRefused = "relay_refused"
        case relayUnreachable = "relay_unreachable"
        case cardUnusable = "card_unusable"
        case cardStalled = "card_stalled"
        case microphoneSilent = "microphone_silent"
        case realtimeRefused = "realtime_refused"
        case memoryLockRefused = "memory_lock_refused"
        case folderUnusable = "folder_unusable"
        case diskFull = "disk_full"
        case diskSmall = "disk_below_limit"
        case descriptorsFew = "descriptors_few"
        case callFailed = "call_failed"
    }

    /// What kind of thing.
    public let code: Code
    /// Whose fault it looks like.
    public let side: Finding.Side
    /// What is wrong, as a sentence.
    public let text: String
    /// What says so.
    public let evidence: String
    /// What to try, as a sentence.
    public let advice: String

    init(_ code: Code, _ side: Finding.Side, _ text: String, because evidence: String, advice: String) {
        self.code = code
        self.side = side
        self.text = text
        self.evidence = evidence
        self.advice = advice
    }
}

/// One step of the diagnosis of a device: what it looked at, and what came of it.
public struct DeviceStep: Hashable, Sendable {
    /// The steps, in their order.
    public enum Name: String, CaseIterable, Hashable, Sendable {
        case configuration, device, names, connections, certificates, clock, login, ports, nat, relays, card, rights
        case disk, descriptors, call
    }

    /// What came of a step.
    public enum Outcome: Hashable, Sendable {
        /// Nothing is wrong that it can see.
        case fine
        /// At least one thing is wrong.
        case found([DeviceFinding])
        /// It was not tried, for this reason.
        case skipped(String)
    }

    /// Which step.
    public let name: Name
    /// What it looked at, a line for each thing.
    public let evidence: [String]
    /// What came of it.
    public let outcome: Outcome

    /// What it found.
    public var findings: [DeviceFinding] { if case .found(let findings) = outcome { findings } else { [] } }

    init(_ name: Name, _ evidence: [String], _ findings: [DeviceFinding] = []) {
        self.name = name
        self.evidence = evidence
        outcome = findings.isEmpty ? .fine : .found(findings)
    }

    init(_ name: Name, skipped reason: String, _ evidence: [String] = []) {
        self.name = name
        self.evidence = evidence
        outcome = .skipped(reason)
    }
}
