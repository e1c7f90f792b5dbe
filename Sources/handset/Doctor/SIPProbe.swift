internal import Core
internal import DeviceDiagnosis
internal import Realtime

/// Asks a SIP server over UDP whether it is there, by an OPTIONS (RFC 3261 §11). That registers nothing.
enum SIPProbe {
    /// - Parameters:
    ///   - domain: The server's name, as the configuration has it.
    ///   - addresses: Where it is.
    /// - Returns: What came of each address; those over IPv6 are not asked, and left out.
    static func ask(_ domain: String, at addresses: [SocketAddress]) async -> [ServerFacts.Attempt] {
        let asked = addresses.filter { !$0.isIPv6 }
        guard !asked.isEmpty else { return [] }
        let calls = asked.map { _ in String(UInt64.random(in: 0...(.max)), radix: 16) }
        let start = MonotonicClock.now
        let questions = { @Sendable (port: UInt16) in
            zip(asked, calls).map { address, call in
                DatagramSurvey.Question(
                    address: address, bytes: options(domain, call, from: address.localSource() ?? .anyIPv4, port: port))
            }
        }
        let result = try? await DatagramSurvey.run(questions) { bytes -> (Int, Int)? in
            let text = String(decoding: bytes, as: UTF8.self)
            guard text.hasPrefix("SIP/2.0 "), let index = calls.firstIndex(where: { text.contains("z9hG4bK\($0)") })
            else { return nil }
            return (index, Int(start.duration(to: MonotonicClock.now).milliseconds))
        }
        return asked.enumerated().map { index, address in
            let time = result?.answers[index]
            return ServerFacts.Attempt(
                "\(address)",
                time.map { .open(milliseconds: $0) } ?? .unanswered(seconds: DoctorBounds.datagrams))
        }
    }

    private static func options(
        _ domain: String, _ call: String, from local: SocketAddress, port: UInt16
    ) -> [UInt8] {
        let host = domain.contains(":") ? "[\(domain)]" : domain
        let lines = [
            "OPTIONS sip:\(host) SIP/2.0", "Via: SIP/2.0/UDP \(local.withPort(port));branch=z9hG4bK\(call);rport",
            "Max-Forwards: 70", "From: <sip:\(local.host)>;tag=\(call)", "To: <sip:\(host)>", "Call-ID: \(call)",
            "CSeq: 1 OPTIONS", "Accept: application/sdp", "Content-Length: 0",
        ]
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }
}
