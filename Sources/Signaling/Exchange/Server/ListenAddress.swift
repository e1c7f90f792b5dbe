internal import Glibc
import NIOCore

/// Where to listen, and whether that is allowed.
enum ListenAddress {
    /// Resolves the configured host, and holds plain text to loopback unless more was allowed by name.
    static func resolve(_ configuration: ExchangeConfiguration) throws(ExchangeError) -> SocketAddress {
        let address: SocketAddress
        do {
            address = try SocketAddress.makeAddressResolvingHost(configuration.host, port: configuration.port)
        } catch {
            throw ExchangeError(
                .addressNotUsable,
                "cannot listen on \(configuration.host):\(configuration.port): no address has that name. "
                    + "Give an address of this machine, such as 127.0.0.1 or 0.0.0.0.")
        }
        guard configuration.certificate != nil || configuration.plainText == .allowed || isLoopback(address) else {
            throw ExchangeError(
                .plainTextRefused,
                "will not listen on \(configuration.host):\(configuration.port) without TLS: passwords and keys "
                    + "would cross the network in the clear. Give a certificate and its key, listen on 127.0.0.1, "
                    + "or set plain_text: allowed if something else protects the network.")
        }
        return address
    }

    private static func isLoopback(_ address: SocketAddress) -> Bool {
        guard let text = address.ipAddress else { return false }
        return text == "::1" || text.hasPrefix("127.")
    }

    /// Turns what the system said into an error that helps.
    static func explain(_ error: any Error, _ configuration: ExchangeConfiguration) -> ExchangeError {
        let place = "\(configuration.host):\(configuration.port)"
        guard let error = error as? IOError else {
            return ExchangeError(.addressNotUsable, "cannot listen on \(place): \(error).")
        }
        switch error.errnoCode {
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
            return ExchangeError(.addressNotUsable, "cannot listen on \(place): \(error).")
        }
    }
}
