internal import CallControl

/// A call's part in a transfer (contract CALL-8).
enum TransferState {
    case none
    /// We have asked the peer to call another user in our place.
    case asked(UserID)
    /// The peer has asked us, and this call is to take the place of the one that has this state.
    case placing(CallID, UserID)
    /// This call replaces that one, because its peer asked for it. That one ends when this one is answered.
    case inPlaceOf(CallID)

    /// Whether another transfer has to wait.
    var isUnderWay: Bool {
        switch self {
        case .none, .inPlaceOf: false
        case .asked, .placing: true
        }
    }
}
