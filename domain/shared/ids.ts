declare const brand: unique symbol;
type Id<Name extends string> = string & { readonly [brand]: Name };

/** A tenant's identifier: `[a-z0-9][a-z0-9-]{0,62}`, excluding the first path segments of the service itself. */
export type TenantId = Id<'tenant'>;
/** Identifies a session for the tenant's backend. Never shown to a wallet. */
export type SessionId = Id<'session'>;
/** Identifies a session for the wallet: part of offer, request and response addresses. */
export type PublicId = Id<'public'>;
