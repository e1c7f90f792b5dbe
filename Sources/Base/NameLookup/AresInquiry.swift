internal import CAres
internal import DomainNames
internal import Glibc
internal import Core

/// One question to c-ares, and its answer once there is one. c-ares holds it until it has called back, which it does before the
/// channel is gone.
final class AresInquiry {
    let question: DNSQuestion
    private(set) var answer: DNSAnswer?

    init(_ question: DNSQuestion) { self.question = question }

    func ask(_ channel: AresChannel) {
        let context = unsafe Unmanaged.passRetained(self).toOpaque()
        switch question.kind {
        case .services: unsafe query(channel, 33, context)
        case .rules: unsafe query(channel, 35, context)
        case .addresses:
            var hints = ares_addrinfo_hints()
            hints.ai_family = AF_UNSPEC
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
            unsafe ares_getaddrinfo(
                channel.handle, question.name, nil, &hints,
                { context, status, _, result in
                    guard let context = unsafe context else { return }
                    unsafe Unmanaged<AresInquiry>.fromOpaque(context).takeRetainedValue().take(status, result)
                }, context)
        }
    }

    private func query(_ channel: AresChannel, _ type: Int32, _ context: UnsafeMutableRawPointer) {
        unsafe ares_query(
            channel.handle, question.name, 1, type,
            { context, status, _, bytes, length in
                guard let context = unsafe context else { return }
                let inquiry = unsafe Unmanaged<AresInquiry>.fromOpaque(context).takeRetainedValue()
                let reply = unsafe bytes.map { bytes in
                    unsafe Array(UnsafeBufferPointer(start: bytes, count: Int(max(0, length))))
                }
                inquiry.take(status, reply ?? [])
            }, context)
    }

    /// The names do not exist, or the name servers gave no answer.
    ///
    /// - Parameter reply: What the name server sent, if it is known; of addresses c-ares does not give it away.
    private func take(failure status: Int32, _ reply: [UInt8] = []) {
        switch status {
        case ARES_ENODATA, ARES_ENOTFOUND, ARES_EBADNAME:
            let seconds = (try? DNSReply(parsing: reply))?.negativeLifetime ?? 0
            answer = .nothing(lifetime: .seconds(Int64(seconds)))
        default: answer = .failed
        }
    }

    private func take(_ status: Int32, _ reply: [UInt8]) {
        guard status == ARES_SUCCESS else { return take(failure: status, reply) }
        guard let reply = try? DNSReply(parsing: reply) else { return answer = .failed }
        let lifetime = Duration.seconds(Int64(reply.lifetime))
        let records: DNSRecords = question.kind == .rules ? .rules(reply.rules) : .services(reply.services)
        // An alias alone leads to nothing for as long as it lasts itself, if that is shorter.
        let isEmpty = reply.rules.isEmpty && reply.services.isEmpty
        let nothing = DNSAnswer.nothing(lifetime: min(lifetime, .seconds(Int64(reply.negativeLifetime))))
        answer = isEmpty ? nothing : .found(records, lifetime: lifetime)
    }

    private func take(_ status: Int32, _ result: UnsafeMutablePointer<ares_addrinfo>?) {
        guard status == ARES_SUCCESS, let result = unsafe result else { return take(failure: status) }
        defer { unsafe ares_freeaddrinfo(result) }
        var addresses: [SocketAddress] = []
        var lifetime: Int32 = 86_400
        var node = unsafe result.pointee.nodes
        while let current = unsafe node, addresses.count < NameClient.mostAddresses {
            if let address = unsafe Self.address(current.pointee), !addresses.contains(address) {
                addresses.append(address)
                lifetime = unsafe min(lifetime, max(0, current.pointee.ai_ttl))
            }
            unsafe node = current.pointee.ai_next
        }
        answer =
            addresses.isEmpty
            ? .nothing(lifetime: .zero) : .found(.addresses(addresses), lifetime: .seconds(Int64(lifetime)))
    }

    private static func address(_ node: ares_addrinfo_node) -> SocketAddress? {
        guard let address = unsafe node.ai_addr else { return nil }
        var text = [CChar](repeating: 0, count: 64)
        let pointer = UnsafeRawPointer(address)
        if unsafe node.ai_family == AF_INET {
            var bytes = unsafe pointer.loadUnaligned(as: sockaddr_in.self).sin_addr
            guard unsafe inet_ntop(AF_INET, &bytes, &text, 64) != nil else { return nil }
        } else if unsafe node.ai_family == AF_INET6 {
            var bytes = unsafe pointer.loadUnaligned(as: sockaddr_in6.self).sin6_addr
            guard unsafe inet_ntop(AF_INET6, &bytes, &text, 64) != nil else { return nil }
        } else {
            return nil
        }
        let length = text.firstIndex(of: 0) ?? text.endIndex
        return SocketAddress(
            host: String(decoding: text[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self), port: 0)
    }
}
