import type { Role } from '../../domain/clients/role.ts';

export type AccessTokenClaims = {
  /** Tenant id; for a client without tenant its own id. */
  readonly subject: string;
  readonly clientId: string;
  readonly roles: readonly Role[];
  /** Creation time of the client in milliseconds: distinguishes it from a later client of the same id. */
  readonly clientSince: number;
  readonly secretRevision: number;
};

/** Claims of a token of an external identity provider; the service need not know its clients. */
export type ExternalAccess = Omit<AccessTokenClaims, 'clientSince' | 'secretRevision'> & {
  readonly isExternal: true;
  /** The person who uses the client, if the provider names one. */
  readonly person?: string;
};

export type VerifiedAccess = ((AccessTokenClaims & { readonly isExternal?: never }) | ExternalAccess) & { readonly expiresAt: Date };

export type IssuedAccessToken = { readonly token: string; readonly expiresInSeconds: number };

/** Access tokens of the administrative interface (not those of wallets). */
export abstract class AccessTokens {
  /** Issuer of an external identity provider; undefined if this service issues the tokens. */
  abstract readonly externalIssuer: string | undefined;
  /** Only for tokens of this service: callers check `externalIssuer` first. */
  abstract issue(claims: AccessTokenClaims): IssuedAccessToken;
  /**
   * @returns undefined for anything that is not a valid, unexpired token for this service.
   * @throws Failure `unavailable` when the token cannot be verified at present.
   */
  abstract verify(token: string): Promise<VerifiedAccess | undefined> | VerifiedAccess | undefined;
}
