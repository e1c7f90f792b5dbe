internal import BotWire
internal import CallWebhooks
internal import Core

/// How often a bot's server may place calls, and which hosts it may name. The device decides which callees it admits.
struct PlacementRules: Sendable {
    private var rate: LogLimit

    init(_ calls: BotPlan.PlacedCalls) {
        rate = LogLimit(burst: calls.perMinute, perSecond: Double(calls.perMinute) / 60)
    }

    /// Judges a call. Each one counts, so that the list of callees cannot be tried out quickly.
    mutating func check(_ placed: BotRequest.PlacedCall, _ hosts: HostGuard, at now: Instant) throws(ServiceFault) {
        guard rate.admit(at: now) != nil else {
            throw ServiceFault(.tooMany, .twilio, "there are too many calls: try again in a minute")
        }
        if let callback = placed.statusCallback { try check("StatusCallback", 21_609, callback.address, hosts) }
        switch placed.instructions {
        case .ask(let webhook): try check("Url", 21_205, webhook.address, hosts)
        case .markup(let markup):
            for address in markup.verbs.flatMap(\.addresses) { try check("Twiml", 12_100, address, hosts) }
        }
    }

    private func check(
        _ field: String, _ code: Int64, _ address: WebAddress, _ hosts: HostGuard
    ) throws(ServiceFault) {
        do throws(HostGuard.Refusal) {
            try hosts.check(address.host)
        } catch {
            throw ServiceFault(
                .badRequest, .twilio, twilioCode: code,
                "\(field) names a host that is neither that of behaviour.bot.url nor one of allowed_hosts")
        }
    }
}

extension CallMarkup.Verb {
    /// Where it leads.
    fileprivate var addresses: [WebAddress] {
        switch self {
        case .stream(let stream):
            [stream.address] + [stream.action?.address, stream.statusCallback?.address].compactMap { $0 }
        case .redirect(let webhook): [webhook.address]
        case .transfer(let transfer): [transfer.action?.address].compactMap { $0 }
        case .pause, .hangUp, .reject: []
        }
    }
}

/// Calls that a bot's server has asked for, until the device has made them.
final class Placements {
    typealias Reply = (ServiceAnswer) -> Void

    private var waiting: [UInt64: (placed: BotRequest.PlacedCall, reply: Reply)] = [:]
    private var number: UInt64 = 0

    /// - Parameter reply: Answers the request, which is under way meanwhile.
    func add(_ placed: BotRequest.PlacedCall, _ reply: @escaping Reply) -> BotPlacement {
        number += 1
        waiting[number] = (placed, reply)
        return BotPlacement(number: number, to: placed.to, timeoutSeconds: placed.timeoutSeconds)
    }

    func take(_ number: UInt64) -> (placed: BotRequest.PlacedCall, reply: Reply)? {
        waiting.removeValue(forKey: number)
    }
}

extension BotRequest.Order {
    /// The targets of transfers that the order itself names.
    var transferTargets: [String] {
        switch self {
        case .transfer(_, let transfer): [transfer.target]
        case .redirect(_, .markup(let markup)): markup.transferTargets
        case .place(let placed):
            if case .markup(let markup) = placed.instructions { markup.transferTargets } else { [] }
        case .redirect(_, .ask), .end: []
        }
    }
}

extension CallMarkup {
    fileprivate var transferTargets: [String] {
        verbs.compactMap { if case .transfer(let transfer) = $0 { transfer.target } else { nil } }
    }
}
