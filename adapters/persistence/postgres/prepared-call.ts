import type { Parameter, Row } from '../statement.ts';
import { arrayLiteral } from './row-literal.ts';

/** A column of what a statement answers, and what makes a value of its text. */
export type Column = { readonly name: string; readonly read: (text: string) => unknown };

/** One call of a statement that its connection has prepared and whose columns are known. */
export type PreparedCall = { readonly statement: string; readonly values: readonly Parameter[]; readonly columns: readonly Column[] };

/** Of the driver's connection: the socket. */
type Connection = { readonly stream: { write(bytes: Buffer): unknown } };

/** Bytes of a message for which room is kept; a larger one gets room of its own. */
const KEPT_ROOM = 256 * 1024;
/** UTF-8 has at most so many bytes for a character of a JavaScript string. */
const CHARACTER_BYTES = 3;
const LENGTH_BYTES = 4;
const NULL_LENGTH = -1;

/** All parameters and all columns as text; the whole answer in one piece (the rest of Bind, then Execute). */
const AFTER_PARAMETERS = Buffer.concat([Buffer.from([0, 0]), Buffer.from([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0])]);
const SYNC = Buffer.from([0x53, 0, 0, 0, 4]);
/** Between two calls: PostgreSQL answers the first as soon as it is done, else a slow group looks like a connection that is gone. */
const FLUSH = Buffer.from([0x48, 0, 0, 0, 4]);

let room = Buffer.allocUnsafe(16 * 1024);

/**
 * Calls in one message and one write, with one Sync behind them: PostgreSQL runs them one after the other in one transaction, which ends
 * with the Sync (manual, section 55.2.3 and 55.2.4). When one of them fails, nothing of any has happened. The driver would write each call
 * as four messages and ask each time what the columns are. Handed to the driver's `query`, which takes any object with these methods.
 */
export class PreparedCalls {
  /** By call, once all is committed. */
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

  /** How many calls have been answered; when they fail, the place of the one that did, or their number when the commit failed. */
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
  for (const [index, { statement }] of calls.entries()) most += mostBytes(statement, texts[index] ?? []);
  const bytes = roomFor(most);
  let at = 0;
  for (const [index, { statement }] of calls.entries()) {
    if (index > 0) at += FLUSH.copy(bytes, at);
    at = writeCall(bytes, at, statement, texts[index] ?? []);
  }
  at += SYNC.copy(bytes, at);
  // The socket may keep what it is given for a while, and the room is used again.
  return most > KEPT_ROOM ? bytes.subarray(0, at) : Buffer.from(bytes.subarray(0, at));
}

function mostBytes(statement: string, texts: readonly (string | null)[]): number {
  let most = CHARACTER_BYTES * statement.length + 16 + AFTER_PARAMETERS.length + FLUSH.length;
  for (const text of texts) most += LENGTH_BYTES + CHARACTER_BYTES * (text?.length ?? 0);
  return most;
}

/** @returns where the next one begins. */
function writeCall(bytes: Buffer, begin: number, statement: string, texts: readonly (string | null)[]): number {
  let at = begin;
  bytes[at] = 0x42;
  at += 5;
  // The portal has no name.
  bytes[at++] = 0;
  at += bytes.write(statement, at, 'utf8');
  bytes[at++] = 0;
  // No formats: all parameters are text.
  at = bytes.writeInt16BE(0, at);
  at = bytes.writeInt16BE(texts.length, at);
  for (const text of texts) {
    const length = text === null ? NULL_LENGTH : bytes.write(text, at + LENGTH_BYTES, 'utf8');
    at = bytes.writeInt32BE(length, at) + Math.max(length, 0);
  }
  // The rest of Bind says how columns are wanted: two bytes more. Its length does not count the letter in front.
  bytes.writeInt32BE(at + 2 - begin - 1, begin + 1);
  return at + AFTER_PARAMETERS.copy(bytes, at);
}

function roomFor(bytes: number): Buffer {
  if (bytes > KEPT_ROOM) return Buffer.allocUnsafe(bytes);
  if (bytes > room.length) room = Buffer.allocUnsafe(KEPT_ROOM);
  return room;
}

function textOf(value: Parameter): string | null {
  if (value === null || typeof value === 'string') return value;
  if (typeof value === 'object') return arrayLiteral(value.map(String));
  return String(value);
}
