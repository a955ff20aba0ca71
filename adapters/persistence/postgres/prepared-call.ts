import type { Parameter, Row } from '../statement.ts';
import { arrayLiteral } from './row-literal.ts';

/** A column of what a statement answers, and what makes a value of its text. */
export type Column = { readonly name: string; readonly read: (text: string) => unknown };

/** Of the driver's connection: the socket. */
type Connection = { readonly stream: { write(bytes: Buffer): unknown } };

/** Bytes of a call for which room is kept; a larger one gets room of its own. */
const KEPT_ROOM = 256 * 1024;
/** UTF-8 has at most so many bytes for a character of a JavaScript string. */
const CHARACTER_BYTES = 3;
const LENGTH_BYTES = 4;
const NULL_LENGTH = -1;

/** All parameters and all columns as text; the whole answer at once; then the end of the call (Bind's rest, Execute, Sync). */
const AFTER_PARAMETERS = Buffer.concat([
  Buffer.from([0, 0]),
  Buffer.from([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0]),
  Buffer.from([0x53, 0, 0, 0, 4]),
]);

let room = Buffer.allocUnsafe(16 * 1024);

/**
 * One call of a statement that its connection has prepared and whose columns are known (PostgreSQL manual, section 55.2.3).
 * The driver writes such a call as four messages and asks each time what the columns are; this is one message in one write.
 * Handed to the driver's `query`, which takes any object with these methods.
 */
export class PreparedCall {
  readonly rows: Promise<readonly Row[]>;
  readonly #statement: string;
  readonly #values: readonly Parameter[];
  readonly #columns: readonly Column[];
  readonly #read: Row[] = [];
  #resolve: (rows: readonly Row[]) => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor(statement: string, values: readonly Parameter[], columns: readonly Column[]) {
    this.#statement = statement;
    this.#values = values;
    this.#columns = columns;
    this.rows = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  submit({ stream }: Connection): null {
    stream.write(bindAndExecute(this.#statement, this.#values));
    return null;
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const row: Record<string, unknown> = {};
    this.#columns.forEach(({ name, read }, index) => {
      const text = fields[index];
      row[name] = text === null || text === undefined ? null : read(text);
    });
    this.#read.push(row);
  }

  handleError(error: unknown): void {
    this.#reject(error);
  }

  handleReadyForQuery(): void {
    this.#resolve(this.#read);
  }

  handleRowDescription(): void {}
  handleCommandComplete(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
}

/** The messages Bind, Execute and Sync for the unnamed portal (PostgreSQL manual, section 55.7). */
export function bindAndExecute(statement: string, values: readonly Parameter[]): Buffer {
  const texts = values.map(textOf);
  const most = texts.reduce<number>(
    (sum, text) => sum + LENGTH_BYTES + CHARACTER_BYTES * (text?.length ?? 0),
    CHARACTER_BYTES * statement.length + 16 + AFTER_PARAMETERS.length,
  );
  const bytes = roomFor(most);
  bytes[0] = 0x42;
  let at = 5;
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
  // The rest of Bind says how columns are wanted: two bytes more.
  bytes.writeInt32BE(at + 2 - 1, 1);
  at += AFTER_PARAMETERS.copy(bytes, at);
  // The socket may keep what it is given for a while, and the room is used again.
  return most > KEPT_ROOM ? bytes.subarray(0, at) : Buffer.from(bytes.subarray(0, at));
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
