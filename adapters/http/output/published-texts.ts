import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { boundedBytes, watchedCache } from '../../../application/tenant-cache/bounded.ts';
import { SingleFlight } from '../../../application/tenant-cache/single-flight.ts';
import { type Encoding, isKnown, pickEncoding } from '../input/negotiation.ts';
import type { RawRequest, Reply, Route } from '../route.ts';

/** A smaller one fits into one packet anyway. */
const MIN_BYTES = 1_024;
/** What compresses by less costs the reader more than it saves. */
const WORTHWHILE = 0.95;
/** Of compressed texts. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Higher ones take ten times as long and save a few parts in a hundred; most of a list is dense already. */
const BROTLI_QUALITY = 5;

const brotli = promisify(brotliCompress);
const zip = promisify(gzip);

const COMPRESS: Readonly<Record<Encoding, (text: Buffer) => Promise<Buffer>>> = {
  br: (text) =>
    brotli(text, {
      params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY, [constants.BROTLI_PARAM_SIZE_HINT]: text.length },
    }),
  gzip: (text) => zip(text),
};

type Compressed = {
  /** Undefined for a text that does not become smaller. */
  readonly bytes: Buffer | undefined;
};

/**
 * Whether answers are the same for everybody, as lists and metadata are. Nothing else is compressed: the length of a
 * compressed answer would tell what stands beside the words that a stranger put into it.
 */
export function isPublished({ surface, access, method }: Route): boolean {
  return surface === 'document' && access === 'public' && method === 'get';
}

/** Sends what is published as its reader takes it best (RFC 9110 sections 12.5.3, 13.1.2). Each text is compressed once. */
export class PublishedTexts {
  readonly #compressed = watchedCache(
    'published-texts',
    new LRUCache<string, Compressed>(boundedBytes<Compressed>(MAX_BYTES, ({ bytes }) => bytes?.length ?? 0)),
  );
  readonly #underWay = new SingleFlight<Compressed>();
  /** Of texts that are kept as bytes, so that a long list is not read at each request. */
  readonly #digests = new WeakMap<Buffer, string>();

  /** @returns the answer in the encoding that the reader asks for, or 304 for one that has it already. */
  async answer(reply: Reply, { headers: asked }: Pick<RawRequest, 'headers'>): Promise<Reply> {
    if (reply.status !== 200) return reply;
    const told = 'json' in reply ? { ...reply, ...textOf(reply.json) } : reply;
    if (!('text' in told)) return reply;
    const { text, contentType, etag } = told;
    const encoding = pickEncoding(asked['accept-encoding']);
    const bytes = encoding && (await this.#compress(text, encoding));
    const tag = etag && tagOf(etag, bytes && encoding);
    const { Vary: vary, ...others } = told.headers ?? {};
    const headers = {
      ...others,
      ...(tag !== undefined && { ETag: tag }),
      Vary: vary === undefined ? 'Accept-Encoding' : `${vary}, Accept-Encoding`,
    };
    if (tag !== undefined && isKnown(asked['if-none-match'], tag)) return { status: 304, empty: true, headers };
    if (bytes === undefined) return { status: 200, text, contentType, headers };
    return { status: 200, text: bytes, contentType, headers: { ...headers, 'Content-Encoding': encoding ?? '' } };
  }

  /** @returns undefined for a text that is better sent as it is. */
  async #compress(text: string | Buffer, encoding: Encoding): Promise<Buffer | undefined> {
    const length = Buffer.byteLength(text);
    // One that would push out all others would be made again and again.
    if (length < MIN_BYTES || length > this.#compressed.maxSize / 2) return undefined;
    const key = `${encoding} ${this.#digestOf(text)}`;
    const known = this.#compressed.get(key) ?? (await this.#underWay.run(key, () => this.#make(key, text)));
    return known.bytes;
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
    const known = this.#digests.get(text) ?? hash('sha256', text, 'base64url');
    this.#digests.set(text, known);
    return known;
  }
}

function textOf(json: unknown): { readonly text: string; readonly contentType: string } {
  return { text: JSON.stringify(json), contentType: 'application/json' };
}

/** RFC 9110 section 8.8.3.3: another encoding is another representation, with a tag of its own. */
function tagOf(etag: string, encoding: Encoding | undefined): string {
  return encoding === undefined ? etag : `${etag.slice(0, -1)}-${encoding}"`;
}
