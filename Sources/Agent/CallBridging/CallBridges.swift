// CallBridging: what spans two calls of a device: which are joined, and which calls are placed to join one. Pure.

public import CallParticipation

/// Which calls of a device are joined in pairs, and what becomes of one when the other ends.
///
/// The owner of bridges beside the calls. It has no call and no sound: its driver reports what happens to calls, and carries out what it
/// orders.
public struct CallBridges: Sendable {
    /// What becomes of a call when the other one ends.
    public enum Sequel: Equatable, Sendable {
        /// It is hung up.
        case hangUp
        /// It does what it did before: its program or its source is heard again.
        case goBack
    }

    /// What happened.
    public enum Input: Equatable, Sendable {
        /// Two calls are to be joined, whose media runs. Nothing happens if one of them is joined already.
        case join(CallID, CallID, then: Sequel, otherThen: Sequel)
        /// The call is to be parted from the other one: both go back.
        case part(CallID)
        /// The peer of the call neither sends nor takes sound, or does again.
        case held(CallID, Bool)
        /// A call is about to take the place of another one (RFC 3891), whose end follows.
        case replaced(CallID, by: CallID)
        /// The media of the call runs.
        case established(CallID)
        /// The call has ended.
        case ended(CallID)
        /// The peer of the call has pressed a key.
        case key(Character, of: CallID)
    }

    /// What is to be done.
    public enum Output: Equatable, Sendable {
        /// Have each hear the other in place of its program and its source.
        case connect(CallID, CallID)
        /// Have the call hear its program, or its source, again.
        case disconnect(CallID)
        /// Have the call hear music until that is stopped: the other one is on hold.
        case playMusic(CallID)
        case stopMusic(CallID)
        /// Hang up.
        case hangUp(CallID)
        /// Press a telephone key that the peer of the other call has pressed.
        case press(Character, on: CallID)
    }

    private struct End {
        var partner: CallID
        /// What becomes of this call when the partner ends.
        let sequel: Sequel
        /// The call's peer is on hold, so that the partner hears music.
        var isHeld = false
        /// The call has taken the place of another one, and its media does not run yet.
        var isPending = false
    }

    private var ends: [CallID: End] = [:]
    /// Calls whose peers are on hold, joined or not.
    private var held: Set<CallID> = []

    /// Joins none.
    public init() {}

    /// The call that a call is joined to; nil if there is none.
    public func partner(of call: CallID) -> CallID? { ends[call]?.partner }

    /// Whether the call that a call is joined to is on hold, so that it hears music.
    public func isPartnerHeld(of call: CallID) -> Bool {
        guard let partner = ends[call]?.partner else { return false }
        return ends[partner]?.isHeld == true
    }

    /// Takes what happened.
    public mutating func handle(_ input: Input, into outbox: inout [Output]) {
        switch input {
        case .join(let one, let other, let sequel, let otherSequel):
            guard one != other, ends[one] == nil, ends[other] == nil else { return }
            ends[one] = End(partner: other, sequel: sequel)
            ends[other] = End(partner: one, sequel: otherSequel)
            outbox.append(.connect(one, other))
            for call in [one, other] where held.contains(call) { setHeld(true, call, into: &outbox) }
        case .part(let call):
            guard let partner = remove(call, into: &outbox)?.partner else { return }
            outbox += [.disconnect(call), .disconnect(partner)]
        case .held(let call, let isHeld):
            if isHeld { held.insert(call) } else { held.remove(call) }
            setHeld(isHeld, call, into: &outbox)
        case .replaced(let former, let call):
            guard ends[call] == nil, let end = ends.removeValue(forKey: former) else { return }
            // Whether the new one is on hold is reported of that one.
            if end.isHeld { outbox.append(.stopMusic(end.partner)) }
            // It has nothing to go back to: what took part in the former one has ended with it.
            ends[call] = End(partner: end.partner, sequel: .hangUp, isPending: true)
            ends[end.partner]?.partner = call
        case .established(let call):
            guard let end = ends[call], end.isPending else { return }
            ends[call]?.isPending = false
            outbox.append(.connect(call, end.partner))
        case .ended(let call):
            held.remove(call)
            guard let (partner, sequel) = remove(call, into: &outbox) else { return }
            outbox.append(sequel == .hangUp ? .hangUp(partner) : .disconnect(partner))
        case .key(let key, let call):
            if let partner = ends[call]?.partner { outbox.append(.press(key, on: partner)) }
        }
    }

    private mutating func setHeld(_ isHeld: Bool, _ call: CallID, into outbox: inout [Output]) {
        guard let end = ends[call], end.isHeld != isHeld else { return }
        ends[call]?.isHeld = isHeld
        outbox.append(isHeld ? .playMusic(end.partner) : .stopMusic(end.partner))
    }

    /// - Returns: The other call, and what becomes of it.
    private mutating func remove(_ call: CallID, into outbox: inout [Output]) -> (partner: CallID, sequel: Sequel)? {
        guard let end = ends.removeValue(forKey: call), let other = ends.removeValue(forKey: end.partner) else {
            return nil
        }
        if end.isHeld { outbox.append(.stopMusic(end.partner)) }
        if other.isHeld { outbox.append(.stopMusic(call)) }
        return (end.partner, other.sequel)
    }
}
