/// A party of a call cannot take the other's new offer: what was agreed before stays, and nothing waits for an answer any more.
public enum OfferRefusal {
    /// The type of the call signal that says so; its `data` is an empty object.
    public static let signal = "offerRefused"
}
