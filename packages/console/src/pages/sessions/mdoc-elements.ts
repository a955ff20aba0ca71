import { at } from '../../parts/json-paths.ts';
import { bytesOf } from '../decoder/bytes.ts';
import { diagnose, readCbor } from '../decoder/cbor.ts';
import type { SessionRecord } from './session-record.ts';

export type PresentedMdoc = {
  readonly id: string;
  readonly docType: string;
  readonly namespaces: readonly {
    readonly name: string;
    readonly elements: readonly { readonly name: string; readonly notation: string }[];
  }[];
};

/** Stands for a value of a person, as the interface writes it. */
const MASK = '•••';
const MAX_DEPTH = 20;

/**
 * The mdocs of a session, as far as they are on record: presentations themselves are not kept, so byte strings stand as base64url and
 * dates as texts (RFC 8949 section 6.1).
 */
export function presentedMdocs({ offer, credentials = [] }: Pick<SessionRecord, 'offer' | 'credentials'>): PresentedMdoc[] {
  const queries = at(offer, 'dcql_query', 'credentials');
  return credentials.flatMap(({ id, values }) => {
    const query = Array.isArray(queries) ? queries.find((candidate) => at(candidate, 'id') === id) : undefined;
    if (at(query, 'format') !== 'mso_mdoc' || values === undefined) return [];
    const docType = String(at(query, 'meta', 'doctype_value') ?? '');
    const all: readonly unknown[] = Array.isArray(values) ? values : [values];
    return all.map((presented) => ({ id: String(id), docType, namespaces: namespacesOf(presented) }));
  });
}

function namespacesOf(values: unknown): PresentedMdoc['namespaces'] {
  return entriesOf(values).map(([name, elements]) => ({
    name,
    elements: entriesOf(elements).map(([element, value]) => ({ name: element, notation: notationOf(value) })),
  }));
}

function notationOf(value: unknown, indent = '', depth = 0): string {
  if (value === MASK || depth > MAX_DEPTH) return MASK;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined';
  const inner = `${indent}  `;
  const isArray = Array.isArray(value);
  const lines = entriesOf(value).map(([name, member]) => {
    const text = notationOf(member, inner, depth + 1);
    return isArray ? text : `${JSON.stringify(name)}: ${text}`;
  });
  const [open, close] = isArray ? '[]' : '{}';
  if (lines.length === 0) return `${open}${close}`;
  return `${open}\n${lines.map((line) => inner + line).join(',\n')}\n${indent}${close}`;
}

const entriesOf = (value: unknown) => (typeof value === 'object' && value !== null ? Object.entries(value) : []);

/** CBOR that the interface gives as base64url. @returns the text as it came where it is none. */
export function cborInWords(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    const bytes = bytesOf(text);
    return bytes === undefined ? text : diagnose(readCbor(bytes));
  } catch {
    return text;
  }
}
