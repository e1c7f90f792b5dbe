internal import BotWire
internal import Timekeeping

/// Which calls a bot's server may place, and how often.
struct PlacementRules: Sendable {
    private let names: Set<[UInt8]>
    private let beginnings: [[UInt8]]
    private var rate: LogLimit

    init(_ calls: BotPlan.PlacedCalls) {
        let callees = calls.callees.map { Array($0.utf8) }
        // Compared by their bytes: what only looks the same is another name.
        names = Set(callees.filter { $0.last != UInt8(ascii: "*") })
        beginnings = callees.filter { $0.last == UInt8(ascii: "*") }.map { Array($0.dropLast()) }
        rate = LogLimit(burst: Double(calls.perMinute), perSecond: Double(calls.perMinute) / 60)
    }

    /// Judges a call. Each one counts, so that the list of callees cannot be tried out quickly.
    mutating func check(_ placed: BotRequest.PlacedCall, _ hosts: HostGuard, at now: Instant) throws(ServiceFault) {
        guard rate.admit(at: now) != nil else {
            throw ServiceFault(.tooMany, .twilio, "there are too many calls: try again in a minute")
        }
        guard allows(placed.to) else {
            throw ServiceFault(
                .forbidden, .twilio, twilioCode: 21_216,
                "the callee is none of behaviour.bot.requests.calls.callees")
        }
        if let callback = placed.statusCallback { try check("StatusCallback", 21_609, callback.address, hosts) }
        switch placed.instructions {
        case .ask(let webhook): try check("Url", 21_205, webhook.address, hosts)
        case .markup(let markup):
            for address in markup.verbs.flatMap(\.addresses) { try check("Twiml", 12_100, address, hosts) }
        }
    }

    private func allows(_ callee: String) -> Bool {
        let bytes = Array(callee.utf8)
        // What stands for `*` is the rest of a name: it leads to no other host, and names no other kind of address.
        return names.contains(bytes)
            || beginnings.contains { beginning in
                bytes.starts(with: beginning)
                    && !bytes.dropFirst(beginning.count).contains { "@:;?/%".utf8.contains($0) }
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
