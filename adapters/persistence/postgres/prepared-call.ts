import type { Parameter, Row } from '../statement.ts';
import { arrayLiteral } from './row-literal.ts';

export type Column = { readonly name: string; readonly read: (text: string) => unknown };

/** Call of a statement that its connection has prepared and whose columns are known. */
export type PreparedCall = { readonly statement: string; readonly values: readonly Parameter[]; readonly columns: readonly Column[] };

/** Subset of the driver's connection. */
type Connection = { readonly stream: { write(bytes: Buffer): unknown } };

/** Size of a message up to which its buffer is reused; a larger one gets its own. */
const REUSED_BUFFER_BYTES = 256 * 1024;
/** UTF-8 has at most this many bytes per character of a JavaScript string. */
const CHARACTER_BYTES = 3;
const LENGTH_BYTES = 4;
const NULL_LENGTH = -1;

/** The remainder of Bind with all columns as text, then Execute without a row limit. */
const AFTER_PARAMETERS = Buffer.concat([Buffer.from([0, 0]), Buffer.from([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0])]);
const SYNC = Buffer.from([0x53, 0, 0, 0, 4]);
/** Flush between two calls: PostgreSQL answers the first as soon as it is done; otherwise a slow group looks like a dead connection. */
const FLUSH = Buffer.from([0x48, 0, 0, 0, 4]);

let buffer = Buffer.allocUnsafe(16 * 1024);

/**
 * Calls in one message and one write, followed by one Sync: PostgreSQL runs them sequentially in one transaction, which ends with the Sync
 * (manual, section 55.2.3 and 55.2.4). If one of them fails, none has an effect. The driver would write each call as four messages and
 * request the columns each time. Passed to the driver's `query`, which takes any object with these methods.
 */
export class PreparedCalls {
  /** Rows by call, available after the commit. */
  readonly answers: Promise<readonly (readonly Row[])[]>;
  readonly #calls: readonly PreparedCall[];
  readonly #read: Row[][];
  #answered = 0;
  #resolve: (answers: readonly (readonly Row[])[]) => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor(calls: readonly PreparedCall[]) {
    this.#calls = calls;
    this.#read = calls.map(() => []);
    this.answers = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Number of answered calls; after a failure the index of the call that failed, or the number of calls if the commit failed. */
  get answered(): number {
    return this.#answered;
  }

  submit({ stream }: Connection): null {
    stream.write(bindAndExecute(this.#calls));
    return null;
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const row: Record<string, unknown> = {};
    this.#calls[this.#answered]?.columns.forEach(({ name, read }, index) => {
      const text = fields[index];
      row[name] = text === null || text === undefined ? null : read(text);
    });
    this.#read[this.#answered]?.push(row);
  }

  handleError(error: unknown): void {
    this.#reject(error);
  }

  handleCommandComplete(): void {
    this.#answered++;
  }

  handleReadyForQuery(): void {
    this.#resolve(this.#read);
  }

  handleRowDescription(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
}

/** The messages Bind and Execute of each call for the unnamed portal, and one Sync (PostgreSQL manual, section 55.7). */
function bindAndExecute(calls: readonly PreparedCall[]): Buffer {
  const texts = calls.map(({ values }) => values.map(textOf));
  let most = SYNC.length;
  for (const [index, { statement }] of calls.entries()) most += maxBytesOf(statement, texts[index] ?? []);
  const bytes = bufferFor(most);
  let offset = 0;
  for (const [index, { statement }] of calls.entries()) {
    if (index > 0) offset += FLUSH.copy(bytes, offset);
    offset = writeCall(bytes, offset, statement, texts[index] ?? []);
  }
  offset += SYNC.copy(bytes, offset);
  // The socket may keep the bytes for a while, and the buffer is reused.
  return most > REUSED_BUFFER_BYTES ? bytes.subarray(0, offset) : Buffer.from(bytes.subarray(0, offset));
}

function maxBytesOf(statement: string, texts: readonly (string | null)[]): number {
  let most = CHARACTER_BYTES * statement.length + 16 + AFTER_PARAMETERS.length + FLUSH.length;
  for (const text of texts) most += LENGTH_BYTES + CHARACTER_BYTES * (text?.length ?? 0);
  return most;
}

/** @returns the offset behind the call. */
function writeCall(bytes: Buffer, begin: number, statement: string, texts: readonly (string | null)[]): number {
  let offset = begin;
  bytes[offset] = 0x42;
  offset += 5;
  // The portal has no name.
  bytes[offset++] = 0;
  offset += bytes.write(statement, offset, 'utf8');
  bytes[offset++] = 0;
  // No formats: all parameters are text.
  offset = bytes.writeInt16BE(0, offset);
  offset = bytes.writeInt16BE(texts.length, offset);
  for (const text of texts) {
    const length = text === null ? NULL_LENGTH : bytes.write(text, offset + LENGTH_BYTES, 'utf8');
    offset = bytes.writeInt32BE(length, offset) + Math.max(length, 0);
  }
  // The remainder of Bind states the format of the columns: two more bytes. The length does not count the message type.
  bytes.writeInt32BE(offset + 2 - begin - 1, begin + 1);
  return offset + AFTER_PARAMETERS.copy(bytes, offset);
}

function bufferFor(bytes: number): Buffer {
  if (bytes > REUSED_BUFFER_BYTES) return Buffer.allocUnsafe(bytes);
  if (bytes > buffer.length) buffer = Buffer.allocUnsafe(REUSED_BUFFER_BYTES);
  return buffer;
}

function textOf(value: Parameter): string | null {
  if (value === null || typeof value === 'string') return value;
  if (typeof value === 'object') return arrayLiteral(value.map(String));
  return String(value);
}
