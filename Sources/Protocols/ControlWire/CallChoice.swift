/// Finds the call that a request is about, among those there are; pure functions.
public enum CallChoice {
    /// The call to answer or to reject: one that rings.
    public static func ringing(
        _ number: UInt64?, among calls: [ControlCall]
    ) throws(ControlFault) -> ControlCall {
        try choose(number, among: calls, that: "rings") { $0.state == .ringing }
    }

    /// The call to hang up: of several, the one that talks and is not held.
    public static func toEnd(_ number: UInt64?, among calls: [ControlCall]) throws(ControlFault) -> ControlCall {
        let isTheOne: (ControlCall) -> Bool = { $0.state == .talking && !$0.isHeld }
        if number == nil, calls.count(where: isTheOne) == 1, let call = calls.first(where: isTheOne) { return call }
        return try choose(number, among: calls, that: "is to be ended") { $0.state != .ending }
    }

    /// The call to press keys in: one that talks; of several the one that is not held.
    public static func talking(_ number: UInt64?, among calls: [ControlCall]) throws(ControlFault) -> ControlCall {
        let isTheOne: (ControlCall) -> Bool = { $0.state == .talking && !$0.isHeld }
        if number == nil, calls.count(where: isTheOne) == 1, let call = calls.first(where: isTheOne) { return call }
        return try choose(number, among: calls, that: "is established") { $0.state == .talking }
    }

    private static func choose(
        _ number: UInt64?, among calls: [ControlCall], that words: String, _ suits: (ControlCall) -> Bool
    ) throws(ControlFault) -> ControlCall {
        if let number {
            guard let call = calls.first(where: { $0.call == number }) else {
                throw ControlFault(.noSuchCall, "there is no call \(number); status lists those there are")
            }
            guard suits(call) else {
                throw ControlFault(
                    .wrongState, "call \(number) is \(call.state.rawValue); this is for a call that \(words)")
            }
            return call
        }
        let suitable = calls.filter(suits)
        guard let only = suitable.first else { throw ControlFault(.noSuchCall, "there is no call that \(words)") }
        guard suitable.count == 1 else {
            let list = suitable.prefix(8).map { "\($0.call) (\($0.peer))" }.joined(separator: ", ")
            throw ControlFault(.severalCalls, "more than one call \(words): \(list); name one by its number")
        }
        return only
    }
}
