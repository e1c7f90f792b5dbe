internal import CallControl
internal import Core
internal import DeviceDiagnosis
internal import ICE
internal import Realtime

/// Asks STUN servers over UDP which address they see, all from one socket, and TURN servers whether they answer.
enum STUNProbe {
    /// A server to ask.
    struct Server: Sendable {
        let url: String
        let isRelay: Bool
        let address: SocketAddress
    }

    /// The servers that UDP reaches, and why the others are not asked.
    ///
    /// - Parameter names: The addresses of their names.
    static func servers(
        of list: [CallControl.ICEServer], _ names: NameSurvey.Answers
    ) -> (asked: [Server], others: [STUNFacts]) {
        var (asked, others): ([Server], [STUNFacts]) = ([], [])
        for url in list.flatMap(\.urls) {
            guard let location = ICEServerURL(url) else { continue }
            let addresses = names[location.host]?.addresses ?? []
            if location.transport != .udp {
                others.append(STUNFacts(url, at: nil, .notTried("not asked, because it is not reached over UDP")))
            } else if let address = addresses.first(where: { !$0.isIPv6 }) {
                asked.append(
                    Server(url: url, isRelay: location.scheme.isRelay, address: address.withPort(location.port)))
            } else {
                let reason = addresses.isEmpty ? "not asked, because its address is not known" : "not asked over IPv6"
                others.append(STUNFacts(url, at: nil, .notTried(reason)))
            }
        }
        return (asked, others)
    }

    /// The hosts that a list of servers names.
    static func hosts(of list: [CallControl.ICEServer]) -> Set<String> {
        Set(list.flatMap(\.urls).compactMap { ICEServerURL($0)?.host })
    }

    /// Asks them all.
    static func ask(_ servers: [Server]) async -> [STUNFacts] {
        guard !servers.isEmpty else { return [] }
        let questions = servers.map { server in
            var generator = SystemRandomNumberGenerator()
            let id = TransactionID(using: &generator)
            return (id, DatagramSurvey.Question(address: server.address, bytes: question(server, id)))
        }
        do {
            let result = try await DatagramSurvey.run({ _ in questions.map { $0.1 } }) {
                bytes -> (Int, STUNFacts.Answer)? in
                guard let message = try? STUNMessage(parsing: bytes),
                    let index = questions.firstIndex(where: { $0.0 == message.transactionID }),
                    let answer = Self.answer(message, isRelay: servers[index].isRelay)
                else { return nil }
                return (index, answer)
            }
            return servers.enumerated().map { index, server in
                STUNFacts(
                    server.url, at: server.address, from: server.address.localSource()?.withPort(result.port),
                    result.answers[index] ?? .silent(seconds: DoctorBounds.datagrams))
            }
        } catch {
            return servers.map { STUNFacts($0.url, at: $0.address, .notTried("not asked: \(error)")) }
        }
    }

    /// A TURN server answers an Allocate without a login with 401 (RFC 8656 §7.2), and relays nothing.
    private static func question(_ server: Server, _ id: TransactionID) -> [UInt8] {
        guard server.isRelay else { return STUNBuilder(.request, .binding, id).finish(fingerprint: true) }
        var request = STUNBuilder(.request, .allocate, id)
        // UDP, as a protocol's number and three bytes of zero.
        request.append(.requestedTransport, 17 << 24 as UInt32)
        return request.finish(fingerprint: true)
    }

    private static func answer(_ message: STUNMessage, isRelay: Bool) -> STUNFacts.Answer? {
        switch message.messageClass {
        case .success:
            guard !isRelay else { return .relays }
            let address = message.address(.xorMappedAddress) ?? message.address(.mappedAddress)
            return address.map { .mapped($0) } ?? .unusable
        case .failure:
            let code = message.failure?.code.rawValue ?? 0
            return isRelay && code == 401 ? .relays : .refused(code: code)
        case .request, .indication: return nil
        }
    }
}
