import CallControl
import Core
import SIP
@testable import SIPSignaling
import Testing

@Suite("An account and its registration")
struct AccountRegistrationTests {
    @Test("It opens a flow, meets the challenge and is connected when the registrar has its address")
    func connects() throws {
        var run = try AccountRun()
        let ticket = run.ask(.connect)
        #expect(run.account.connectionState == .connecting)
        try run.open()
        let first = try run.request(.register)
        #expect(first.headers["Contact"]?.contains("sip:alice@192.0.2.9:40001;transport=tcp") == true)
        try run.respond(401, to: first) {
            $0.append("WWW-Authenticate", "Digest realm=\"sip.test\", nonce=\"n\", algorithm=SHA-256, qop=\"auth\"")
        }
        let second = try run.request(.register)
        #expect(second.headers["Authorization"]?.contains("algorithm=SHA-256") == true)
        #expect(run.answer(ticket) == nil)
        try run.respond(200, to: second)
        #expect(run.answer(ticket) == .done)
        #expect(run.events == [.connected])
        #expect(run.account.session?.user == "alice@sip.test")
    }

    @Test("A wrong password ends it, and is not tried again")
    func wrongPassword() throws {
        var run = try AccountRun()
        let ticket = run.ask(.connect)
        try run.open()
        for nonce in ["n1", "n2"] {
            try run.respond(401, to: try run.request(.register)) {
                $0.append("WWW-Authenticate", "Digest realm=\"sip.test\", nonce=\"\(nonce)\"")
            }
        }
        guard case .failed(let error)? = run.answer(ticket) else { return #expect(Bool(false), "it has not failed") }
        #expect(error.code == .loginRefused)
        #expect(run.account.connectionState == .failed)
        let sent = run.requests(.register).count
        run.run(.seconds(600))
        #expect(run.requests(.register).count == sent)
        #expect(run.account.nextDeadline == nil)
    }

    @Test(
        "One refusal of a refresh ends nothing; an account that stays closed ends its calls, and the device is notified"
    )
    func closed() throws {
        var run = try AccountRun()
        try run.connect()
        for refusal in 1...RegistrationMachine.patience {
            let sent = run.requests(.register).count
            while run.requests(.register).count == sent, run.account.nextDeadline != nil { run.run(.seconds(1)) }
            #expect(run.account.connectionState != .failed, "after \(refusal - 1) refusals")
            if refusal == RegistrationMachine.patience {
                run.ask(.accept(try run.ring(), AccountRun.accept))
                let to = try #require(try run.response(200).headers["To"])
                try run.receive(try run.peerRequest("ACK", 1, to: to, branch: "ack"))
            }
            try run.respond(403, to: try run.request(.register))
        }
        let ended = run.events.compactMap { if case .callEnded(let news) = $0 { news.reason } else { nil } }
        #expect(ended == [.connectionLost])
        #expect(run.requests(.bye).count == 1)
        #expect(run.events.last == .disconnected)
    }

    @Test("A server that takes connections and does not serve is asked ever more rarely", arguments: [true, false])
    func acceptingServer(_ registers: Bool) throws {
        var run = try AccountRun { if !registers { $0.registrationSeconds = 0 } }
        run.ask(.connect)
        var opened = 0
        for _ in 0..<1_000 {
            if run.outputs.last == .resolve { run.feed(.resolved([try AccountRun.target(.tcp)])) }
            if let number = run.lastOpened, number > opened {
                opened = number
                try run.open(number, .tcp)
                // It ends each of them after a while.
                run.run(.seconds(12))
                run.feed(.failed(number))
            }
            run.run(.milliseconds(500))
        }
        // Waits of 15 s on average, once the ceiling is reached.
        #expect(opened < 40, "\(opened)")
    }

    @Test(
        "Calls answer challenges of the realms that the registrar asked with, and of no others",
        arguments: [
            ("asterisk", 2), ("evil", 1),
        ])
    func realms(_ realm: String, _ invites: Int) throws {
        var run = try AccountRun()
        run.ask(.connect)
        try run.open()
        try run.respond(401, to: try run.request(.register)) {
            $0.append("WWW-Authenticate", "Digest realm=\"asterisk\", nonce=\"n\"")
        }
        try run.respond(200, to: try run.request(.register))
        run.ask(.invite(AccountRun.options()))
        try run.respond(401, to: try run.request(.invite)) {
            $0.append("WWW-Authenticate", "Digest realm=\"\(realm)\", nonce=\"n\"")
        }
        #expect(run.requests(.invite).count == invites)
    }

    @Test(
        "A trial of the login asks for bindings: no Contact, no Expires, one challenge, nothing to remove, and no repetition"
    )
    func trial() throws {
        var run = try AccountRun {
            $0.isTrial = true
            $0.givesUpAtOnce = true
            $0.instance = "urn:uuid:1"
        }
        let ticket = run.ask(.connect)
        try run.open()
        try run.respond(401, to: try run.request(.register)) {
            $0.append("WWW-Authenticate", "Digest realm=\"asterisk\", nonce=\"n\"")
        }
        let request = try run.request(.register)
        #expect(request.headers["Authorization"] != nil)
        for name: SIPHeaderName in ["Contact", "Expires"] { #expect(request.headers[name] == nil) }
        // Another device of the account is registered.
        try run.respond(200, to: request) { $0.append("Contact", "<sip:alice@192.0.2.50>;expires=300") }
        #expect(run.answer(ticket) == .done)
        run.run(.seconds(4_000))
        let end = run.ask(.disconnect)
        #expect(run.answer(end) == .done && run.requests(.register).count == 2)
        #expect(!run.outputs.contains { if case .note(.registered) = $0 { true } else { false } })
    }

    @Test(
        "A trial of the login reports an unknown user and a wrong password by codes of their own",
        arguments: [(404, SignalingError.Code.unknownUser), (403, .loginRefused), (401, .loginRefused)])
    func trialRefused(status: Int, code: SignalingError.Code) throws {
        var run = try AccountRun {
            $0.isTrial = true
            $0.givesUpAtOnce = true
        }
        let ticket = run.ask(.connect)
        try run.open()
        for _ in 0..<2 where run.answer(ticket) == nil {
            try run.respond(status, to: try run.request(.register)) {
                if status == 401 { $0.append("WWW-Authenticate", "Digest realm=\"asterisk\", nonce=\"n\"") }
            }
        }
        guard case .failed(let error)? = run.answer(ticket) else { return #expect(Bool(false), "it has not failed") }
        #expect(error.code == code)
    }

    @Test("A device that does not wait gets the reason why there is no connection, a certificate by its own code")
    func reasons() throws {
        for (failure, code) in [
            (FlowFailure("nothing listens there"), SignalingError.Code.serverUnreachable),
            (FlowFailure("the certificate is for another name", isUntrusted: true), .certificateNotTrusted),
        ] {
            var run = try AccountRun { $0.givesUpAtOnce = true }
            let ticket = run.ask(.connect)
            try run.feed(.resolved([AccountRun.target(.tls)]))
            run.feed(.failed(1, failure))
            guard case .failed(let error)? = run.answer(ticket) else {
                return #expect(Bool(false), "it has not failed")
            }
            #expect(error.code == code && error.cause == failure.text)
        }
    }

    @Test("A registrar that is busy is asked again when it says, and not before")
    func retryAfter() throws {
        var run = try AccountRun()
        run.ask(.connect)
        try run.open()
        try run.respond(503, to: try run.request(.register)) { $0.append("Retry-After", "120") }
        run.run(.seconds(119))
        #expect(run.requests(.register).count == 1)
        run.run(.seconds(20))
        #expect(run.requests(.register).count == 2)
    }

    @Test(
        "A registrar that answers 503 with no time or a week to wait is asked as often as one that says nothing",
        arguments: [
            "0", "604800",
        ])
    func extremeRetryAfter(_ seconds: String) throws {
        var run = try AccountRun()
        run.ask(.connect)
        try run.open()
        for _ in 0..<3_600 {
            let sent = run.requests(.register).count
            try run.respond(503, to: try run.request(.register)) { $0.append("Retry-After", seconds) }
            while run.requests(.register).count == sent, run.now < .zero.advanced(by: .seconds(3_600)) {
                run.run(.seconds(1))
            }
            guard run.now < .zero.advanced(by: .seconds(3_600)) else { break }
        }
        // Waits of 4, 8 … 300 s, or of 300 to 331 s.
        #expect((10...32).contains(run.requests(.register).count), "\(run.requests(.register).count)")
    }

    // MARK: Why there is no server

    /// The reasons that the log has had.
    private func reasons(_ run: AccountRun) -> [String] {
        run.outputs.compactMap { if case .note(.unreachable(_, let failure)) = $0 { failure.text } else { nil } }
    }

    @Test("A silent server is said to be silent, and not to have no address")
    func silentReason() throws {
        var run = try AccountRun()
        run.ask(.connect)
        try run.open(.udp)
        run.run(.seconds(33))
        #expect(reasons(run) == ["UDP 192.0.2.1:5060 does not answer"])
        var named = try AccountRun()
        named.ask(.connect)
        named.feed(.resolved([]))
        #expect(reasons(named) == ["its name has no address"])
        // What another flow failed by before is not the reason.
        var later = try AccountRun()
        try later.connect(.udp)
        later.feed(.failed(1, FlowFailure("a datagram cannot be sent")))
        later.run(.seconds(1))
        try later.open(.udp)
        later.run(.seconds(33))
        #expect(reasons(later).first == "UDP 192.0.2.1:5060 does not answer")
    }

    @Test("A server that answers from another port is named with that port, to one who does not wait, too")
    func misplacedReason() throws {
        let other = try #require(SocketAddress(host: "192.0.2.1", port: 5_090))
        let text = "does not answer; a response came from 192.0.2.1:5090, and counts only from where the request went"
        var run = try AccountRun()
        run.ask(.connect)
        try run.open(.udp)
        run.feed(.misplaced(1, other))
        run.run(.seconds(33))
        #expect(reasons(run) == ["UDP 192.0.2.1:5060 " + text])
        var hasty = try AccountRun { $0.givesUpAtOnce = true }
        let ticket = hasty.ask(.connect)
        try hasty.open(.udp)
        hasty.feed(.misplaced(1, other))
        hasty.run(.seconds(33))
        guard case .failed(let error)? = hasty.answer(ticket) else { return #expect(Bool(false), "it has not failed") }
        #expect(error.code == .timedOut && error.cause == "the server " + text)
    }

    @Test("A longer interval is taken from a registrar that finds ours too brief")
    func tooBrief() throws {
        var run = try AccountRun { $0.registrationSeconds = 60 }
        run.ask(.connect)
        try run.open()
        try run.respond(423, to: try run.request(.register)) { $0.append("Min-Expires", "1800") }
        #expect(try run.request(.register).headers["Expires"] == "1800")
    }

    @Test("The next address is used if the first one does not answer")
    func failover() throws {
        var run = try AccountRun()
        run.ask(.connect)
        try run.feed(.resolved([AccountRun.target(.tcp), AccountRun.target(.tcp, "192.0.2.2")]))
        run.feed(.failed(1))
        #expect(try run.outputs.last == .open(2, AccountRun.target(.tcp, "192.0.2.2")))
        try run.open(2, .tcp)
        try run.respond(200, to: try run.request(.register))
        #expect(run.events == [.connected])
    }

    @Test("A server that takes connections and says nothing is given up for the next one")
    func silentServer() throws {
        var run = try AccountRun()
        run.ask(.connect)
        try run.feed(.resolved([AccountRun.target(.tcp), AccountRun.target(.tcp, "192.0.2.2")]))
        try run.open(1, .tcp)
        run.run(.seconds(33))
        #expect(run.outputs.contains(.close(1)))
        #expect(try run.outputs.contains(.open(2, AccountRun.target(.tcp, "192.0.2.2"))))
    }

    @Test("While nothing answers, waits grow and the server is looked up again each time")
    func backoff() throws {
        var run = try AccountRun()
        run.ask(.connect)
        var resolves = 0
        for _ in 0..<400 {
            while run.outputs.filter({ $0 == .resolve }).count > resolves {
                resolves += 1
                run.feed(.resolved([]))
            }
            run.run(.seconds(1))
        }
        #expect((10...80).contains(resolves), "\(resolves)")
    }

    @Test("A device that does not wait gets the first failure")
    func givesUp() throws {
        var run = try AccountRun { $0.givesUpAtOnce = true }
        let ticket = run.ask(.connect)
        run.feed(.resolved([]))
        guard case .failed(let error)? = run.answer(ticket) else { return #expect(Bool(false), "it has not failed") }
        #expect(error.code == .serverUnreachable)
        #expect(run.account.nextDeadline == nil)
    }

    @Test("A device that does not wait is notified if the connection ends before the registrar has answered")
    func givesUpUnserved() throws {
        var run = try AccountRun { $0.givesUpAtOnce = true }
        let ticket = run.ask(.connect)
        try run.open()
        let flow = try #require(run.flow)
        run.feed(.failed(flow.id, FlowFailure("the server wants a certificate")))
        guard case .failed(let error)? = run.answer(ticket) else { return #expect(Bool(false), "it has not failed") }
        #expect(error.code == .serverUnreachable && error.cause == "the server wants a certificate")
        #expect(run.account.nextDeadline == nil)
    }

    @Test("A connection whose pings are no longer answered is dead within one keepalive and never used again")
    func deadFlow() throws {
        var run = try AccountRun { $0.keepalive = .seconds(20) }
        try run.connect()
        let flow = try #require(run.flow)
        #expect(run.outputs.contains(.ping(flow, .lineEnds)))
        run.feed(.ponged(flow.id))
        run.run(.seconds(13))
        run.feed(.ponged(flow.id))
        #expect(run.events == [.connected])
        // The peer is gone.
        run.run(.seconds(20))
        #expect(run.events.last == .reconnecting)
        #expect(run.outputs.contains(.close(flow.id)))
        let before = run.outputs.count
        run.run(.seconds(1))
        let later = run.outputs[before...]
        #expect(later.contains(.resolve) || run.outputs.last == .resolve)
        try run.open()
        #expect(run.flow?.id != flow.id)
        try run.respond(200, to: try run.request(.register))
        #expect(run.events.last == .reconnected)
    }

    @Test("A server that never answers pings is not taken for dead")
    func noPongs() throws {
        var run = try AccountRun()
        try run.connect()
        run.run(.seconds(120))
        #expect(run.events == [.connected])
    }

    @Test("Disconnecting removes the binding, and waits a second for the answer at most")
    func disconnects() throws {
        var run = try AccountRun()
        try run.connect()
        let ticket = run.ask(.disconnect)
        let removal = try run.request(.register)
        #expect(removal.headers["Expires"] == "0")
        #expect(run.answer(ticket) == nil)
        run.run(.seconds(1))
        #expect(run.answer(ticket) == .done)
        #expect(run.events == [.connected, .disconnected])
        #expect(run.account.nextDeadline == nil || run.account.connectionState == .notConnected)
    }

    @Test("A call's BYE is answered before the account is closed")
    func quiet() throws {
        var run = try AccountRun()
        try run.connect()
        let invite = try run.ring()
        run.ask(.accept(invite, AccountRun.accept))
        let to = try #require(try run.response(200).headers["To"])
        try run.receive(try run.peerRequest("ACK", 1, to: to, branch: "ack"))
        let ticket = run.ask(.disconnect)
        try run.respond(200, to: try run.request(.register))
        #expect(run.answer(ticket) == nil)
        try run.respond(200, to: try run.request(.bye))
        #expect(run.answer(ticket) == .done)
    }

    @Test("Without registration it is connected when there is a flow")
    func unregistered() throws {
        var run = try AccountRun { $0.registrationSeconds = 0 }
        let ticket = run.ask(.connect)
        try run.open(.udp)
        #expect(run.answer(ticket) == .done)
        #expect(run.requests(.register).isEmpty)
    }
}
