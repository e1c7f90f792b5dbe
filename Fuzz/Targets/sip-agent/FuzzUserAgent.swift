import FuzzInput
import Identifiers
import SIP
import Core

/// Called by libFuzzer with each input: a message that goes to a user agent.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzUserAgent(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    fuzz(start, count) { bytes in
        if let message = try? SIPMessage(parsing: bytes) { serve(message) }
    }
}

/// A user agent takes any message, accepts what rings, and ends in time.
private func serve(_ message: SIPMessage) {
    guard let host = SIPHost("192.0.2.1"), let uri = AnyURI("sip:fuzz@192.0.2.1") else { broken("a host and a URI") }
    let flow = SIPFlow(id: 1, transport: .udp, localHost: host, localPort: nil)
    var agent = UserAgent(
        UserAgentConfiguration(address: NameAddress(uri)), contact: uri, key: [UInt8](repeating: 1, count: 16))
    var outbox: [UserAgentOutput] = []
    var now = Instant.zero
    guard let everybody = CalleePattern("*") else { broken("a pattern") }
    let mailbox = SIPMailbox(summary: MessageSummary(new: 1, old: 0), subscribers: CalleeList([everybody]))
    agent.handle(.mailbox(mailbox), at: now, into: &outbox)
    agent.handle(.received(message, flow), at: now, into: &outbox)
    for case .subscription(let request, let transaction, let flow) in outbox {
        agent.handle(.subscription(request, transaction, flow, subscriber: Callee("bob")), at: now, into: &outbox)
    }
    for case .call(let call, .incoming) in outbox {
        agent.handle(.command(call, .ring(answer: [1])), at: now, into: &outbox)
        agent.handle(.command(call, .accept([2])), at: now, into: &outbox)
    }
    agent.handle(.received(message, flow), at: now, into: &outbox)
    var turns = 0
    while let deadline = agent.nextDeadline {
        now = max(now, deadline)
        agent.handle(.timerFired, at: now, into: &outbox)
        turns += 1
        require(turns < 1_000, "a message keeps nobody busy for ever")
    }
    require(agent.callsInMemory == 0 && agent.transactionsInMemory == 0, "nothing is left of a message")
    require(agent.subscriptionsInMemory == 0, "a subscription ends after its time")
    for case .transmit(let sent, _) in outbox {
        require(!sent.bytes.isEmpty, "what is sent can be written")
    }
}
