// CallControl: connection, login, invite and call machines, pure and the same for every signaling service.

/// Names of users, devices, invites, groups, rooms and sessions.
@_exported public import Identifiers
