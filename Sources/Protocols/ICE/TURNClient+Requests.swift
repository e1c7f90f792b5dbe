internal import Core

/// Requests to the server, their repeats and their answers.
extension TURNClient {
    /// The request to make instead if an allocation of both families is refused with this error.
    private static let remedies: [STUNErrorCode: Families] = [
        .addressFamilyNotSupported: .ipv6, .badRequest: .unsaid, .unknownAttribute: .unsaid,
    ]

    private static let firstInterval = Duration.milliseconds(250)
    private static let allocateTimeout = Duration.seconds(8)
    private static let requestTimeout = Duration.seconds(10)
    private static let releaseTimeout = Duration.seconds(2)
    /// With more challenges than this to one request, the server is considered broken.
    private static let maximumChallenges = 4

    mutating func request(_ purpose: Request.Purpose, at now: Instant, into outbox: inout [TURNOutput]) {
        let timeout: Duration =
            switch purpose {
            case .allocate: Self.allocateTimeout
            case .refresh, .permission, .channel: Self.requestTimeout
            case .release: Self.releaseTimeout
            }
        let id = TransactionID(using: &generator)
        let end = now.advanced(by: timeout)
        let request = Request(
            purpose: purpose, id: id, bytes: encode(purpose, id), credentials: credentials,
            nextSend: isStream ? end : now.advanced(by: Self.firstInterval), interval: Self.firstInterval, end: end)
        requests.append(request)
        outbox.append(.transmit(request.bytes))
    }

    private func encode(_ purpose: Request.Purpose, _ id: TransactionID) -> [UInt8] {
        var builder: STUNBuilder
        switch purpose {
        case .allocate:
            builder = STUNBuilder(.request, .allocate, id)
            builder.append(.requestedTransport, [17, 0, 0, 0])  // UDP, by its IP protocol number.
            // A family is written as 1 or 2, with three bytes of padding (RFC 8656 §18.6). A server that does not know
            // the additional one ignores it, and one that does not know the requested one refuses.
            switch families {
            case .both: builder.append(.additionalAddressFamily, [2, 0, 0, 0])
            case .ipv6: builder.append(.requestedAddressFamily, [2, 0, 0, 0])
            case .unsaid: break
            }
        case .refresh, .release:
            builder = STUNBuilder(.request, .refresh, id)
            builder.append(.lifetime, (purpose == .release ? 0 : 600) as UInt32)
        case .permission(let peer):
            builder = STUNBuilder(.request, .createPermission, id)
            builder.append(.xorPeerAddress, peer)
        case .channel(let peer, let number):
            builder = STUNBuilder(.request, .channelBind, id)
            builder.append(.channelNumber, UInt32(number) << 16)
            builder.append(.xorPeerAddress, peer)
        }
        guard let credentials else { return builder.finish() }
        credentials.append(to: &builder)
        return builder.finish(key: credentials.key, integrity: credentials.integrity)
    }

    mutating func repeatRequests(at now: Instant, into outbox: inout [TURNOutput]) {
        let overdue = requests.filter { $0.end <= now }
        requests.removeAll { $0.end <= now }
        for index in requests.indices where requests[index].nextSend <= now {
            requests[index].interval = min(requests[index].interval * 2, .seconds(2))
            requests[index].nextSend = now.advanced(by: requests[index].interval)
            outbox.append(.transmit(requests[index].bytes))
        }
        for request in overdue { giveUp(request, at: now, into: &outbox) }
    }

    private mutating func giveUp(_ request: Request, at now: Instant, into outbox: inout [TURNOutput]) {
        switch request.purpose {
        case .allocate: fail(TURNFailure(.timeout), into: &outbox)
        // The allocation still lasts for a while; the server may come back.
        case .refresh: refreshAt = now.advanced(by: .seconds(5))
        case .release: finish(into: &outbox)
        case .permission(let peer): refuse(peer, into: &outbox)
        case .channel(let peer, _): dropChannel(peer)
        }
    }

    private mutating func finish(into outbox: inout [TURNOutput]) {
        state = .ended
        requests = []
        outbox.append(.ended)
    }

    private mutating func refuse(_ peer: SocketAddress, into outbox: inout [TURNOutput]) {
        let host = peer.withPort(0)
        permissions[host] = nil
        outbox.append(.refused(host))
    }

    /// A refused channel keeps its number, because no other peer may use the number until five minutes after the
    /// binding's ten minutes (RFC 8656 §12). Data is sent without the channel.
    private mutating func dropChannel(_ peer: SocketAddress) {
        for index in channels.indices where channels[index].peer == peer { channels[index].refreshAt = nil }
    }

    // MARK: Answers

    mutating func takeResponse(_ message: STUNMessage, at now: Instant, into outbox: inout [TURNOutput]) {
        guard let index = requests.firstIndex(where: { $0.id == message.transactionID }) else {
            dropped += 1
            return
        }
        let request = requests[index]
        let verdict = request.credentials.map { message.integrity($0.key) }
        // Success must be protected if the request was; refusals often are not, and only report a failure.
        guard verdict != .invalid, message.messageClass == .failure || verdict == .valid || verdict == nil else {
            dropped += 1
            return
        }
        requests.remove(at: index)
        if message.messageClass == .success {
            granted(request, message, at: now, into: &outbox)
        } else {
            let (code, text) = message.failure ?? (.badRequest, "")
            refused(request, message, code, text, at: now, into: &outbox)
        }
    }

    private mutating func granted(
        _ request: Request, _ message: STUNMessage, at now: Instant, into outbox: inout [TURNOutput]
    ) {
        switch request.purpose {
        case .allocate:
            guard takeRelays(of: message) else {
                fail(TURNFailure(.notTURN), into: &outbox)
                return
            }
            state = .allocated
            planRefresh(message, at: now)
            outbox += relays.map { .allocated(relay: $0) }
        case .refresh: planRefresh(message, at: now)
        case .release: finish(into: &outbox)
        case .permission(let peer):
            permissions[peer.withPort(0)] = Permission(refreshAt: now.advanced(by: Self.refreshInterval))
            outbox.append(.permitted(peer.withPort(0)))
        case .channel(let peer, let number):
            guard let index = channels.firstIndex(where: { $0.peer == peer }) else { return }
            let isNew = channels[index].refreshAt == nil
            channels[index].refreshAt = now.advanced(by: Self.refreshInterval)
            if isNew { outbox.append(.channelBound(peer, channel: number)) }
        }
    }

    /// A minute before the end, or at half of a short life.
    private mutating func planRefresh(_ message: STUNMessage, at now: Instant) {
        let seconds = Int64(min(max(message.uint32(.lifetime) ?? 600, 10), 3_600))
        refreshAt = now.advanced(by: .seconds(max(seconds - 60, seconds / 2)))
    }

    private mutating func refused(
        _ request: Request, _ message: STUNMessage, _ code: STUNErrorCode, _ text: String, at now: Instant,
        into outbox: inout [TURNOutput]
    ) {
        if code == .unauthenticated || code == .staleNonce {
            challenged(request, message, code, text, at: now, into: &outbox)
            return
        }
        switch request.purpose {
        case .allocate:
            if code == .tryAlternate, let other = message.address(.alternateServer) {
                state = .ended
                outbox.append(.redirected(other))
                return
            }
            // A server without IPv4 is asked for IPv6; a server that fails on the attribute is asked without it.
            if families == .both, let other = Self.remedies[code] {
                families = other
                self.request(.allocate, at: now, into: &outbox)
                return
            }
            let reason: TURNFailure.Reason =
                switch code {
                case .allocationMismatch: .connectionInUse
                case .wrongCredentials: .unauthorized
                default: .refused
                }
            fail(TURNFailure(reason, code: code.rawValue, serverText: text), into: &outbox)
        case .refresh:
            guard code == .allocationMismatch || code == .wrongCredentials else {
                refreshAt = now.advanced(by: .seconds(5))
                return
            }
            fail(TURNFailure(.allocationLost, code: code.rawValue, serverText: text), into: &outbox)
        case .release: finish(into: &outbox)
        case .permission(let peer): refuse(peer, into: &outbox)
        case .channel(let peer, _): dropChannel(peer)
        }
    }

    /// Sends a request again with what the server asks for (RFC 8489 §9.2.5).
    private mutating func challenged(
        _ request: Request, _ message: STUNMessage, _ code: STUNErrorCode, _ text: String, at now: Instant,
        into outbox: inout [TURNOutput]
    ) {
        // A 401 to a request with this very realm and nonce means that name or password are wrong.
        let isWrong =
            code == .unauthenticated && request.credentials != nil
            && request.credentials?.nonce == message.text(.nonce)
        guard !isWrong, request.challenges < Self.maximumChallenges,
            let answer = TURNCredentials(
                challenge: message, username: username, password: password, realm: request.credentials?.realm)
        else {
            if request.purpose == .release {
                finish(into: &outbox)
            } else {
                fail(TURNFailure(.unauthorized, code: code.rawValue, serverText: text), into: &outbox)
            }
            return
        }
        // A 401 with another nonce may mean either; a second one decides.
        credentials = answer
        var again = request
        again.id = TransactionID(using: &generator)
        again.bytes = encode(request.purpose, again.id)
        again.credentials = answer
        again.challenges += code == .unauthenticated && request.credentials != nil ? 2 : 1
        again.interval = Self.firstInterval
        again.nextSend = isStream ? again.end : now.advanced(by: Self.firstInterval)
        requests.append(again)
        outbox.append(.transmit(again.bytes))
    }
}
