public import JSON

/// A caller's request that the callee makes the offer (RFC 3261 §13.2.1), as servers that connect two telephones, and
/// some PBXs, send it in each of their calls.
///
/// An invite's data has it in place of an offer. The accept's data has an `offer` then, and the caller's answer comes as a signal.
public enum OfferWish {
    /// What an invite's data has as its `offer`.
    public static let description: JSONValue = ["type": "wanted"]

    /// Whether an invite's `offer` requests one.
    public static func isMade(by offer: JSONValue) -> Bool { offer["type"]?.string == "wanted" }
}
