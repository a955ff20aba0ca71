import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { boundedBytes, registerCache } from '../../../application/tenant-cache/cache-memory.ts';
import { SingleFlight } from '../../../application/tenant-cache/single-flight.ts';
import { type Encoding, matchesEtag, pickEncoding } from '../input/negotiation.ts';
import type { RawRequest, Reply, Route } from '../route.ts';

/** A smaller text fits into one packet uncompressed. */
const MIN_BYTES = 1_024;
/** A smaller gain costs the client more than it saves. */
const WORTHWHILE = 0.95;
/** Memory for compressed texts. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Higher levels take ten times as long and save a few percent; most of a list is incompressible. */
const BROTLI_QUALITY = 5;

const brotli = promisify(brotliCompress);
const zip = promisify(gzip);

const COMPRESS: Readonly<Record<Encoding, (text: Buffer) => Promise<Buffer>>> = {
  br: (text) =>
    brotli(text, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY, [constants.BROTLI_PARAM_SIZE_HINT]: text.length } }),
  gzip: (text) => zip(text),
};

type Compressed = {
  /** Undefined for a text that does not become smaller. */
  readonly bytes: Buffer | undefined;
};

/**
 * Returns true if responses are the same for every caller, as lists and metadata are. Nothing else is compressed: the length of a
 * compressed response could reveal secrets next to text that an attacker supplied.
 */
export function isPublished({ surface, access, method }: Route): boolean {
  return surface === 'document' && access === 'public' && method === 'get';
}

/** Sends public texts in the encoding that the client prefers (RFC 9110 sections 12.5.3, 13.1.2). Each text is compressed once. */
export class PublishedTexts {
  readonly #compressed = registerCache(
    'published-texts',
    new LRUCache<string, Compressed>(boundedBytes<Compressed>(MAX_BYTES, ({ bytes }) => bytes?.length ?? 0)),
  );
  readonly #underWay = new SingleFlight<Compressed>();
  /** Digests of texts that are cached as bytes, so that a long list is not hashed at each request. */
  readonly #digests = new WeakMap<Buffer, string>();

  /** @returns the response in the preferred encoding, or 304 for a client that has it already. */
  async answer(reply: Reply, { headers: requestHeaders }: Pick<RawRequest, 'headers'>): Promise<Reply> {
    if (reply.status !== 200) return reply;
    const textReply = 'json' in reply ? { ...reply, ...textOf(reply.json) } : reply;
    if (!('text' in textReply)) return reply;
    const { text, contentType, etag } = textReply;
    const encoding = pickEncoding(requestHeaders['accept-encoding']);
    const bytes = encoding && (await this.#compress(text, encoding));
    const tag = etag && tagOf(etag, bytes && encoding);
    const { Vary: vary, ...otherHeaders } = textReply.headers ?? {};
    const headers = {
      ...otherHeaders,
      ...(tag !== undefined && { ETag: tag }),
      Vary: vary === undefined ? 'Accept-Encoding' : `${vary}, Accept-Encoding`,
    };
    if (tag !== undefined && matchesEtag(requestHeaders['if-none-match'], tag)) return { status: 304, empty: true, headers };
    if (bytes === undefined) return { status: 200, text, contentType, headers };
    return { status: 200, text: bytes, contentType, headers: { ...headers, 'Content-Encoding': encoding ?? '' } };
  }

  /** @returns undefined for a text that is better sent uncompressed. */
  async #compress(text: string | Buffer, encoding: Encoding): Promise<Buffer | undefined> {
    const length = Buffer.byteLength(text);
    // A text that evicted all others would be compressed again and again.
    if (length < MIN_BYTES || length > this.#compressed.maxSize / 2) return undefined;
    const key = `${encoding} ${this.#digestOf(text)}`;
    const cached = this.#compressed.get(key) ?? (await this.#underWay.run(key, () => this.#make(key, text)));
    return cached.bytes;
  }

  async #make(key: string, text: string | Buffer): Promise<Compressed> {
    const encoding = key.startsWith('br') ? 'br' : 'gzip';
    const plain = Buffer.from(text);
    const bytes = await COMPRESS[encoding](plain);
    const compressed = { bytes: bytes.length < plain.length * WORTHWHILE ? bytes : undefined };
    this.#compressed.set(key, compressed);
    return compressed;
  }

  #digestOf(text: string | Buffer): string {
    if (typeof text === 'string') return hash('sha256', text, 'base64url');
    const digest = this.#digests.get(text) ?? hash('sha256', text, 'base64url');
    this.#digests.set(text, digest);
    return digest;
  }
}

function textOf(json: unknown): { readonly text: string; readonly contentType: string } {
  return { text: JSON.stringify(json), contentType: 'application/json' };
}

/** Another encoding is another representation, with a tag of its own (RFC 9110 section 8.8.3.3). */
function tagOf(etag: string, encoding: Encoding | undefined): string {
  return encoding === undefined ? etag : `${etag.slice(0, -1)}-${encoding}"`;
}
