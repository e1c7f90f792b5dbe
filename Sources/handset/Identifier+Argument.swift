internal import ArgumentParser
internal import SignalWire

extension Identifier {
    /// A name from the command line.
    static func argument(_ text: String) throws -> Self {
        do throws(IdentifierFault) {
            return try Self(text)
        } catch {
            throw ValidationError("it \(error)")
        }
    }
}
