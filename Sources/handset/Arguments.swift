internal import ArgumentParser
internal import ConfigReader
internal import SignalWire

/// The base URL of a signaling server on the command line.
enum ServerURL {
    /// Checks the form of an option's value.
    ///
    /// - Throws: What is wrong with it.
    static func argument(_ text: String) throws -> String {
        if let fault = URLForm.fault(of: text, schemes: ["http", "https"]) { throw ValidationError("it \(fault)") }
        return text
    }
}

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
