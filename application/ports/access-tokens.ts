import type { Role } from '../../domain/clients/role.ts';

/** What an administrative access token says. */
export type AccessTokenClaims = {
  /** Tenant id; for a client without tenant its own id. */
  readonly subject: string;
  readonly clientId: string;
  readonly roles: readonly Role[];
  /** When the client was made, in milliseconds: tells it from one made later under the same name. */
  readonly clientSince: number;
  /** How often the secret had been replaced with which the token was had. */
  readonly secretRevision: number;
};

/** What the token of an external identity provider says; its clients need not be known here. */
export type ExternalAccess = Omit<AccessTokenClaims, 'clientSince' | 'secretRevision'> & {
  readonly isExternal: true;
  /** Who calls by the client, where the provider names a person. */
  readonly person?: string;
};

export type VerifiedAccess = ((AccessTokenClaims & { readonly isExternal?: never }) | ExternalAccess) & {
  /** From then on the token is good for nothing. */
  readonly expiresAt: Date;
};

export type IssuedAccessToken = { readonly token: string; readonly expiresInSeconds: number };

/** Access tokens of the administrative interface (not those of wallets). */
export abstract class AccessTokens {
  /** Who issues tokens instead; undefined where this service does. */
  abstract readonly issuedElsewhere: string | undefined;
  /** Not to be called where tokens come from somebody else. */
  abstract issue(claims: AccessTokenClaims): IssuedAccessToken;
  /**
   * @returns undefined for anything that is not a valid, unexpired token for this service.
   * @throws Failure `unavailable` when nobody can tell at present.
   */
  abstract verify(token: string): Promise<VerifiedAccess | undefined> | VerifiedAccess | undefined;
}
