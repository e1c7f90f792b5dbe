internal import ConfigReader
internal import ControlWire
package import HTTPTransport
package import Logging
package import NIOCore
package import TLS

/// Listens to programs over HTTP, at a Unix socket and perhaps on TCP, and has a ``ControlPoint`` carry out what they request.
package final class ControlHTTPServer: Sendable {
    /// For a client on TCP to acknowledge what it was sent: one that vanished is noticed by its heartbeats.
    package static let vanishPatience = Duration.seconds(45)
    /// Bytes of requests that are not complete, in all.
    private static let requestMemory = 1 << 20
    private static let bounds = StrangerBounds(bodyBytes: ControlLimits.requestBytes, messageBytes: 1)

    private let socket: ControlSocket
    private let channels: [any Channel]
    private let loop: any EventLoop
    private let parts: NIOLoopBound<Parts>

    /// What lives on the event loop.
    private struct Parts {
        let point: any ControlPoint
        let services: [ControlHTTPService]
    }

    private init(
        _ socket: ControlSocket, _ channels: [any Channel], _ loop: any EventLoop, _ parts: NIOLoopBound<Parts>
    ) {
        self.socket = socket
        self.channels = channels
        self.loop = loop
        self.parts = parts
    }

    /// Accepts clients from now on.
    ///
    /// - Parameters:
    ///   - tls: What ``tls(of:)`` has loaded.
    ///   - loop: The point's, which carries the server, too.
    /// - Throws: An error that says which address or socket cannot be used, and what to try.
    package static func start(
        _ socket: ControlSocket, _ network: ControlNetwork?, tls: TLSContext?, _ point: NIOLoopBound<any ControlPoint>,
        on loop: any EventLoop, logger: Logger
    ) async throws -> ControlHTTPServer {
        let parts = try await loop.submit {
            var services = [ControlHTTPService(point.value, ControlAdmission(), logger: logger)]
            if let network {
                services.append(ControlHTTPService(point.value, ControlAdmission(network), logger: logger))
            }
            return NIOLoopBound(Parts(point: point.value, services: services), eventLoop: loop)
        }.get()
        func listener(_ number: Int, _ tls: TLSContext?) async throws -> NIOLoopBound<HTTPListener> {
            try await loop.submit {
                NIOLoopBound(
                    HTTPListener(
                        parts.value.services[number], tls: tls, budget: InboundBudget(limit: requestMemory),
                        bounds: bounds,
                        messageBytes: 1), eventLoop: loop)
            }.get()
        }
        var channels: [any Channel] = []
        do {
            guard let descriptor = socket.takeDescriptor() else {
                throw ControlSocketError(.notUsable, socket.path, "listen there", cause: "it is served already")
            }
            channels.append(try await HTTPListener.listen(on: descriptor, with: listener(0, nil), on: loop))
            logger.info("Listening to programs on this machine, over HTTP", metadata: ["socket": "\(socket.path)"])
            if let network {
                let channel = try await listen(at: network, with: listener(1, tls), on: loop)
                channels.append(channel)
                let scheme = tls == nil ? "http" : "https"
                let address = ListenAddress(host: network.listen.host, port: channel.localAddress?.port ?? 0)
                logger.info("Listening to programs, over HTTP", metadata: ["url": "\(scheme)://\(address)"])
            }
        } catch {
            for channel in channels { try? await channel.close() }
            throw error
        }
        return ControlHTTPServer(socket, channels, loop, parts)
    }

    /// The port on TCP, which the system may have chosen; nil without TCP.
    package var port: Int? { channels.count > 1 ? channels[1].localAddress?.port : nil }

    /// Removes the socket, and accepts no more clients.
    package func stopAccepting() async {
        socket.remove()
        for channel in channels { try? await channel.close() }
    }

    /// Disconnects all clients.
    package func disconnectAll() async {
        let parts = parts
        try? await loop.submit {
            parts.value.point.close()
            for service in parts.value.services { service.close() }
        }.get()
    }

    private static func listen(
        at network: ControlNetwork, with listener: NIOLoopBound<HTTPListener>, on loop: any EventLoop
    ) async throws -> any Channel {
        let address = ListenAddress(host: network.listen.host, port: network.listen.port)
        let place = try address.resolve()
        do {
            return try await HTTPListener.listen(at: place, with: listener, patience: vanishPatience, on: loop)
        } catch {
            throw address.explain(error)
        }
    }

    /// Loads the certificate of the interface on TCP; nil without one.
    ///
    /// - Throws: ``ListenError`` with the file that cannot be used.
    package static func tls(of network: ControlNetwork?) throws(ListenError) -> TLSContext? {
        guard let network, let files = network.certificate else { return nil }
        do throws(CertificateFault) {
            return try ServerTLS.load(CertificateFiles(chainPath: files.chainPath, keyPath: files.keyPath))
        } catch {
            throw ListenError(
                code: .addressNotUsable,
                description: "\(network.section): cannot use TLS: \"\(error.path)\" \(error.message)")
        }
    }
}
