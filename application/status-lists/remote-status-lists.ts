import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { parseAlgorithm, parseCompactJws } from '../../domain/formats/jose/compact.ts';
import { parseCertificateChain } from '../../domain/formats/sd-jwt/sd-jwt-vc.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { algorithmOf, SIGNING_ALGORITHMS, type SigningAlgorithm } from '../../domain/shared/jwk.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import type { EntryBits } from '../../domain/status-lists/bits.ts';
import { type CacheLifetime, cacheState, cacheUntil } from '../../domain/status-lists/cache.ts';
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
/** What an entry costs besides its bytes. */
const ENTRY_OVERHEAD = 4_096;
const FAILURE_MS = 30_000;
/** For entries that a copy does not have yet, a list is fetched again no sooner than this. */
const AGAIN_MS = 10_000;

/** Of an SD-JWT VC a JWT is all (SD-JWT VC section 2.2.2.3); of an mdoc both forms are taken. */
export type TokenForms = 'jwt' | 'jwt-or-cwt';
const ACCEPT: Readonly<Record<TokenForms, string>> = {
  jwt: JWT_MEDIA_TYPE,
  'jwt-or-cwt': `${JWT_MEDIA_TYPE}, ${STATUS_LIST_CWT_TYPE};q=0.9`,
};

/** A list whose token was signed by the first certificate of `signer`; whether that one may is asked each time. */
export type RemoteStatusList = {
  readonly uri: string;
  readonly bits: EntryBits;
  /** Inflated. */
  readonly bytes: Buffer;
  /** DER in standard base64, leaf first. */
  readonly signer: readonly string[];
  readonly fetchedAt: Date;
  readonly lifetime: CacheLifetime;
};

/** Status lists of others: fetched once for all who wait, kept as long as their token says, per tenant. */
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

  /** @throws Refusal `status_unavailable` when no usable copy can be had, `status_invalid` for a bad token. */
  async get(tenantId: string, uri: string, forms: TokenForms): Promise<RemoteStatusList> {
    const key = keyOf(tenantId, forms, uri);
    const known = this.#lists.peek(key);
    const state = known === undefined ? 'expired' : cacheState(known.lifetime, this.ports.clock.now());
    if (known !== undefined && state === 'fresh') {
      this.#lists.count(tenantId, 'hits');
      return known;
    }
    this.#lists.count(tenantId, 'misses');
    try {
      return await this.#fetch(tenantId, uri, forms);
    } catch (error) {
      if (!(error instanceof Refusal) || known === undefined || state === 'expired') throw error;
      // Token Status List section 13.7: until `exp` the old copy may stand in.
      this.ports.log.warn('status list not refreshed, the older copy is used', { tenantId, reason: error.reason });
      return known;
    }
  }

  /**
   * A copy that was fetched at this time or later, or that its token says is fresh and was fetched by then.
   * @throws Refusal as `get`, also while an older copy could stand in.
   */
  async renewed(tenantId: string, uri: string, notBefore: Date): Promise<RemoteStatusList> {
    const known = this.#lists.peek(keyOf(tenantId, 'jwt', uri));
    const isFresh = known !== undefined && cacheState(known.lifetime, this.ports.clock.now()) === 'fresh';
    return isFresh && known.fetchedAt >= notBefore ? known : this.#fetch(tenantId, uri, 'jwt');
  }

  /** A copy that was fetched later than this one, where that can be had and this one is not of a moment ago. */
  async later(tenantId: string, forms: TokenForms, than: RemoteStatusList): Promise<RemoteStatusList> {
    const known = this.#lists.peek(keyOf(tenantId, forms, than.uri));
    if (known !== undefined && known.fetchedAt > than.fetchedAt) return known;
    if (this.ports.clock.now().getTime() < than.fetchedAt.getTime() + AGAIN_MS) return than;
    try {
      return await this.#fetch(tenantId, than.uri, forms);
    } catch (error) {
      if (error instanceof Refusal) return than;
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

  /** The next check fetches; so does one that follows a fetch under way. */
  clear(tenantId: string): void {
    this.#lists.clear(tenantId);
  }

  async #download(tenantId: string, uri: string, forms: TokenForms): Promise<OpenedToken> {
    const wanted = { tenantId, accept: ACCEPT[forms], maxBytes: MAX_TOKEN_BYTES };
    const refusal = (why: string) => new Refusal('status_unavailable', why);
    // Token Status List section 8.2
    const { contentType, body } = await download(this.ports.remote, uri, wanted, refusal);
    if (contentType === JWT_MEDIA_TYPE) return parseJwt(body.toString('latin1').trim());
    if (contentType === STATUS_LIST_CWT_TYPE && forms === 'jwt-or-cwt') return parseCwt(body);
    throw new Refusal('status_invalid', 'content type');
  }
}

/** A token taken apart; nothing is verified yet. */
type OpenedToken = {
  readonly algorithm: SigningAlgorithm;
  /** DER in standard base64, leaf first. */
  readonly signer: readonly string[];
  readonly toVerify: string | Buffer;
  readonly signature: Buffer;
  readonly payload: JsonObject;
};

function parseJwt(text: string): OpenedToken {
  const jws = parseCompactJws(text, { length: MAX_TOKEN_BYTES });
  if (jws === undefined) throw new Refusal('status_invalid', 'not a JWS');
  const { header, payload, signingInput: toVerify, signature } = jws;
  assertStatusListHeader(header);
  const signer = parseSigner(header);
  const verdict = parseAlgorithm(header, SIGNING_ALGORITHMS);
  if (verdict.fault !== undefined) throw new Refusal('status_invalid', 'alg');
  return { algorithm: verdict.algorithm, signer, toVerify, signature, payload };
}

function parseCwt(bytes: Buffer): OpenedToken {
  const { chain, ...opened } = parseStatusListCwt(bytes);
  if (chain === undefined) throw new Refusal('status_invalid', 'x5chain');
  return { ...opened, signer: chain };
}

/** Checks everything about a token except whether its signer may speak for the credential. */
function parseToken(token: OpenedToken, uri: string, now: Date, signatures: Signatures): RemoteStatusList {
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
  return { uri, bits, bytes, signer, fetchedAt: now, lifetime: cacheUntil(times) };
}

/** HAIP 1.0 section 6.1: the signer's certificate stands in `x5c`. */
function parseSigner(header: JsonObject): readonly string[] {
  try {
    return parseCertificateChain(header);
  } catch {
    throw new Refusal('status_invalid', 'x5c');
  }
}
