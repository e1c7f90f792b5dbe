internal import ExchangeServer
internal import Files

/// Finds out as which user an exchange runs, or last ran.
enum ExchangeUser {
    /// The user who listens at the exchange's port; without any, the owner of what an exchange has made. Nil if nothing shows it.
    static func find(_ exchange: ExchangeConfiguration) -> UInt32? {
        for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
            let bytes = try? PrivateFile.read(table, maximumBytes: 1 << 24)
            if let text = bytes ?? nil,
                let user = listener(at: exchange.port, in: String(decoding: text, as: UTF8.self))
            {
                return user
            }
        }
        return [exchange.databasePath, exchange.ownAuthority?.rootPath].compactMap(\.self)
            .lazy.compactMap { FolderRights.owner(of: $0) }.first
    }

    /// Who listens at a port, by the kernel's table of sockets (proc_pid_net(5)).
    static func listener(at port: Int, in table: String) -> UInt32? {
        for line in table.split(separator: "\n").dropFirst() {
            let fields = line.split(separator: " ")
            // sl, local address, remote address, state (0A: listens), queues, timer, retransmissions, user
            guard fields.count > 7, fields[3] == "0A", let digits = fields[1].split(separator: ":").last,
                Int(digits, radix: 16) == port, let user = UInt32(fields[7])
            else { continue }
            return user
        }
        return nil
    }
}
