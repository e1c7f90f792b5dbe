internal import ExchangeCore
internal import GRDB
import SignalWire

extension Row {
    /// The name in a column.
    func identifier<Kind>(_ column: String) throws -> Identifier<Kind> {
        try Identifier(try decode(String.self, forColumn: column))
    }

    /// The name in a column that may be null.
    func optionalIdentifier<Kind>(_ column: String) throws -> Identifier<Kind>? {
        try decode(String?.self, forColumn: column).map { text throws(IdentifierFault) in try Identifier(text) }
    }

    /// Who is in the columns `user`, `guest` and `room`.
    func principal() throws -> Principal {
        let guest = try decode(String.self, forColumn: "guest")
        let room = try decode(String.self, forColumn: "room")
        let kind: Principal.Kind =
            !guest.isEmpty ? .guest(login: guest) : room.isEmpty ? .account : .visitor(try Identifier(room))
        return Principal(user: try identifier("user"), kind: kind)
    }
}

extension Principal {
    /// The value of the column `guest`: the login's digest, or an empty text.
    var guestColumn: String { if case .guest(let login) = kind { login } else { "" } }
    /// The value of the column `room`: the one room of a visitor, or an empty text.
    var roomColumn: String { if case .visitor(let room) = kind { room.text } else { "" } }
}
