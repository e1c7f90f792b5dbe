internal import CallAgent
internal import ControlWire
internal import Realtime

/// The accounts that a request may be about, at the moment of the request.
struct ControlTargets: Sendable {
    /// An account with a device.
    struct Target: Sendable {
        let name: String?
        let device: Device
        let configuration: DeviceConfiguration
    }

    let members: [AccountMember]
    /// The account that the request names.
    let wanted: String?

    /// - Throws: ``ControlFault`` if there is no account of the wanted name.
    init(_ members: [AccountMember], wanted: String?) throws(ControlFault) {
        self.members = members
        self.wanted = wanted
        guard let wanted, !members.contains(where: { $0.name == wanted }) else { return }
        let names = Self.list(members)
        throw ControlFault(
            .noSuchAccount,
            names.isEmpty
                ? "the device has one account, without a name" : "there is no account \(wanted); there are \(names)")
    }

    /// The accounts that are meant: the one that is named, or all.
    var meant: [AccountMember] { wanted.map { wanted in members.filter { $0.name == wanted } } ?? members }

    /// Those of them that have a device now.
    var targets: [Target] {
        meant.compactMap { member in
            member.device.map { Target(name: member.name, device: $0, configuration: member.configuration) }
        }
    }

    /// The one account that is meant.
    func only() throws(ControlFault) -> Target {
        let meant = meant
        guard meant.count == 1, let member = meant.first else {
            throw ControlFault(.severalAccounts, "say for which account: \(Self.list(meant))")
        }
        guard let target = targets.first else {
            let name = member.name.map { "account \($0)" } ?? "the account"
            let why = member.failure.map { ", after this failure: \($0)" } ?? ""
            throw ControlFault(.notConnected, "\(name) is not logged in, and is tried again\(why)")
        }
        return target
    }

    /// The calls of the accounts that are meant, the oldest first.
    func calls() async -> [(call: ControlCall, id: CallID, target: Target)] {
        var all: [(call: ControlCall, id: CallID, target: Target)] = []
        for target in targets {
            let calls = await target.device.status.calls
            let now = MonotonicClock.now
            all += calls.map { (ControlCall($0, of: target.name, at: now), $0.id, target) }
        }
        return all.sorted { $0.id.number < $1.id.number }
    }

    /// The same calls with the figures of their sound, which their media threads give at their next frame: all are asked at once.
    static func withMedia(
        _ calls: some Collection<(call: ControlCall, id: CallID, target: Target)>
    ) async -> [ControlCall] {
        await withTaskGroup(of: (Int, ControlCallMedia?).self) { group in
            var all = calls.map(\.call)
            for (index, call) in calls.enumerated() {
                let (device, id) = (call.target.device, call.id)
                group.addTask { (index, await device.mediaReport(on: id).map(ControlCallMedia.init)) }
            }
            for await (index, media) in group { all[index].media = media }
            return all
        }
    }

    private static func list(_ members: [AccountMember]) -> String {
        members.compactMap(\.name).joined(separator: ", ")
    }
}
