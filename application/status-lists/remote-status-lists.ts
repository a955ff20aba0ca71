import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { parseAlgorithm, parseCompactJws } from '../../domain/formats/jose/compact.ts';
import { parseCertificateChain } from '../../domain/formats/sd-jwt/sd-jwt-vc.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { algorithmOf, SIGNING_ALGORITHMS, type SigningAlgorithm } from '../../domain/shared/jwk.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import type { EntryBits } from '../../domain/status-lists/bits.ts';
import { type CacheLifetime, cacheLifetime, cacheState } from '../../domain/status-lists/cache.ts';
import { decompressList } from '../../domain/status-lists/codec.ts';
import { assertStatusListHeader, parseStatusListClaims } from '../../domain/status-lists/token.ts';
import { parseStatusListCwt, STATUS_LIST_CWT_TYPE } from '../../domain/status-lists/token-cwt.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Log } from '../ports/log.ts';
import { Remote } from '../ports/remote.ts';
import { Signatures } from '../ports/signatures.ts';
import { download, type FetchedListStats, FetchedLists, keyOf } from '../trust-lists/fetched-lists.ts';

const JWT_MEDIA_TYPE = 'application/statuslist+jwt';
const MAX_TOKEN_BYTES = 2 * 1024 * 1024;
const ENTRY_OVERHEAD = 4_096;
const FAILURE_MS = 30_000;
/** Minimum age of a copy before it is fetched again for an index beyond its end. */
const MIN_REFETCH_AGE_MS = 10_000;

/** Accepted forms: a JWT for SD-JWT VCs (SD-JWT VC section 2.2.2.3), both forms for mdocs. */
export type TokenForms = 'jwt' | 'jwt-or-cwt';
const ACCEPT: Readonly<Record<TokenForms, string>> = {
  jwt: JWT_MEDIA_TYPE,
  'jwt-or-cwt': `${JWT_MEDIA_TYPE}, ${STATUS_LIST_CWT_TYPE};q=0.9`,
};

/** A list whose token was signed by the first certificate of `signer`; callers check if that signer is authorized. */
export type RemoteStatusList = {
  readonly uri: string;
  readonly bits: EntryBits;
  readonly bytes: Buffer;
  /** DER in standard base64, leaf first. */
  readonly signer: readonly string[];
  readonly fetchedAt: Date;
  readonly lifetime: CacheLifetime;
};

/** External status lists, cached per tenant as long as their token allows; concurrent callers share a fetch. */
export class RemoteStatusLists extends needs({ remote: Remote, signatures: Signatures, clock: Clock, eventBus: EventBus, log: Log }) {
  readonly #lists = new FetchedLists<RemoteStatusList>({
    clock: this.ports.clock,
    eventBus: this.ports.eventBus,
    kind: 'status-lists',
    sizeOf: ({ bytes }) => bytes.length + ENTRY_OVERHEAD,
    freshUntil: ({ lifetime }) => lifetime.freshUntil,
    isRefusal: (error) => error instanceof Refusal,
    failureMs: FAILURE_MS,
  });

  /** @throws Refusal `status_unavailable` when no usable copy is available, `status_invalid` for an invalid token. */
  async get(tenantId: string, uri: string, forms: TokenForms): Promise<RemoteStatusList> {
    const key = keyOf(tenantId, forms, uri);
    const cached = this.#lists.peek(key);
    const state = cached === undefined ? 'expired' : cacheState(cached.lifetime, this.ports.clock.now());
    if (cached !== undefined && state === 'fresh') {
      this.#lists.count(tenantId, 'hits');
      return cached;
    }
    this.#lists.count(tenantId, 'misses');
    try {
      return await this.#fetch(tenantId, uri, forms);
    } catch (error) {
      if (!(error instanceof Refusal) || cached === undefined || state === 'expired') throw error;
      // Token Status List section 13.7: the old copy may be used until `exp`.
      this.ports.log.warn('status list not refreshed; the older copy is used', { tenantId, reason: error.reason });
      return cached;
    }
  }

  /**
   * A copy that was fetched at this time or later, and is still fresh according to its token.
   * @throws Refusal as `get`, also if an older copy is still usable.
   */
  async getSince(tenantId: string, uri: string, notBefore: Date): Promise<RemoteStatusList> {
    const cached = this.#lists.peek(keyOf(tenantId, 'jwt', uri));
    const isFresh = cached !== undefined && cacheState(cached.lifetime, this.ports.clock.now()) === 'fresh';
    return isFresh && cached.fetchedAt >= notBefore ? cached : this.#fetch(tenantId, uri, 'jwt');
  }

  /** A copy that was fetched later than this one, unless this one is recent or no other is available. */
  async getNewer(tenantId: string, forms: TokenForms, copy: RemoteStatusList): Promise<RemoteStatusList> {
    const cached = this.#lists.peek(keyOf(tenantId, forms, copy.uri));
    if (cached !== undefined && cached.fetchedAt > copy.fetchedAt) return cached;
    if (this.ports.clock.now().getTime() < copy.fetchedAt.getTime() + MIN_REFETCH_AGE_MS) return copy;
    try {
      return await this.#fetch(tenantId, copy.uri, forms);
    } catch (error) {
      if (error instanceof Refusal) return copy;
      throw error;
    }
  }

  #fetch(tenantId: string, uri: string, forms: TokenForms): Promise<RemoteStatusList> {
    return this.#lists.fetch(keyOf(tenantId, forms, uri), async () => {
      const token = await this.#download(tenantId, uri, forms);
      return parseToken(token, uri, this.ports.clock.now(), this.ports.signatures);
    });
  }

  stats(tenantId: string): FetchedListStats {
    return this.#lists.stats(tenantId);
  }

  /** The next check fetches the list, even if an earlier fetch is in progress. */
  clear(tenantId: string): void {
    this.#lists.clear(tenantId);
  }

  async #download(tenantId: string, uri: string, forms: TokenForms): Promise<ParsedToken> {
    const options = { tenantId, accept: ACCEPT[forms], maxBytes: MAX_TOKEN_BYTES };
    const refusal = (reason: string) => new Refusal('status_unavailable', reason);
    // Token Status List section 8.2
    const { contentType, body } = await download(this.ports.remote, uri, options, refusal);
    if (contentType === JWT_MEDIA_TYPE) return parseJwt(body.toString('latin1').trim());
    if (contentType === STATUS_LIST_CWT_TYPE && forms === 'jwt-or-cwt') return parseCwt(body);
    throw new Refusal('status_invalid', 'content type');
  }
}

/** A parsed, unverified token. */
type ParsedToken = {
  readonly algorithm: SigningAlgorithm;
  /** DER in standard base64, leaf first. */
  readonly signer: readonly string[];
  readonly toVerify: string | Buffer;
  readonly signature: Buffer;
  readonly payload: JsonObject;
};

function parseJwt(text: string): ParsedToken {
  const jws = parseCompactJws(text, { length: MAX_TOKEN_BYTES });
  if (jws === undefined) throw new Refusal('status_invalid', 'not a JWS');
  const { header, payload, signingInput: toVerify, signature } = jws;
  assertStatusListHeader(header);
  const signer = parseSigner(header);
  const verdict = parseAlgorithm(header, SIGNING_ALGORITHMS);
  if (verdict.fault !== undefined) throw new Refusal('status_invalid', 'alg');
  return { algorithm: verdict.algorithm, signer, toVerify, signature, payload };
}

function parseCwt(bytes: Buffer): ParsedToken {
  const { chain, ...cwt } = parseStatusListCwt(bytes);
  if (chain === undefined) throw new Refusal('status_invalid', 'x5chain');
  return { ...cwt, signer: chain };
}

/** Verifies a token except for the authorization of its signer. */
function parseToken(token: ParsedToken, uri: string, now: Date, signatures: Signatures): RemoteStatusList {
  const { algorithm, signer, toVerify, signature, payload } = token;
  const key = parseCertificate(Buffer.from(signer[0] ?? '', 'base64'))?.publicJwk;
  if (key === undefined) throw new Refusal('status_invalid', 'signer certificate');
  // RFC 8725 section 3.1: the algorithm follows from the key.
  if (algorithm !== algorithmOf(key)) throw new Refusal('status_invalid', 'alg');
  // Token Status List section 8.3
  if (!signatures.verify(key, toVerify, signature)) throw new Refusal('status_invalid', 'signature');

  const { bits, lst, exp, ttl } = parseStatusListClaims(payload, uri, now);
  const bytes = decompressList(lst, bits);
  const times = { fetchedAt: now, ...defined({ exp, ttl }) };
  return { uri, bits, bytes, signer, fetchedAt: now, lifetime: cacheLifetime(times) };
}

/** HAIP 1.0 section 6.1: `x5c` contains the signer's certificate. */
function parseSigner(header: JsonObject): readonly string[] {
  try {
    return parseCertificateChain(header);
  } catch {
    throw new Refusal('status_invalid', 'x5c');
  }
}
