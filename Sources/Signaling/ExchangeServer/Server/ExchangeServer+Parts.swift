import ExchangeCore
import HTTPTransport
import Logging

extension ExchangeServer {
    /// What of an exchange looks at files, and answers clients. On the hub's event loop.
    final class Parts {
        private let front: ExchangeFront
        /// `nil` without a users file.
        private let users: UsersWatch?
        /// `nil` without TLS.
        private let certificate: CertificateKeeper?

        init(
            _ configuration: ExchangeConfiguration, _ certificate: PreparedCertificate, _ front: ExchangeFront,
            _ listener: HTTPListener, hub: ExchangeHub, logger: Logger
        ) {
            self.front = front
            users = configuration.usersFile.map {
                UsersWatch(
                    UsersReader($0, wasRead: !configuration.fileUsers.isEmpty), beside: configuration.users, hub: hub,
                    logger: logger)
            }
            self.certificate = certificate.identity.map { identity in
                CertificateKeeper(
                    configuration, certificate, identity, front: front, listener: listener, hub: hub, logger: logger)
            }
            users?.start()
            self.certificate?.start()
        }

        /// What may change while the exchange runs is as here from now on.
        func adopt(_ configuration: ExchangeConfiguration, _ prepared: PreparedCertificate) {
            front.adopt(configuration)
            users?.adopt(configured: configuration.users)
            certificate?.adopt(configuration, prepared)
        }
    }
}

extension ExchangeConfiguration {
    /// Keys of a file's root that a running exchange takes from another configuration.
    public static let adoptedKeys: Set<String> = [
        "certificate", "users", "apps", "api_keys", "anonymous", "ice_servers", "allowed_origins", "allowed_hosts",
        "trusted_proxies", "token_lifetime_seconds", "refresh_lifetime_seconds", "token_notice_seconds",
        "signed_token_lifetime_seconds", "failed_logins_per_address", "failed_logins_per_account",
        "failed_login_seconds", "messages_per_second", "message_burst", "trunks",
    ]

    /// This configuration with what is adopted from another.
    func adopting(_ new: ExchangeConfiguration, certificate takesCertificate: Bool) -> ExchangeConfiguration {
        var merged = self
        if takesCertificate { (merged.certificate, merged.ownAuthority) = (new.certificate, new.ownAuthority) }
        merged.users = new.users
        merged.apps = new.apps
        merged.apiKeys = new.apiKeys
        merged.allowsAnonymous = new.allowsAnonymous
        merged.iceServers = new.iceServers
        merged.allowedOrigins = new.allowedOrigins
        merged.allowedHosts = new.allowedHosts
        merged.trustedProxies = new.trustedProxies
        merged.failedLogins = new.failedLogins
        merged.core.adopt(new.core)
        return merged
    }
}
