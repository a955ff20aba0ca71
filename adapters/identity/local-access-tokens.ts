import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type AccessTokenClaims, AccessTokens, type VerifiedAccess } from '../../application/ports/access-tokens.ts';
import type { Clock } from '../../application/ports/clock.ts';
import type { Random } from '../../application/ports/random.ts';
import { Role } from '../../domain/clients/role.ts';
import { decodeBase64url, encodeBase64url } from '../../domain/shared/base64url.ts';
import { parseJsonObject } from '../../domain/shared/json.ts';

/** Audience of the tokens, which are for this service only. */
export const AUDIENCE = 'platform-service';

const HEADER = encodeBase64url('{"alg":"HS256","typ":"JWT"}');
const MAX_TOKEN_LENGTH = 8192;
/** Memory of about two thousand tokens. */
const MAX_CACHE_BYTES = 2 * 1024 * 1024;

type Ports = { readonly clock: Clock; readonly random: Random };
type Settings = { readonly key: KeyObject; readonly issuer: string; readonly lifetimeSeconds: number };

/** Verified token with its times in seconds. */
type VerifiedToken = { readonly access: VerifiedAccess; readonly iat: number; readonly exp: number };

/** JWTs signed with a key derived from `MASTER_SECRET` (HS256: issuer and audience are the same service). */
export class LocalAccessTokens extends AccessTokens {
  override readonly externalIssuer = undefined;
  readonly #ports: Ports;
  readonly #settings: Settings;
  /** Tokens with a verified signature: a client sends the same token until it expires. */
  readonly #verified = new LRUCache<string, VerifiedToken>({ maxSize: MAX_CACHE_BYTES, sizeCalculation: (_, token) => token.length + 500 });

  constructor(ports: Ports, settings: Settings) {
    super();
    this.#ports = ports;
    this.#settings = settings;
  }

  override issue(claims: AccessTokenClaims): { token: string; expiresInSeconds: number } {
    const { issuer, lifetimeSeconds, key } = this.#settings;
    const now = Math.floor(this.#ports.clock.now().getTime() / 1000);
    const payload = {
      iss: issuer,
      aud: AUDIENCE,
      sub: claims.subject,
      client_id: claims.clientId,
      roles: claims.roles,
      client_since: claims.clientSince,
      secret_revision: claims.secretRevision,
      jti: this.#ports.random.token(),
      iat: now,
      exp: now + lifetimeSeconds,
    };
    const signed = `${HEADER}.${encodeBase64url(JSON.stringify(payload))}`;
    return { token: `${signed}.${mac(key, signed).toString('base64url')}`, expiresInSeconds: lifetimeSeconds };
  }

  override verify(token: string): VerifiedAccess | undefined {
    const read = this.#verified.get(token) ?? this.#read(token);
    const now = this.#ports.clock.now().getTime() / 1000;
    if (read === undefined || read.exp <= now || read.iat > now + 60) return undefined;
    return read.access;
  }

  /** @returns the content of a token with a valid signature, even if it has expired. */
  #read(token: string): VerifiedToken | undefined {
    if (token.length > MAX_TOKEN_LENGTH) return undefined;
    const end = token.lastIndexOf('.');
    const signed = token.slice(0, end);
    // Only the service's own header is accepted, so the caller cannot choose the algorithm.
    if (end < 0 || !signed.startsWith(`${HEADER}.`)) return undefined;
    const signature = decodeBase64url(token.slice(end + 1));
    if (signature?.length !== 32) return undefined;
    if (!timingSafeEqual(mac(this.#settings.key, signed), signature)) return undefined;
    const payload = parseJsonObject(decodeBase64url(signed.slice(HEADER.length + 1))?.toString('utf8') ?? '');
    if (payload === undefined) return undefined;
    // Tokens of earlier releases have no revision, and none of their secrets had been replaced then.
    const { iss, aud, sub, client_id, client_since, secret_revision = 0, roles, iat, exp } = payload;
    if (iss !== this.#settings.issuer || aud !== AUDIENCE) return undefined;
    if (typeof iat !== 'number' || typeof exp !== 'number') return undefined;
    if (typeof sub !== 'string' || typeof client_id !== 'string') return undefined;
    if (typeof client_since !== 'number' || typeof secret_revision !== 'number') return undefined;
    const parsedRoles = Role.array().safeParse(roles);
    if (!parsedRoles.success) return undefined;
    const access = {
      subject: sub,
      clientId: client_id,
      roles: parsedRoles.data,
      clientSince: client_since,
      secretRevision: secret_revision,
      expiresAt: new Date(exp * 1000),
    };
    const read = { access, iat, exp };
    this.#verified.set(token, read);
    return read;
  }
}

function mac(key: KeyObject, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
