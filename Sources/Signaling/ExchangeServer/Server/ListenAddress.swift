internal import ConfigReader
internal import Glibc
import NIOCore

/// Where to listen, and whether that is allowed.
enum ListenAddress {
    /// Resolves the configured host, and holds plain text to loopback unless more was allowed by name.
    ///
    /// - Parameter isEncrypted: Whether there is a certificate; nil for what the configuration has.
    static func resolve(
        _ configuration: ExchangeConfiguration, isEncrypted: Bool? = nil
    ) throws(ExchangeError) -> SocketAddress {
        let address: SocketAddress
        do {
            address = try SocketAddress.makeAddressResolvingHost(configuration.host, port: configuration.port)
        } catch {
            throw ExchangeError(
                .addressNotUsable,
                "cannot listen on \(configuration.listenPlace): no address has that name. "
                    + "Give an address of this machine, such as 127.0.0.1 or 0.0.0.0.")
        }
        try refusePlainText(
            configuration, at: address, isEncrypted: isEncrypted ?? (configuration.certificate != nil))
        return address
    }

    /// The address that `host` is; nil if it is a name.
    static func address(_ host: String, port: Int) -> SocketAddress? {
        try? SocketAddress(ipAddress: host, port: port)
    }

    /// Holds plain text to loopback unless more was allowed by name.
    static func refusePlainText(
        _ configuration: ExchangeConfiguration, at address: SocketAddress, isEncrypted: Bool
    ) throws(ExchangeError) {
        guard isEncrypted || configuration.plainText == .allowed || isLoopback(address) else {
            throw ExchangeError(
                .plainTextRefused,
                "will not listen on \(configuration.listenPlace) without TLS: passwords and keys "
                    + "would cross the network in the clear. Give a certificate and its key, listen on 127.0.0.1, "
                    + "or set plain_text: allowed if something else protects the network.")
        }
    }

    /// Finds out whether this process may listen at an address, without doing so. That the port is in use is no fault of the
    /// configuration: the exchange may run already.
    static func tryToBind(_ address: SocketAddress, _ configuration: ExchangeConfiguration) throws(ExchangeError) {
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
        if code != 0, code != EADDRINUSE { throw explain(errno: code, "\(errnoText(code))", configuration) }
    }

    private static func errnoText(_ code: Int32) -> String {
        unsafe strerror(code).map { unsafe String(cString: $0) } ?? "error \(code)"
    }

    private static func isLoopback(_ address: SocketAddress) -> Bool {
        guard let text = address.ipAddress else { return false }
        return text == "::1" || text.hasPrefix("127.")
    }

    /// Turns what the system said into an error that helps.
    static func explain(_ error: any Error, _ configuration: ExchangeConfiguration) -> ExchangeError {
        explain(errno: (error as? IOError)?.errnoCode ?? 0, "\(error)", configuration)
    }

    private static func explain(
        errno code: Int32, _ said: String, _ configuration: ExchangeConfiguration
    ) -> ExchangeError {
        let place = configuration.listenPlace
        switch code {
        case EADDRINUSE:
            return ExchangeError(
                .portInUse,
                "cannot listen on \(place): the port is in use. `ss -ltnp` names the process that holds it; "
                    + "stop that one, or choose another port (0 lets the system choose).")
        case EACCES:
            return ExchangeError(
                .addressNotUsable,
                "cannot listen on \(place): not permitted. Ports below 1024 need CAP_NET_BIND_SERVICE.")
        case EADDRNOTAVAIL:
            return ExchangeError(
                .addressNotUsable, "cannot listen on \(place): that is no address of this machine (`ip address`).")
        default:
            return ExchangeError(.addressNotUsable, "cannot listen on \(place): \(said).")
        }
    }
}

extension ExchangeConfiguration {
    /// Where to listen, as `listen` has it.
    fileprivate var listenPlace: String { ConfigEndpoint(host: host, port: port).description }
}
