internal import CallControl

extension Identifier {
    /// A name from the configuration.
    ///
    /// - Throws: `invalidRequest` for a name that the exchange would refuse.
    init(_ text: String, of member: String, doing activity: String) throws(SignalingError) {
        do throws(IdentifierFault) {
            try self.init(text)
        } catch {
            throw SignalingError(
                .invalidRequest, activity: activity, cause: "\(member) \(error)",
                advice: "Names have 1 to \(IdentifierLimits.bytes) bytes, in Unicode Normalization Form C.")
        }
    }

    /// A name from the configuration, if it has one.
    static func of(_ text: String?, _ member: String, doing activity: String) throws(SignalingError) -> Self? {
        guard let text else { return nil }
        return try Self(text, of: member, doing: activity)
    }
}
