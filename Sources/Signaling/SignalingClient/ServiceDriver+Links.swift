internal import CallControl
internal import HTTPTransport
internal import NIOCore
internal import SignalWire
internal import Timekeeping

// Which socket is in use: one, or while the device moves to another connection the one that stands and the next
// (contract CONN-12).
extension ServiceDriver {
    /// Moves as soon as no request waits for its answer, and after most of the time that the exchange gives anyway.
    func move(within limit: Duration, to address: String?) {
        let patience = min(max(limit, .zero), .seconds(60)) * 0.5
        pendingMove = PendingMove(address: address, deadline: now.advanced(by: patience))
        moveIfQuiet()
        scheduleWakeUp()
    }

    func moveIfQuiet() {
        guard let move = pendingMove, requests.isEmpty || now >= move.deadline else { return }
        pendingMove = nil
        feed(connection: .move(to: move.address))
    }

    /// Nothing is to be sent: the session is about to go on, or goes on, on the next socket.
    var isChangingLinks: Bool { openAttempt != nil || connection.isChangingLinks }

    /// The session goes on on the next socket once nothing waits for its answer on this one.
    func changeLinksIfQuiet() {
        guard let attempt = openAttempt, requests.isEmpty else { return }
        openAttempt = nil
        feed(connection: .link(.socketOpened, attempt: attempt))
    }

    /// Takes a socket that is being opened: the next one while another one stands, and else the one.
    func hold(_ link: WebSocket, _ attempt: Int) {
        if connection.isMoving(by: attempt) {
            nextLink = NextLink(attempt: attempt, link: link)
        } else {
            drop(self.link)
            self.link = link
            linkAttempt = attempt
        }
    }

    /// The socket that an attempt has; nil if it has none, or none any more.
    func link(of attempt: Int) -> WebSocket? {
        if let nextLink, nextLink.attempt == attempt { return nextLink.link }
        return linkAttempt == attempt ? link : nil
    }

    /// The next socket takes the place of the one there is, if that has not ended already.
    func changeLinks(to attempt: Int) {
        guard let nextLink, nextLink.attempt == attempt else { return }
        let old = link
        link = nextLink.link
        linkAttempt = attempt
        self.nextLink = nil
        drop(old)
    }

    /// Drops the socket of an attempt, and fails what waits for answers on it.
    func abandon(_ attempt: Int) {
        let dropped = link(of: attempt)
        for fail in forget(attempt) { fail() }
        dropped?.abandon()
    }

    /// Drops all sockets there are.
    func dropLinks() {
        let dropped = [nextLink?.link, link]
        nextLink = nil
        openAttempt = nil
        link = nil
        for link in dropped { drop(link) }
    }

    private func drop(_ link: WebSocket?) {
        guard let link else { return }
        link.abandon()
        for fail in requests.takeAll(on: link) { fail() }
    }

    /// Takes the socket of an attempt out of use; the next one, if there is one, is then the only one.
    ///
    /// - Returns: What tells those who wait for answers on it.
    func forget(_ attempt: Int) -> [() -> Void] {
        if openAttempt == attempt { openAttempt = nil }
        guard let gone = link(of: attempt) else { return [] }
        if gone === link {
            link = nextLink?.link
            linkAttempt = nextLink?.attempt ?? attempt
        }
        nextLink = nil
        return requests.takeAll(on: gone)
    }
}
