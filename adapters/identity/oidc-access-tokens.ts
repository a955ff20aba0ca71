import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { AccessTokens, type IssuedAccessToken, type VerifiedAccess } from '../../application/ports/access-tokens.ts';
import { AuthorizationServerError, type AuthorizationServers } from '../../application/ports/authorization-servers.ts';
import type { Clock } from '../../application/ports/clock.ts';
import type { Log } from '../../application/ports/log.ts';
import { boundedBytes } from '../../application/tenant-cache/bounded.ts';
import { type ExternalIdentityRules, parseExternalIdentity } from '../../domain/clients/external-identity.ts';
import { assertAccessToken, assertBearer, EXTERNAL_TOKEN_TYPES } from '../../domain/oauth/external-token.ts';
import { ForeignTokenError, type ForeignTokenReason } from '../../domain/oauth/foreign-token.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { AUDIENCE } from './local-access-tokens.ts';

type Ports = { readonly authorizationServers: AuthorizationServers; readonly clock: Clock; readonly log: Log };

type Settings = ExternalIdentityRules & {
  readonly issuer: string;
  /** The one signature algorithm that the provider uses. */
  readonly algorithm: string;
};

const MAX_TOKEN_BYTES = 8 * 1024 * 1024;
/** A token is looked at anew after so long, so that a key that the provider withdrew does not count for long. */
const REMEMBERED_MS = 60_000;

type Remembered = { readonly access: VerifiedAccess; readonly until: number };

/** For the one who writes the provider's rules; what a token holds is told to nobody. */
const WORDS: Partial<Record<ForeignTokenReason, string>> = {
  issuer: 'comes from another issuer than OIDC names',
  audience: `is not for "${AUDIENCE}", which its aud has to name`,
  expired: 'has expired',
  not_yet_valid: 'is not valid yet; check the clocks',
  type: 'is of another type; typ is at+jwt or JWT',
  id_token: 'is an ID token or another that is no access token; send the access token',
  key_binding: 'is bound to a key (cnf), and calls here bring no proof of it; have the provider issue a bearer token',
  unknown_key: 'is signed with a key that the provider does not publish',
  signature: 'is not signed by the provider',
};

/** Tokens of an external OpenID provider (RFC 9068): its keys sign, its claims say who calls. */
export class OidcAccessTokens extends AccessTokens {
  override readonly issuedElsewhere: string;
  readonly #ports: Ports;
  readonly #settings: Settings;
  readonly #verified = new LRUCache<string, Remembered>(boundedBytes(MAX_TOKEN_BYTES));

  constructor(ports: Ports, settings: Settings) {
    super();
    this.#ports = ports;
    this.#settings = settings;
    this.issuedElsewhere = settings.issuer;
  }

  override issue(): IssuedAccessToken {
    throw new Error('access tokens come from the external provider');
  }

  #describe(reason: ForeignTokenReason): string {
    const { algorithm, subjectClaim } = this.#settings;
    if (reason === 'algorithm') return `the access token is not signed with ${algorithm}, as OIDC_ALGORITHM says`;
    if (reason === 'subject') return `the access token does not say who calls: it needs ${subjectClaim} (OIDC_SUB), and client_id or azp`;
    return `the access token ${WORDS[reason] ?? 'cannot be read'}`;
  }

  override async verify(token: string): Promise<VerifiedAccess | undefined> {
    const key = hash('sha256', token, 'base64url');
    const known = this.#verified.get(key);
    const now = this.#ports.clock.now();
    if (known !== undefined && now.getTime() < known.until) return known.access;
    const { issuer, algorithm } = this.#settings;
    try {
      const expected = { tenantId: undefined, audience: AUDIENCE, types: EXTERNAL_TOKEN_TYPES, now };
      const verified = await this.#ports.authorizationServers.verifyToken(issuer, token, expected);
      // RFC 8725 section 3.1: the algorithm is the operator's choice.
      if (verified.algorithm !== algorithm) throw new ForeignTokenError('algorithm');
      assertAccessToken(verified.type, verified.claims);
      assertBearer(verified.claims);
      const identity = parseExternalIdentity(verified.claims, this.#settings);
      if (identity === undefined) throw new ForeignTokenError('subject');
      const ends = Number(verified.claims['exp']) * 1000;
      const access = { ...identity, isExternal: true, expiresAt: new Date(ends) } as const;
      this.#verified.set(key, { access, until: Math.min(now.getTime() + REMEMBERED_MS, ends) });
      return access;
    } catch (error) {
      if (error instanceof ForeignTokenError) {
        this.#ports.log.info('access token refused', { reason: error.reason });
        throw new Failure('unauthenticated', this.#describe(error.reason));
      }
      if (!(error instanceof AuthorizationServerError)) throw error;
      throw new Failure('unavailable', 'the identity provider cannot be asked at present', { cause: error });
    }
  }
}
