declare const brand: unique symbol;
type Id<Name extends string> = string & { readonly [brand]: Name };

/** A tenant's identifier: `[a-z0-9][a-z0-9-]{0,62}` and no first path segment of the service itself. */
export type TenantId = Id<'tenant'>;
/** Names a session towards the customer's backend. Never shown to a wallet. */
export type SessionId = Id<'session'>;
/** Names a session towards the wallet: stands in offer, request and response addresses. */
export type PublicId = Id<'public'>;
