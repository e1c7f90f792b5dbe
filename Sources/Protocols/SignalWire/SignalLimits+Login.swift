/// How long what comes from clients may be that have not logged in: the exchange reads no further.
extension SignalLimits {
    /// Bytes in the body of a REST request without a good `Bearer` token.
    public static let loginBytes = 8_192
    /// Bytes in a WebSocket message before `session.start` has been answered: a signed token of 8 KiB, a push token of
    /// 4 KiB and a device with all its capabilities fit.
    public static let sessionStartBytes = 24_576
}
