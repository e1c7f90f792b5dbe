internal import Files
internal import Glibc
package import NIOCore

/// A server cannot listen on its configured address.
///
/// Match on ``code``; print the error itself.
package struct ListenError: Error, Sendable, CustomStringConvertible {
    /// What kind of thing went wrong.
    package enum Code: Sendable {
        /// Another process listens on that port.
        case portInUse
        /// The address is not one of this machine's, or not one at all, or may not be used.
        case addressNotUsable
    }

    package let code: Code
    /// What was tried, what went wrong, and what to try.
    package let description: String

    /// Describes a failure.
    package init(code: Code, description: String) {
        self.code = code
        self.description = description
    }
}

/// Where a server listens.
package struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
    let host: String
    let port: Int

    /// - Parameters:
    ///   - host: A name or an address of this machine, an IPv6 address without brackets.
    ///   - port: 0 lets the system choose.
    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// The host and the port, an IPv6 address in brackets.
    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Resolves the host's address. May block on a name server.
    package func resolve() throws(ListenError) -> SocketAddress {
        do {
            return try SocketAddress.makeAddressResolvingHost(host, port: port)
        } catch {
            throw ListenError(
                code: .addressNotUsable,
                description: "cannot listen on \(self): no address has that name. "
                    + "Give an address of this machine, such as 127.0.0.1 or 0.0.0.0.")
        }
    }

    /// The address that the host is; nil if it is a name.
    package var literal: SocketAddress? { try? SocketAddress(ipAddress: host, port: port) }

    /// Finds out whether this process may listen at an address, without doing so. That the port is in use is no error here:
    /// the server may run already.
    package func tryToBind(_ address: SocketAddress) throws(ListenError) {
        let family = address.protocol == .inet6 ? AF_INET6 : AF_INET
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = Glibc.socket(family, type, 0)
        // A machine without IPv6, say; the server finds out for itself.
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var isOn: Int32 = 1
        // Reads one number, and one address of the length that is given.
        _ = unsafe setsockopt(
            descriptor, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<Int32>.size))
        let code = unsafe address.withSockAddr { pointer, length in
            unsafe Glibc.bind(descriptor, pointer, socklen_t(length)) == 0 ? 0 : errno
        }
        if code != 0, code != EADDRINUSE { throw explain(errno: code, "\(SystemError(code))") }
    }

    /// Whether only this machine reaches an address.
    package static func isLoopback(_ address: SocketAddress) -> Bool {
        guard let text = address.ipAddress else { return false }
        return text == "::1" || text.hasPrefix("127.")
    }

    /// Turns what the system said into an error that helps.
    package func explain(_ error: any Error) -> ListenError {
        explain(errno: (error as? IOError)?.errnoCode ?? 0, "\(error)")
    }

    private func explain(errno code: Int32, _ said: String) -> ListenError {
        switch code {
        case EADDRINUSE:
            ListenError(
                code: .portInUse,
                description:
                    "cannot listen on \(self): the port is in use. `ss -ltnp` names the process that holds it; "
                    + "stop that one, or choose another port (0 lets the system choose).")
        case EACCES:
            ListenError(
                code: .addressNotUsable,
                description: "cannot listen on \(self): not permitted. Ports below 1024 need CAP_NET_BIND_SERVICE.")
        case EADDRNOTAVAIL:
            ListenError(
                code: .addressNotUsable,
                description: "cannot listen on \(self): that is not an address of this machine (`ip address`).")
        default: ListenError(code: .addressNotUsable, description: "cannot listen on \(self): \(said).")
        }
    }
}
